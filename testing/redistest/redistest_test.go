// This file puts every backend that is at hand through its paces.

package redistest_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/hanzoai/limiters/testing/redistest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	fmt.Println(redistest.Report())
	os.Exit(code)
}

func TestEveryBackend(t *testing.T) {
	t.Parallel()
	for _, backend := range []redistest.Backend{redistest.Container, redistest.Process, redistest.Embedded} {
		t.Run(string(backend), func(t *testing.T) {
			t.Parallel()
			s, err := redistest.TryStart(t, redistest.Only(backend))
			if err != nil {
				if backend == redistest.Embedded || os.Getenv("REQUIRE_DOCKER") == "1" && backend == redistest.Container {
					t.Fatal(err)
				}
				t.Logf("not at hand here: %v", err)
				return
			}
			exercise(t, s)
		})
	}
}

// exercise does to a server all that it says it can bear.
func exercise(t *testing.T, s *redistest.Server) {
	conn := s.Conn()
	prefix, other := s.Prefix(), s.Prefix()
	if prefix == other {
		t.Fatalf("prefix %q twice", prefix)
	}
	for _, key := range []string{prefix + ":a", prefix + ":b", other + ":a"} {
		if _, err := conn.Do("SET", key, "1", "PX", 60_000); err != nil {
			t.Fatal(err)
		}
	}
	s.Flush(prefix)
	if n, err := redis.Int(conn.Do("EXISTS", prefix+":a", prefix+":b", other+":a")); err != nil || n != 1 {
		t.Errorf("%d keys, %v, after one of two prefixes was flushed", n, err)
	}
	if s.CanPause() {
		s.Pause()
		if _, err := redis.DoWithTimeout(conn, 100*time.Millisecond, "PING"); err == nil {
			t.Error("a paused server answered")
		}
		s.Resume()
		conn = s.Conn()
	}
	if moved := s.Advance(2 * time.Minute); moved != !s.Real() {
		t.Errorf("Advance = %v on %s", moved, s.Backend())
	} else if n, err := redis.Int(conn.Do("EXISTS", other+":a")); err != nil || moved != (n == 0) {
		t.Errorf("%d keys, %v, after Advance", n, err)
	}
	if !s.CanKill() {
		return
	}
	s.Kill()
	if _, err := conn.Do("PING"); err == nil {
		t.Error("a killed server answered")
	}
	addr := s.Addr()
	s.Restart()
	if pong, err := redis.String(s.Conn().Do("PING")); err != nil || pong != "PONG" || s.Addr() != addr {
		t.Errorf("PING after a restart at %s: %q, %v", s.Addr(), pong, err)
	}
}

func TestEmbeddedTime(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Only(redistest.Embedded), redistest.Frozen())
	conn := s.Conn()
	before, err := redis.Strings(conn.Do("TIME"))
	if err != nil {
		t.Fatal(err)
	}
	s.Advance(time.Minute)
	after, err := redis.Strings(conn.Do("TIME"))
	if err != nil || before[0] != "1767323045" || after[0] != "1767323105" {
		t.Errorf("TIME %q, then %q, %v", before, after, err)
	}
	follows := redistest.Start(t, redistest.Only(redistest.Embedded))
	conn = follows.Conn()
	if _, err := conn.Do("SET", "a", "1", "PX", 30); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); ; {
		if n, err := redis.Int(conn.Do("EXISTS", "a")); err == nil && n == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatal("the key of 30 ms lives on after 10 s")
		}
	}
}

func TestArgumentsReachTheServer(t *testing.T) {
	t.Parallel()
	s, err := redistest.TryStart(t, redistest.WithArgs("--appendonly", "yes", "--appendfsync", "always"))
	if errors.Is(err, redistest.ErrNone) {
		t.Skipf("no server with options here: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Conn().Do("SET", "a", "1"); err != nil {
		t.Fatal(err)
	}
	s.Kill()
	s.Restart()
	if got, err := redis.String(s.Conn().Do("GET", "a")); err != nil || got != "1" {
		t.Errorf("after a kill the key holds %q, %v", got, err)
	}
}

func TestAGivenAddressIsUsedAndNothingElse(t *testing.T) {
	s := redistest.Start(t, redistest.Only(redistest.Embedded))
	t.Setenv("REDIS_ADDR", s.Addr())
	t.Setenv("REQUIRE_DOCKER", "")
	lent := redistest.Start(t)
	if lent.Backend() != redistest.Address || lent.Addr() != s.Addr() || lent.CanKill() || lent.CanPause() || lent.Miniredis() != nil {
		t.Errorf("%s server at %s", lent.Backend(), lent.Addr())
	}
	t.Setenv("REQUIRE_DOCKER", "1")
	if _, err := redistest.TryStart(t); err == nil || !strings.Contains(err.Error(), "REQUIRE_DOCKER") {
		t.Errorf("REQUIRE_DOCKER=1 with REDIS_ADDR: %v", err)
	}
}

func TestANamedProgramIsUsedAndNothingElse(t *testing.T) {
	t.Setenv("REDIS_ADDR", "")
	t.Setenv("REQUIRE_DOCKER", "")
	t.Setenv("REDIS_SERVER", "no-such-server")
	if _, err := redistest.TryStart(t); err == nil || errors.Is(err, redistest.ErrNone) || !strings.Contains(err.Error(), "no-such-server") {
		t.Errorf("a program that is not there: %v", err)
	}
	if s := redistest.Start(t, redistest.Only(redistest.Embedded)); s.Backend() != redistest.Embedded {
		t.Errorf("%s server, want an embedded one", s.Backend())
	}
	path, err := exec.LookPath("valkey-server")
	if err != nil {
		path, err = exec.LookPath("redis-server")
	}
	if err != nil {
		t.Log("no program is on PATH to be named")
		return
	}
	t.Setenv("REDIS_SERVER", path)
	s := redistest.Start(t)
	if s.Backend() != redistest.Process {
		t.Errorf("%s server, want the program %s", s.Backend(), path)
	}
	info, err := redis.String(s.Conn().Do("INFO", "server"))
	if err != nil || !strings.Contains(info, filepath.Base(path)) && !strings.Contains(info, path) {
		t.Errorf("%s runs %v: %s", path, err, info)
	}
}
