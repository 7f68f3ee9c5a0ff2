// This file encrypts the connection to a server, with a CA and certificates of the
// test's own.

package integration

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/ratelimit/store"
)

// An authority signs certificates that are valid for an hour.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	template := a.template("test CA")
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	a.key = a.newKey()
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	a.check(err)
	a.cert, err = x509.ParseCertificate(der)
	a.check(err)
	a.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return a
}

func (a *authority) check(err error) {
	a.t.Helper()
	if err != nil {
		a.t.Fatal(err)
	}
}

func (a *authority) newKey() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	a.check(err)
	return key
}

func (a *authority) template(name string) *x509.Certificate {
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	a.check(err)
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
}

// sign returns a certificate and its key in PEM: for 127.0.0.1 and localhost, and
// for either side.
func (a *authority) sign(name string) (cert, key []byte) {
	template := a.template(name)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	template.IPAddresses, template.DNSNames = []net.IP{net.IPv4(127, 0, 0, 1)}, []string{"localhost"}
	private := a.newKey()
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &private.PublicKey, a.key)
	a.check(err)
	text, err := x509.MarshalPKCS8PrivateKey(private)
	a.check(err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: text})
}

// roots is a pool with this authority alone.
func (a *authority) roots() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// client returns a certificate for the client's side.
func (a *authority) client() []tls.Certificate {
	cert, err := tls.X509KeyPair(a.sign("client"))
	a.check(err)
	return []tls.Certificate{cert}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	ca, stranger := newAuthority(t), newAuthority(t)
	dir := t.TempDir()
	cert, key := ca.sign("server")
	for name, text := range map[string][]byte{"ca": ca.pem, "cert": cert, "key": key} {
		ca.check(os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	ca.check(err)
	addr := listener.Addr().String()
	port := listener.Addr().(*net.TCPAddr).Port
	_ = listener.Close()
	s := processServer(t, "--tls-port", fmt.Sprint(port), "--tls-auth-clients", "yes",
		"--tls-ca-cert-file", filepath.Join(dir, "ca"), "--tls-cert-file", filepath.Join(dir, "cert"), "--tls-key-file", filepath.Join(dir, "key"),
		"--user bob on >pw ~p:* +@all")

	right := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: ca.roots(), Certificates: ca.client()}
	with := func(change func(*tls.Config)) *tls.Config {
		changed := right.Clone()
		change(changed)
		return changed
	}
	for name, config := range map[string]*tls.Config{
		"TLS 1.3": right,
		"TLS 1.2": with(func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }),
		"by name": with(func(c *tls.Config) { c.ServerName = "localhost" }),
	} {
		t.Run(name, func(t *testing.T) {
			prefix := "p:" + name
			expectSynced(t, limiterAt(t, "rediss://bob:pw@"+addr, prefix, ratelimit.WithTLS(config)), s.Conn(), prefix)
		})
	}
	for name, config := range map[string]*tls.Config{
		"the system's CAs":        nil,
		"another CA":              with(func(c *tls.Config) { c.RootCAs = stranger.roots() }),
		"another name":            with(func(c *tls.Config) { c.ServerName = "example.com" }),
		"an expired certificate":  with(func(c *tls.Config) { c.Time = func() time.Time { return time.Now().Add(48 * time.Hour) } }),
		"no client certificate":   with(func(c *tls.Config) { c.Certificates, c.MaxVersion = nil, tls.VersionTLS12 }),
		"another CA's client":     with(func(c *tls.Config) { c.Certificates, c.MaxVersion = stranger.client(), tls.VersionTLS12 }),
		"a wrong name and no CAs": {MinVersion: tls.VersionTLS13, ServerName: "example.com"},
	} {
		expectSyncError(t, name, limiterAt(t, "rediss://bob:pw@"+addr, "p", ratelimit.WithTLS(config)), store.NotSent, store.CauseTLS)
	}
	// In TLS 1.3 the server judges the client when the client thinks that all is
	// well; whether its alert or its reset is met first is chance.
	for name, config := range map[string]*tls.Config{
		"no client certificate, TLS 1.3": with(func(c *tls.Config) { c.Certificates = nil }),
		"another CA's client, TLS 1.3":   with(func(c *tls.Config) { c.Certificates = stranger.client() }),
	} {
		err := countFive(limiterAt(t, "rediss://bob:pw@"+addr, "p", ratelimit.WithTLS(config)))
		var failed *store.Error
		if !errors.As(err, &failed) || failed.Fate != store.NotSent || failed.Cause != store.CauseTLS && failed.Cause != store.CauseClosed {
			t.Errorf("%s: %v, want not sent, tls or closed", name, err)
		}
	}
	expectSyncError(t, "a wrong password", limiterAt(t, "rediss://bob:x@"+addr, "p", ratelimit.WithTLS(right)), store.NotSent, store.CauseAuth)
	expectSyncError(t, "no TLS", limiterAt(t, "redis://bob:pw@"+addr, "p"), store.NotSent, store.CauseClosed)

	t.Run("a pool of the caller's", func(t *testing.T) {
		pool := &redis.Pool{Dial: func() (redis.Conn, error) {
			return redis.Dial("tcp", addr, redis.DialUseTLS(true), redis.DialTLSConfig(right), redis.DialTLSHandshakeTimeout(10*time.Second),
				redis.DialUsername("bob"), redis.DialPassword("pw"), redis.DialReadTimeout(10*time.Second), redis.DialWriteTimeout(10*time.Second))
		}}
		t.Cleanup(func() { _ = pool.Close() })
		expectSynced(t, limiterAt(t, "", "p:pool", ratelimit.WithPools(ratelimit.Pool{Name: "main", Pool: pool})), s.Conn(), "p:pool")
	})
}
