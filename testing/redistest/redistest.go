// Package redistest gives a test a Redis to talk to, and a way to hurt it.
//
// [Start] takes the first of these that can be had, and [Report] says which it
// was and why not another:
//
//  1. the server at REDIS_ADDR (host:port or a redis:// URL), shared and not ours
//     to stop;
//  2. a container, through dockertest: of the image REDIS_IMAGE, or else of
//     limiters-redis:local (image/build.sh makes it) if it is present, or else of
//     redis:7-alpine, which is pulled if need be;
//  3. a program: REDIS_SERVER, which is then taken before a container and never
//     replaced by anything else; or else redis-server or valkey-server on PATH;
//  4. miniredis, in this process.
//
// With REQUIRE_REDIS=1 in the environment, 4 is a failure; with REQUIRE_DOCKER=1,
// everything but 2 is. Nothing is skipped for want of a server.
//
// # Lifetime
//
// A server ends with the test that started it, on SIGINT and SIGTERM, and, on
// Linux, a server of kind 3 with this process however it ends. Containers that a
// killed test left behind are removed by the next one, fifteen minutes later.
//
// # Concurrency
//
// Start may be called by parallel tests. A Server's methods are for one goroutine
// at a time.
package redistest

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
)

// A Backend is a kind of server.
type Backend string

// The backends, in the order in which they are tried.
const (
	Address   Backend = "address"   // REDIS_ADDR
	Container Backend = "container" // Docker
	Process   Backend = "process"   // a program on PATH
	Embedded  Backend = "embedded"  // miniredis
)

// A Server is a Redis that belongs to one test, or is lent to it.
type Server struct {
	tb      testing.TB
	backend Backend
	url     string
	instance
}

// An instance is what a backend starts. Its methods return an error if the
// backend cannot do that.
type instance interface {
	// stop ends it for good and removes what it left.
	stop()
	// kill ends it at once, its data lost but for what it persisted.
	kill() error
	// pause lets it accept connections and answer nothing.
	pause() error
	resume() error
	// restart starts it again on the same port after kill.
	restart() error
	// advance moves its time.
	advance(d time.Duration) error
}

// An Option changes how Start starts a server.
type Option func(*settings)

type settings struct {
	args   []string
	own    bool
	real   bool
	frozen bool
	only   Backend
}

// WithArgs adds arguments to redis-server's command line, each word one argument:
// "--user", "bob", "on", ">secret", "~*", "+get". It implies [Own] and [Real].
func WithArgs(args ...string) Option {
	return func(s *settings) { s.args, s.own, s.real = append(s.args, args...), true, true }
}

// Real passes over the embedded server, for a test of what only a Redis does.
func Real() Option {
	return func(s *settings) { s.real = true }
}

// Own passes over REDIS_ADDR: the server is this test's alone, and can be killed.
func Own() Option {
	return func(s *settings) { s.own = true }
}

// Only starts a server of this backend or none: if it cannot be had, TryStart
// fails. It implies Own for every backend but Address.
func Only(b Backend) Option {
	return func(s *settings) { s.only, s.own = b, s.own || b != Address }
}

// Frozen stops the time of an embedded server; only Advance moves it then. Other
// servers have real time.
func Frozen() Option {
	return func(s *settings) { s.frozen = true }
}

// Start starts a server that answers PING. It ends the test if it cannot, or if
// the environment requires another backend.
func Start(tb testing.TB, options ...Option) *Server {
	tb.Helper()
	server, err := TryStart(tb, options...)
	if err != nil {
		tb.Fatalf("redistest: %v", err)
	}
	return server
}

// ErrNone is the error of TryStart where no backend that the options allow can be
// had. Any other error is a fault.
var ErrNone = errors.New("no server can be had")

// TryStart is Start for a test that has something to do, or to say, without a
// server. It fails otherwise than by ErrNone if the environment requires another
// backend, or a server does not start with the test's arguments.
func TryStart(tb testing.TB, options ...Option) (*Server, error) {
	tb.Helper()
	var s settings
	for _, option := range options {
		option(&s)
	}
	server, err := choose(tb, &s)
	if errors.Is(err, ErrNone) && (os.Getenv("REQUIRE_DOCKER") == "1" || os.Getenv("REQUIRE_REDIS") == "1") && s.only == "" {
		return nil, fmt.Errorf("a server is required by the environment: %s", Report())
	} else if err != nil {
		return nil, err
	}
	if s.only == "" {
		if err := permitted(server.backend); err != nil {
			server.stop()
			return nil, err
		}
	}
	forget := remember(server.instance)
	tb.Cleanup(func() {
		forget()
		server.stop()
	})
	return server, nil
}

// permitted is an error if the environment requires another backend.
func permitted(b Backend) error {
	switch {
	case os.Getenv("REQUIRE_DOCKER") == "1" && b != Container:
		return fmt.Errorf("REQUIRE_DOCKER=1, but %s", Report())
	case os.Getenv("REQUIRE_REDIS") == "1" && b == Embedded:
		return fmt.Errorf("REQUIRE_REDIS=1, but %s", Report())
	}
	return nil
}

// Backend says what kind of server it is.
func (s *Server) Backend() Backend { return s.backend }

// URL is the server's address as a redis:// URL, with credentials if REDIS_ADDR
// holds any.
func (s *Server) URL() string { return s.url }

// Addr is the server's host:port.
func (s *Server) Addr() string {
	_, addr, _ := strings.Cut(s.url, "://")
	if at := strings.LastIndexByte(addr, '@'); at >= 0 {
		addr = addr[at+1:]
	}
	addr, _, _ = strings.Cut(addr, "/")
	return addr
}

// Conn returns a connection of the test's own, closed with the test.
func (s *Server) Conn() redis.Conn {
	s.tb.Helper()
	conn, err := dial(s.url)
	if err != nil {
		s.tb.Fatalf("redistest: %v", err)
	}
	s.tb.Cleanup(func() { _ = conn.Close() })
	return conn
}

// Kill ends the server as SIGKILL does. It fails the test on a server that is not
// this test's.
func (s *Server) Kill() { s.must("kill", s.kill()) }

// Pause lets the server hang: connections are accepted and nothing is answered.
// An embedded server cannot; see CanPause.
func (s *Server) Pause() { s.must("pause", s.pause()) }

// Resume ends Pause; what was sent meanwhile is answered.
func (s *Server) Resume() { s.must("resume", s.resume()) }

// Restart starts a killed server again on the same port. It has the data that it
// persisted; an embedded server has all.
func (s *Server) Restart() {
	s.must("restart", s.restart())
	s.must("reach after a restart", await(s.url))
}

// Advance moves the time of an embedded server, its keys' expiry included. It
// reports false, and does nothing, on every other.
func (s *Server) Advance(d time.Duration) bool { return s.advance(d) == nil }

// CanKill reports that Kill and Restart work.
func (s *Server) CanKill() bool { return s.backend != Address }

// CanPause reports that Pause and Resume work.
func (s *Server) CanPause() bool { return s.backend == Container || s.backend == Process }

// Real reports that it is a real Redis or Valkey, not the embedded one.
func (s *Server) Real() bool { return s.backend != Embedded }

func (s *Server) must(what string, err error) {
	s.tb.Helper()
	if err != nil {
		s.tb.Fatalf("redistest: cannot %s the %s server: %v", what, s.backend, err)
	}
}

// Prefix returns a prefix for keys that no other test uses, and removes those keys
// when the test ends.
func (s *Server) Prefix() string {
	var random [6]byte
	_, _ = rand.Read(random[:])
	prefix := "redistest-" + hex.EncodeToString(random[:])
	s.tb.Cleanup(func() { _ = s.flush(prefix) })
	return prefix
}

// Flush removes the keys that begin with prefix, and no others.
func (s *Server) Flush(prefix string) { s.must("flush", s.flush(prefix)) }

func (s *Server) flush(prefix string) error {
	conn, err := dial(s.url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	pattern := strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(prefix) + "*"
	for cursor := "0"; ; {
		reply, err := redis.Values(conn.Do("SCAN", cursor, "MATCH", pattern, "COUNT", 1000))
		if err != nil {
			return err
		}
		var keys []string
		if _, err := redis.Scan(reply, &cursor, &keys); err != nil {
			return err
		}
		if len(keys) > 0 {
			if _, err := conn.Do("DEL", redis.Args{}.AddFlat(keys)...); err != nil {
				return err
			}
		}
		if cursor == "0" {
			return nil
		}
	}
}

// dial connects for one of our own commands.
func dial(url string) (redis.Conn, error) {
	return redis.DialURL(url,
		redis.DialConnectTimeout(time.Second), redis.DialReadTimeout(5*time.Second), redis.DialWriteTimeout(time.Second))
}

// await waits until the server answers PING, if only by an error: it may have been
// told to refuse it. A server that still loads its data has not answered.
func await(url string) error {
	var last error
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		conn, err := dial(url)
		if err == nil {
			_, err = conn.Do("PING")
			_ = conn.Close()
		}
		var refusal redis.Error
		if err == nil || errors.As(err, &refusal) && !strings.HasPrefix(string(refusal), "LOADING") {
			return nil
		}
		last = err
	}
	return fmt.Errorf("no answer to PING: %w", last)
}

// errNot is why a backend does not do something.
var errNot = errors.New("not supported by this backend")
