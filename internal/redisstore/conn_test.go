// This file holds peers that close, lie, or are no Redis.

package redisstore

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hanzoai/limiters/internal/redisurl"
	"github.com/hanzoai/limiters/internal/scriptcall"
	"github.com/hanzoai/limiters/ratelimit/store"
)

// listenFor serves every connection by handle, which owns it.
func listenFor(t *testing.T, handle func(net.Conn)) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() { // ends with the listener
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go handle(c)
		}
	}()
	return l.Addr().String()
}

// openAt returns a store on an address.
func openAt(t *testing.T, url string, options Options) *Store {
	t.Helper()
	target, err := redisurl.Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	s := Open(target, options)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// words are the commands that a script was sent.
func (s *script) words() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.commands)
}

// A proxy that closes over a command it does not know costs one connection within the
// first attempt, and no later one.
func TestAProxyThatClosesOverScriptLoadCostsNoTick(t *testing.T) {
	t.Parallel()
	s := &script{answers: []string{
		"close", "+PONG", "-NOSCRIPT", fine, "close", // and goes away
		"-ERR unknown command 'ping'", fine, "close", "+PONG", fine,
	}}
	r := openAt(t, "redis://"+listenFor(t, s.serve), Options{})
	apply := func(what string) {
		t.Helper()
		if err := r.Apply(context.Background(), small(), &store.Reply{}); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	apply("the first connection")
	if err := r.Apply(context.Background(), small(), &store.Reply{}); err == nil {
		t.Error("a connection that closed answered")
	}
	apply("the second connection")
	_ = r.Apply(context.Background(), small(), &store.Reply{})
	apply("the third connection")
	want := []string{"SCRIPT", "PING", "EVALSHA", "EVAL", "EVALSHA", "PING", "EVALSHA", "EVALSHA", "PING", "EVALSHA"}
	if got := s.words(); !slices.Equal(got, want) {
		t.Errorf("commands %q, want %q", got, want)
	}
}

// One that closes over PING too is given a connection without either.
func TestAProxyThatClosesOverPingToo(t *testing.T) {
	t.Parallel()
	s := &script{answers: []string{"close", "close", fine}}
	r := openAt(t, "redis://"+listenFor(t, s.serve), Options{})
	var failed *store.Error
	err := r.Apply(context.Background(), small(), &store.Reply{})
	if !errors.As(err, &failed) || failed.Fate != store.NotSent || failed.Cause != store.CauseClosed {
		t.Errorf("%v, want not sent, closed", err)
	}
	if err := r.Apply(context.Background(), small(), &store.Reply{}); err != nil {
		t.Error(err)
	}
	if got, want := s.words(), []string{"SCRIPT", "PING", "EVALSHA"}; !slices.Equal(got, want) {
		t.Errorf("commands %q, want %q", got, want)
	}
}

// certificate is one for 127.0.0.1 that signs itself.
func certificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, roots
}

// A connection that its peer closed while it was idle is replaced before anything is
// sent: the batch is sent once, and nothing fails.
func TestAnIdleConnectionThatWasClosedIsNoNews(t *testing.T) {
	t.Parallel()
	cert, roots := certificate(t)
	for name, encrypted := range map[string]bool{"plain": false, "TLS": true} {
		s := &script{answers: slices.Repeat([]string{"+OK", fine}, 3)}
		opened := make(chan net.Conn, 10)
		address := listenFor(t, func(c net.Conn) {
			if encrypted {
				c = tls.Server(c, &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12})
			}
			opened <- c
			s.serve(c)
		})
		url := "redis://" + address
		if encrypted {
			url = "rediss://" + address
		}
		r := openAt(t, url, Options{TLS: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, Timeouts: Timeouts{Reply: 5 * time.Second}})
		for round := range 3 {
			if err := r.Apply(context.Background(), small(), &store.Reply{}); err != nil {
				t.Errorf("%s, round %d: %v", name, round, err)
			}
			_ = (<-opened).Close()
			time.Sleep(20 * time.Millisecond) // the end arrives
		}
		if got, want := s.words(), slices.Repeat([]string{"SCRIPT", "EVALSHA"}, 3); !slices.Equal(got, want) {
			t.Errorf("%s: commands %q, want %q", name, got, want)
		}
	}
}

// A connection on which the peer said something unasked is not used: its next answer
// would be that.
func TestWhatNobodyAskedForIsNoAnswer(t *testing.T) {
	t.Parallel()
	s := &script{answers: []string{"+OK", fine, "+OK", fine}}
	opened := make(chan net.Conn, 10)
	r := openAt(t, "redis://"+listenFor(t, func(c net.Conn) { opened <- c; s.serve(c) }), Options{})
	for range 2 {
		if err := r.Apply(context.Background(), small(), &store.Reply{}); err != nil {
			t.Error(err)
		}
		_, _ = io.WriteString(<-opened, strings.Replace(fine, ":7", ":8", 1)+"\r\n")
		time.Sleep(20 * time.Millisecond) // it arrives
	}
}

// A peer's announcements cost nothing beyond what it sends: neither memory nor time.
func TestAPeersLengthIsNotTrusted(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{
		"$1500000000", "$9223372036854775807", "$99999999999999999999999999", "$00000000000000000000000001500000000", "$4097",
		"*400000000", "*9223372036854775807", "*000000000000000000000000000400000000", "*8\r\n*50\r\n*400000000", "*8\r\n$400000000",
		"-" + strings.Repeat("x", 1<<20), "+" + strings.Repeat("x", 1<<17), ":" + strings.Repeat("1", 1<<17),
		strings.Repeat("*60\r\n", 1000),
	} {
		s := &script{answers: []string{"+OK", answer, "+OK", fine}}
		r := openAt(t, "redis://"+listenFor(t, s.serve), Options{Timeouts: Timeouts{Reply: 10 * time.Second}})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began := time.Now()
		err := r.Apply(context.Background(), small(), &store.Reply{})
		took := time.Since(began)
		runtime.ReadMemStats(&after)
		var failed *store.Error
		if !errors.As(err, &failed) || failed.Fate != store.Unknown || failed.Cause != store.CauseProtocol {
			t.Errorf("%.40q: %.200v, want unknown, protocol", answer, err)
			continue
		}
		if grown := after.TotalAlloc - before.TotalAlloc; took > 5*time.Second || grown > 100<<20 {
			t.Errorf("%.40q: %v and %d bytes", answer, took, grown)
		}
		if err := r.Apply(context.Background(), small(), &store.Reply{}); err != nil {
			t.Errorf("%.40q: the next attempt: %v", answer, err)
		}
	}
}

// What is right is let through in whatever pieces it arrives.
func TestTheGuardLetsAnswersThroughInPieces(t *testing.T) {
	t.Parallel()
	text := "+OK\r\n$3\r\na\nb\r\n*3\r\n:1\r\n$0\r\n\r\n-ERR " + strings.Repeat("x", 5000) + "\r\n*-1\r\n$-1\r\n$4\r\n*999\r\n"
	for size := 1; size < 40; size++ {
		g := &guard{left: 3, asked: 3}
		for piece := range slices.Chunk([]byte(text), size) {
			if err := g.scan(piece); err != nil {
				t.Fatalf("in pieces of %d: %v", size, err)
			}
		}
		if err := g.scan([]byte("*1\r\n")); !errors.Is(err, errAnnounced) {
			t.Fatalf("in pieces of %d: a fourth element: %v", size, err)
		}
	}
}

// FuzzGuard looks for an answer that is judged differently in other pieces.
func FuzzGuard(f *testing.F) {
	f.Add([]byte("*3\r\n:1\r\n$4\r\nab\r\n\r\n-x\r\n"), uint8(2))
	f.Add([]byte("*00000000000000000000000000000001\r\n$5000\r\n"), uint8(1))
	f.Fuzz(func(t *testing.T, answer []byte, size uint8) {
		whole, pieces := &guard{left: 10}, &guard{left: 10}
		want := whole.scan(answer)
		var got error
		for piece := range slices.Chunk(answer, int(size)+1) {
			if got = pieces.scan(piece); got != nil {
				break
			}
		}
		if (want == nil) != (got == nil) {
			t.Errorf("whole: %v, in pieces of %d: %v", want, size+1, got)
		}
	})
}

// What listens instead of Redis is named, and TLS that one side speaks alone.
func TestTheWrongProtocolIsNamed(t *testing.T) {
	t.Parallel()
	_, roots := certificate(t)
	web, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = http.Serve(web, http.NotFoundHandler()) }() // ends with the listener
	t.Cleanup(func() { _ = web.Close() })
	encrypted := listenFor(t, func(c net.Conn) { // answers what is no handshake by an alert
		_, _ = c.Write([]byte{0x15, 3, 3, 0, 2, 2, 70})
		_, _ = io.Copy(io.Discard, c)
		_ = c.Close()
	})
	shut := listenFor(t, func(c net.Conn) { // reads, and closes without a word, as Redis on its TLS port
		var some [1]byte
		_, _ = c.Read(some[:])
		_ = c.Close()
	})
	waiting := listenFor(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }) // takes a handshake for a part of a command
	plain := (&script{answers: slices.Repeat([]string{"-ERR unknown command"}, 9)}).serve
	refusing := listenFor(t, func(c net.Conn) { _, _ = c.Write([]byte("-ERR Protocol error\r\n")); plain(c) })
	for url, want := range map[string]struct{ cause, text string }{
		"redis://" + web.Addr().String():           {store.CauseProtocol, "speaks HTTP"},
		"redis://u:hunter2@" + web.Addr().String(): {store.CauseProtocol, "speaks HTTP"},
		"redis://" + encrypted:                     {store.CauseTLS, "speaks TLS on this port"},
		"redis://u:hunter2@" + encrypted + "/3":    {store.CauseTLS, "speaks TLS on this port"},
		"redis://" + shut:                          {store.CauseClosed, "expect TLS"},
		"redis://:hunter2@" + shut:                 {store.CauseClosed, "expect TLS"},
		"rediss://" + waiting:                      {store.CauseTimeout, "speak TLS on this port"},
		"rediss://" + shut:                         {store.CauseClosed, "speak TLS on this port"},
		"rediss://" + refusing:                     {store.CauseTLS, "does not speak TLS on this port"},
	} {
		r := openAt(t, url, Options{TLS: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, Timeouts: Timeouts{Connect: 300 * time.Millisecond}})
		err := r.Apply(context.Background(), small(), &store.Reply{})
		var failed *store.Error
		if !errors.As(err, &failed) || failed.Fate != store.NotSent || failed.Cause != want.cause || !strings.Contains(err.Error(), want.text) {
			t.Errorf("%s: %v, want not sent, %s, with %q", url, err, want.cause, want.text)
		}
		if strings.Contains(fmt.Sprint(err), "hunter2") {
			t.Errorf("%s: the password shows: %v", url, err)
		}
	}
}

// A server that does not know a command quotes its arguments; an error shows none.
func TestNoErrorShowsASecret(t *testing.T) {
	t.Parallel()
	quoting := listenFor(t, func(c net.Conn) {
		s := &script{answers: []string{"x"}}
		s.quote = true
		s.serve(c)
	})
	for _, url := range []string{
		"redis://hunter2@" + quoting, "redis://hunter2:x@" + quoting, "redis://u:hunter2@" + quoting + "/3", "redis://" + quoting,
	} {
		batch := small()
		batch.Writes[0].Key, batch.Reads[0], batch.Sequence = "p:hunter2:1", "p:hunter2:0", "p:hunter2:seq"
		err := openAt(t, url, Options{}).Apply(context.Background(), batch, &store.Reply{})
		if err == nil || !strings.Contains(err.Error(), "unknown command") {
			t.Errorf("%s: %v, want what the server said", url, err)
		}
		for ; err != nil; err = errors.Unwrap(err) {
			if text := fmt.Sprintf("%v %+v %#v", err, err, err); strings.Contains(text, "hunter2") {
				t.Errorf("%s: a secret shows: %s", url, text)
			}
		}
	}
}

func TestAClustersAnswerSaysWhatToDo(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{
		"-CROSSSLOT Keys in request don't hash to the same slot", "-MOVED 3999 10.1.1.1:6381", "-ASK 3999 10.1.1.1:6381",
	} {
		s := &script{answers: []string{"+OK", answer}}
		err := openAt(t, "redis://"+listenFor(t, s.serve), Options{}).Apply(context.Background(), small(), &store.Reply{})
		var failed *store.Error
		if !errors.As(err, &failed) || failed.Fate != store.Denied || failed.Cause != store.CauseCluster ||
			!strings.Contains(err.Error(), "ratelimit/goredis") || !strings.Contains(err.Error(), answer[1:]) {
			t.Errorf("%q: %v", answer, err)
		}
	}
}

// The end of a context ends an attempt, whether it has a deadline or is cancelled.
func TestTheEndOfAContextEndsAnAttempt(t *testing.T) {
	t.Parallel()
	s := &script{answers: []string{"+OK", fine, "hang", "+OK", fine}}
	r := openAt(t, "redis://"+listenFor(t, s.serve), Options{Timeouts: Timeouts{Connect: time.Minute, Reply: time.Minute}})
	for round := range 3 {
		ctx, cancel := context.WithCancel(context.Background())
		if round == 1 {
			time.AfterFunc(50*time.Millisecond, cancel)
		}
		began := time.Now()
		err := r.Apply(ctx, small(), &store.Reply{})
		var failed *store.Error
		if bad := errors.As(err, &failed); bad != (round == 1) || bad && (failed.Fate != store.Unknown || failed.Cause != store.CauseCanceled) {
			t.Errorf("round %d: %v", round, err)
		}
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("round %d took %v", round, took)
		}
		cancel()
	}
}

// A proxy that answers from different servers under different first keys is told of,
// once; one server is not.
func TestAProxyThatSplitsKeysIsToldOf(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name    string
		holders func(probe int) bool // whether the probe reaches the server with the key
		want    int
	}{
		{"one server", func(int) bool { return true }, 0},
		{"two servers", func(i int) bool { return i%2 == 0 }, 1},
		{"many servers", func(i int) bool { return i == 13 }, 1},
		{"a server that forgot", func(int) bool { return false }, 0},
	} {
		s := &script{answers: []string{"close", "+PONG", fine}}
		for i := range probes {
			held := 0
			if row.holders(i) {
				held = 7
			}
			s.answers = append(s.answers, fmt.Sprintf("*6\r\n:2\r\n:%d\r\n:1700000000\r\n:5\r\n:60000\r\n:%d", store.Orphan, held))
		}
		s.answers = append(s.answers, fine, fine)
		told := 0
		r := openAt(t, "redis://"+listenFor(t, s.serve), Options{Warn: func(string) { told++ }, Timeouts: Timeouts{Reply: 5 * time.Second}})
		for range 3 {
			if err := r.Apply(context.Background(), small(), &store.Reply{}); err != nil {
				t.Errorf("%s: %v", row.name, err)
			}
		}
		if told != row.want {
			t.Errorf("%s: told %d times, want %d", row.name, told, row.want)
		}
	}
	if scriptcall.MostElements(nil) < 8 {
		t.Error("no answer fits")
	}
}
