package faultproxy_test

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/gomodule/redigo/redis"
	"go.uber.org/goleak"

	"github.com/hanzoai/limiters/testing/integration/faultproxy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A rig is a proxy in front of an embedded server.
type rig struct {
	*faultproxy.Proxy
	t      *testing.T
	server *miniredis.Miniredis
}

func newRig(t *testing.T) *rig {
	t.Helper()
	server := miniredis.RunT(t)
	p, err := faultproxy.Listen(server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return &rig{Proxy: p, t: t, server: server}
}

// dial connects through the proxy, with a timeout for replies.
func (r *rig) dial(timeout time.Duration) redis.Conn {
	r.t.Helper()
	conn, err := redis.Dial("tcp", r.Addr(), redis.DialReadTimeout(timeout), redis.DialConnectTimeout(10*time.Second))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// held returns what the server itself has under a key.
func (r *rig) held(key string) string {
	text, _ := r.server.Get(key) // an error is a key that does not exist
	return text
}

func TestAProxyPassesEverythingOn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	conn := r.dial(10 * time.Second)
	big := strings.Repeat("\r\n$", 100_000)
	for _, value := range []string{"", "a", big} {
		if _, err := conn.Do("SET", "k", value); err != nil {
			t.Fatal(err)
		}
		if got, err := redis.String(conn.Do("GET", "k")); err != nil || got != value {
			t.Errorf("%d bytes came back as %d, %v", len(value), len(got), err)
		}
	}
	got, err := redis.Values(conn.Do("EVAL", "return {1, {2, 'x', {}}, false}", 0))
	if want := "[1 [2 [120] []] <nil>]"; err != nil || fmt.Sprint(got) != want {
		t.Errorf("nested: %v, %v, want %s", got, err, want)
	}
	if _, err := conn.Do("NOSUCH"); err == nil || !strings.Contains(err.Error(), "unknown command") {
		t.Errorf("an error reply came as %v", err)
	}
	if got := r.Requests(); got != 8 {
		t.Errorf("%d requests, want 8", got)
	}
}

// TestActions: what the client sees of each, and whether the server did it.
func TestActions(t *testing.T) {
	t.Parallel()
	const brief = 100 * time.Millisecond
	for _, row := range []struct {
		name    string
		action  faultproxy.Action
		applied bool
		lost    bool // the connection
		text    string
	}{
		{"pass", faultproxy.Pass, true, false, ""},
		{"cut before", faultproxy.CutBefore, false, true, ""},
		{"cut inside", faultproxy.CutInside, false, true, ""},
		{"cut after", faultproxy.CutAfter, true, true, ""},
		{"cut reply", faultproxy.CutReply, true, true, ""},
		{"delay", faultproxy.Delay(time.Millisecond), true, false, ""},
		{"delay beyond the timeout", faultproxy.Delay(3 * brief), true, true, ""},
		{"hold", faultproxy.Hold(time.Millisecond), true, false, ""},
		{"hold beyond the timeout", faultproxy.Hold(3 * brief), true, true, ""},
		{"answer", faultproxy.Answer("ERR upstream timeout"), false, false, "ERR upstream timeout"},
		{"answer after", faultproxy.AnswerAfter("ERR upstream timeout"), true, false, "ERR upstream timeout"},
		{"hang", faultproxy.Hang, false, true, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.Handle(func(request faultproxy.Request) faultproxy.Action {
				if request.Is("SET") && string(request.Args[1]) == "k" {
					return row.action
				}
				return faultproxy.Pass
			})
			timeout := 10 * time.Second
			if row.lost {
				timeout = brief
			}
			conn := r.dial(timeout)
			_, err := conn.Do("SET", "k", "v")
			var said redis.Error
			switch {
			case row.lost:
				if err == nil || conn.Err() == nil {
					t.Errorf("the client saw %v, its connection %v; want both lost", err, conn.Err())
				}
			case row.text != "":
				if !errors.As(err, &said) || string(said) != row.text || conn.Err() != nil {
					t.Errorf("the client saw %v, its connection %v", err, conn.Err())
				}
			case err != nil:
				t.Error(err)
			}
			r.Settle()
			if got := r.held("k") == "v"; got != row.applied {
				t.Errorf("the server did it: %t, want %t", got, row.applied)
			}
		})
	}
}

func TestDownRefusesUntilUp(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	before := r.dial(10 * time.Second)
	if _, err := before.Do("PING"); err != nil {
		t.Fatal(err)
	}
	r.Down()
	if _, err := before.Do("PING"); err == nil {
		t.Error("a connection outlived Down")
	}
	if conn, err := net.Dial("tcp", r.Addr()); err == nil {
		_ = conn.Close()
		t.Error("a new connection was accepted")
	}
	if err := r.Up(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.dial(10 * time.Second).Do("PING"); err != nil {
		t.Errorf("after Up: %v", err)
	}
}

func TestRetargetCountsForNewConnections(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	other := miniredis.RunT(t)
	old := r.dial(10 * time.Second)
	if _, err := old.Do("SET", "k", "old"); err != nil {
		t.Fatal(err)
	}
	r.Retarget(other.Addr())
	if _, err := old.Do("SET", "l", "old"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.dial(10*time.Second).Do("SET", "k", "new"); err != nil {
		t.Fatal(err)
	}
	if got, _ := other.Get("k"); got != "new" || r.held("k") != "old" || r.held("l") != "old" {
		t.Errorf("the new server holds %q, the old one %q and %q", got, r.held("k"), r.held("l"))
	}
}

// TestHooksRunOneAtATime, with the requests' numbers each once.
func TestHooksRunOneAtATime(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var numbers []uint64 // no lock: the race detector is the assertion
	r.Handle(func(request faultproxy.Request) faultproxy.Action {
		numbers = append(numbers, request.Number)
		return faultproxy.Pass
	})
	var group sync.WaitGroup
	for range 4 {
		conn := r.dial(10 * time.Second)
		group.Go(func() {
			for range 25 {
				if _, err := conn.Do("PING"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	r.Handle(nil)
	slices.Sort(numbers)
	if len(numbers) != 100 || numbers[0] != 1 || numbers[99] != 100 || len(slices.Compact(numbers)) != 100 {
		t.Errorf("numbers: %v", numbers)
	}
}

func TestCloseEndsWhatHangs(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.Handle(func(faultproxy.Request) faultproxy.Action { return faultproxy.Hang })
	conn := r.dial(10 * time.Second)
	done := make(chan error, 1)
	go func() { // ends with the connection
		_, err := conn.Do("PING")
		done <- err
	}()
	for r.Requests() == 0 {
		time.Sleep(time.Millisecond)
	}
	r.Close()
	r.Close()
	if err := <-done; err == nil {
		t.Error("a request that hangs was answered")
	}
}
