package goredis

// This file holds connections that fail, lie or hang at a known moment, and what the
// store tells of them.

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hanzoai/limiters/ratelimit/store"
)

// A failing is a connection whose reads fail once the script was called on it.
type failing struct {
	net.Conn
	err    error
	called bool
}

func (c *failing) Write(p []byte) (int, error) {
	c.called = c.called || bytes.Contains(p, []byte("evalsha"))
	return c.Conn.Write(p)
}

func (c *failing) Read(p []byte) (int, error) {
	if c.called {
		return 0, c.err
	}
	return c.Conn.Read(p)
}

// clients returns a client of one server, and one of a cluster of that server alone.
func clients(t *testing.T, addr string, dial func(ctx context.Context, network, addr string) (net.Conn, error)) map[string]*Store {
	t.Helper()
	single := redis.NewClient(&redis.Options{Addr: addr, Dialer: dial, DialerRetries: 1})
	cluster := redis.NewClusterClient(&redis.ClusterOptions{
		Dialer: dial, DialerRetries: 1,
		ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
			return []redis.ClusterSlot{{Start: 0, End: slots - 1, Nodes: []redis.ClusterNode{{Addr: addr}}}}, nil
		},
	})
	stores := map[string]*Store{}
	for name, c := range map[string]redis.UniversalClient{"single": single, "cluster": cluster} {
		t.Cleanup(func() { _ = c.Close() })
		s, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		stores[name] = s
	}
	return stores
}

// Whatever kind of error a connection ends with after the request was written, the
// batch may have been applied.
func TestNothingThatWasSentIsCalledNotSent(t *testing.T) {
	t.Parallel()
	for _, broken := range []error{
		tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"},
		&tls.CertificateVerificationError{Err: errors.New("x")},
		x509.UnknownAuthorityError{},
		x509.HostnameError{Certificate: &x509.Certificate{}},
		x509.CertificateInvalidError{Cert: &x509.Certificate{}},
		&net.OpError{Op: "dial", Err: errors.New("x")}, &net.OpError{Op: "remote error", Err: errors.New("x")},
		redis.ErrPoolExhausted, redis.ErrPoolTimeout, fmt.Errorf("wrapped: %w", tls.RecordHeaderError{}), &net.DNSError{Err: "x"}, context.Canceled,
	} {
		s := serveScript(t)
		for name, r := range clients(t, s.addr, func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, network, addr)
			return &failing{Conn: c, err: broken}, err
		}) {
			err := r.Apply(context.Background(), small(), &store.Reply{})
			var failed *store.Error
			if !errors.As(err, &failed) || failed.Fate != store.Unknown {
				t.Errorf("%s, %T after the request: %v, want unknown", name, broken, err)
			}
		}
	}
}

// What fails before is certain: also behind a redirection, since the node that redirects
// refuses.
func TestWhatFailsBeforeTheRequestIsNotSent(t *testing.T) {
	t.Parallel()
	gone := "127.0.0.1:1"
	for _, answer := range []string{"-MOVED 3999 " + gone, "-ASK 3999 " + gone} {
		s := serveScript(t, answer)
		r := clients(t, s.addr, nil)["cluster"]
		err := r.Apply(context.Background(), small(), &store.Reply{})
		var failed *store.Error
		if !errors.As(err, &failed) || failed.Fate != store.NotSent || failed.Cause != store.CauseUnreachable {
			t.Errorf("%s: %v, want not sent, unreachable", answer, err)
		}
	}
	for name, r := range clients(t, "x", func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("no token")
	}) {
		err := r.Apply(context.Background(), small(), &store.Reply{})
		var failed *store.Error
		if !errors.As(err, &failed) || failed.Fate != store.NotSent || !strings.Contains(err.Error(), "no token") {
			t.Errorf("%s, a dialer that fails: %v, want not sent", name, err)
		}
	}
}

// A peer's announcements cost nothing beyond what it sends.
func TestAPeersLengthIsNotTrusted(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{
		"$1500000000", "$9223372036854775807", "$00000001500000000", "$4097", "*400000000", "*9223372036854775807",
		"*8\r\n$400000000", "*8\r\n*400000000", "*8\r\n%400000000", "%400000000", "~400000000", "!400000000", "=400000000", "(1234", "#t", ",1.5",
	} {
		s := serveScript(t, answer, fine)
		r := open(t, &redis.Options{Addr: s.addr, ReadTimeout: 10 * time.Second, PoolSize: 1})
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

// Apply ends with its context under the client's default options, and what it leaves
// behind neither sends later nor piles up.
func TestApplyEndsWithItsContext(t *testing.T) {
	t.Parallel()
	hanging := serveScript(t, "hang", fine, fine, fine)
	silent := serveText(t, "")
	for _, row := range []struct {
		name, addr string
		fate       store.Fate
	}{
		{"no answer", hanging.addr, store.Unknown},
		{"no connection", silent, store.NotSent},
	} {
		for _, how := range []string{"deadline", "cancelled"} {
			c := redis.NewClient(&redis.Options{Addr: row.addr}) // reads for 5 s
			t.Cleanup(func() { _ = c.Close() })
			r, err := New(c)
			if err != nil {
				t.Fatal(err)
			}
			if how == "cancelled" && row.fate == store.Unknown {
				hanging.mu.Lock()
				hanging.answers = []string{"hang", fine, fine}
				hanging.mu.Unlock()
			}
			for attempt := range 2 {
				ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
				cause, fate := store.CauseTimeout, row.fate
				if how == "cancelled" {
					cancel()
					ctx, cancel = context.WithCancel(context.Background())
					time.AfterFunc(100*time.Millisecond, cancel)
					cause = store.CauseCanceled
				}
				if attempt == 1 {
					fate = store.NotSent // it waits for the one before
				}
				began := time.Now()
				err := r.Apply(ctx, small(), &store.Reply{})
				took := time.Since(began)
				cancel()
				var failed *store.Error
				if !errors.As(err, &failed) || failed.Fate != fate || failed.Cause != cause {
					t.Errorf("%s, %s, attempt %d: %v, want fate %d, %s", row.name, how, attempt, err, fate, cause)
				}
				if took > 2*time.Second {
					t.Errorf("%s, %s, attempt %d: took %v with a context of 100 ms", row.name, how, attempt, took)
				}
			}
			if row.fate == store.Unknown {
				if err := r.Apply(context.Background(), small(), &store.Reply{}); err != nil {
					t.Errorf("%s, %s: once it has ended: %v", row.name, how, err)
				}
			}
		}
	}
	if got := hanging.seen(); len(got) != 4 {
		t.Errorf("the server was sent %q, want two calls left alone and two answered", got)
	}
}

// A call that was left before it was written is not written later.
func TestWhatIsLeftUnsentStaysUnsent(t *testing.T) {
	t.Parallel()
	s := serveScript(t, fine, fine)
	var slow atomic.Bool
	slow.Store(true)
	c := redis.NewClient(&redis.Options{Addr: s.addr, Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
		if slow.Load() {
			time.Sleep(300 * time.Millisecond)
		}
		return new(net.Dialer).DialContext(context.WithoutCancel(ctx), network, addr)
	}})
	t.Cleanup(func() { _ = c.Close() })
	r, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	var failed *store.Error
	if err := r.Apply(ctx, small(), &store.Reply{}); !errors.As(err, &failed) || failed.Fate != store.NotSent {
		t.Fatalf("%v, want not sent", err)
	}
	slow.Store(false)
	time.Sleep(500 * time.Millisecond)
	if got := s.seen(); len(got) != 0 {
		t.Errorf("sent after it was called not sent: %q", got)
	}
	if err := r.Apply(context.Background(), small(), &store.Reply{}); err != nil {
		t.Error(err)
	}
}

func TestTheWrongProtocolIsNamed(t *testing.T) {
	t.Parallel()
	web, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = http.Serve(web, http.NotFoundHandler()) }() // ends with the listener
	t.Cleanup(func() { _ = web.Close() })
	shut, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = shut.Close() })
	go func() { // reads, and closes without a word, as Redis on its TLS port; ends with the listener
		for {
			c, err := shut.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 1))
			_ = c.Close()
		}
	}()
	encrypting := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: "x"}
	for name, row := range map[string]struct {
		addr        string
		config      *tls.Config
		cause, text string
	}{
		"HTTP":                     {web.Addr().String(), nil, store.CauseProtocol, "speaks HTTP"},
		"a TLS port":               {shut.Addr().String(), nil, store.CauseClosed, "expect TLS"},
		"TLS to a port that shuts": {shut.Addr().String(), encrypting, store.CauseClosed, "speak TLS on this port"},
		"TLS to a port that waits": {serveText(t, ""), encrypting, store.CauseTimeout, "speak TLS on this port"},
		"TLS to a plain port":      {serveText(t, "-ERR plain\r\n"), encrypting, store.CauseTLS, "does not speak TLS"},
	} {
		r := open(t, &redis.Options{Addr: row.addr, TLSConfig: row.config, DialTimeout: 300 * time.Millisecond, Password: "hunter2"})
		err := r.Apply(context.Background(), small(), &store.Reply{})
		var failed *store.Error
		if !errors.As(err, &failed) || failed.Fate != store.NotSent || failed.Cause != row.cause || !strings.Contains(err.Error(), row.text) {
			t.Errorf("%s: %v, want not sent, %s, with %q", name, err, row.cause, row.text)
		}
	}
}

func TestNoErrorShowsASecret(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{
		"AUTH is unknown":    "-ERR unknown command 'auth', with args beginning with: 'hunter2' ",
		"EVALSHA is unknown": "-ERR unknown command 'evalsha', with args beginning with: 'x' '2' 'p:hunter2:seq' ",
		"a key is forbidden": "-NOPERM User bob has no permissions to access the 'p:hunter2:1' key",
		"an unquoted key":    "-ERR no key p:hunter2:1 here",
	} {
		batch := small()
		batch.Writes[0].Key, batch.Sequence = "p:hunter2:1", "p:hunter2:seq"
		s := serveScript(t, slices.Repeat([]string{answer}, 4)...)
		s.refuseAuth = name == "AUTH is unknown"
		o := &redis.Options{Addr: s.addr}
		if s.refuseAuth {
			o.Password = "hunter2"
		}
		err := open(t, o).Apply(context.Background(), batch, &store.Reply{})
		if err == nil {
			t.Errorf("%s: no error", name)
		}
		for ; err != nil; err = errors.Unwrap(err) {
			if text := fmt.Sprintf("%v %+v %#v", err, err, err); strings.Contains(text, "hunter2") {
				t.Errorf("%s: a secret shows: %s", name, text)
			}
		}
	}
}

func TestAClustersAnswerSaysWhatToDo(t *testing.T) {
	t.Parallel()
	const crossSlot = "-CROSSSLOT Keys in request don't hash to the same slot"
	stores := clients(t, serveScript(t, crossSlot, crossSlot).addr, nil)
	for name, want := range map[string]string{"single": "ClusterClient", "cluster": "HashTag"} {
		err := stores[name].Apply(context.Background(), small(), &store.Reply{})
		var failed *store.Error
		if !errors.As(err, &failed) || failed.Fate != store.Denied || failed.Cause != store.CauseCluster ||
			!strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), crossSlot[1:]) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}
