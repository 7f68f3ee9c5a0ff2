// This file has servers lose what they acknowledged, in part: by going back to a
// snapshot and by evicting; and has one that is further away than a timeout.

package integration

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/hanzoai/limiters/ratelimit"
)

// heldUnder is what a server's counters under a prefix hold, by entity.
func heldUnder(t *testing.T, conn redis.Conn, prefix string) map[string]uint64 {
	t.Helper()
	sums := map[string]uint64{}
	keys, err := redis.Strings(conn.Do("KEYS", prefix+":team*:*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		n, err := redis.Uint64(conn.Do("GET", key))
		if errors.Is(err, redis.ErrNil) {
			continue // evicted meanwhile
		} else if err != nil {
			t.Fatal(err)
		}
		entity, _, _ := strings.Cut(key[len(prefix)+1:], ":")
		sums[entity] += n
	}
	return sums
}

// A server that goes back to a snapshot has lost what it acknowledged since. It counts
// nothing twice: not what it has still, nor the batch that was under way.
func TestARollbackDoublesNothing(t *testing.T) {
	t.Parallel()
	s := realServer(t, "--databases 1")
	lim := limiterAt(t, s.URL(), "p")
	count := func(n uint64) {
		t.Helper()
		lim.Check("team", n)
		if err := lim.Sync(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	count(5)
	if _, err := s.Conn().Do("SAVE"); err != nil {
		t.Fatal(err)
	}
	count(7)
	count(11)
	s.Kill()
	s.Restart()
	eventually(t, "delivering after the restart", func() bool { return lim.Sync(context.Background()) == nil })
	count(13)
	count(17)
	if got := heldUnder(t, s.Conn(), "p")["team"]; got != 5+13+17 {
		t.Errorf("the server holds %d, want %d: the snapshot's 5, and what came after it was read", got, 5+13+17)
	}
	st := lim.Stats()
	if st.Counted != 53 || st.Delivered+st.Dropped.Unknown != 53 || st.Undelivered != 0 {
		t.Errorf("counted %d, delivered %d, dropped %+v", st.Counted, st.Delivered, st.Dropped)
	}
}

// A server that evicts forgets counters and sequence keys, one by one. What it has is
// never more than what was counted.
func TestEvictionDoublesNothing(t *testing.T) {
	t.Parallel()
	s := realServer(t, "--databases 1 --maxmemory-policy allkeys-random --maxmemory 4mb")
	lim := limiterAt(t, s.URL(), "p")
	conn := s.Conn()
	const teams, rounds = 50, 40
	for round := range rounds {
		for team := range teams {
			lim.Check(fmt.Sprint("team", team), uint64(1+team%3))
		}
		if err := lim.Sync(context.Background()); err != nil {
			t.Fatal(err)
		}
		for i := range 30 { // others use the server too
			if _, err := conn.Do("SET", fmt.Sprintf("other:%d:%d", round, i), make([]byte, 10_000)); err != nil {
				t.Fatal(err)
			}
		}
	}
	held, missing := heldUnder(t, conn, "p"), uint64(0)
	for team := range teams {
		counted := uint64(rounds * (1 + team%3))
		got := held[fmt.Sprint("team", team)]
		if got > counted {
			t.Errorf("team%d: the server holds %d, counted %d", team, got, counted)
		}
		missing += counted - min(got, counted)
	}
	if missing == 0 {
		t.Error("nothing was evicted: nothing was tested")
	}
	st := lim.Stats()
	if st.Delivered+st.Dropped.Unknown != st.Counted || st.Undelivered != 0 {
		t.Errorf("counted %d, delivered %d, dropped %+v", st.Counted, st.Delivered, st.Dropped)
	}
	t.Logf("%d of %d units were evicted, %d are of unknown fate", missing, st.Counted, st.Dropped.Unknown)
}

// A distance is a proxy that delivers everything late, in both directions.
type distance struct {
	delay func() time.Duration
}

// serve forwards the connections to addr until the test ends, and returns its address.
func (d distance) serve(t *testing.T, addr string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	t.Cleanup(func() {
		_ = l.Close()
		running.Wait()
	})
	running.Go(func() { // ends with the listener
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", addr)
			if err != nil {
				_ = near.Close()
				continue
			}
			running.Go(func() { d.copy(near, far) }) // each ends when either side closes
			running.Go(func() { d.copy(far, near) })
		}
	})
	return l.Addr().String()
}

func (d distance) copy(to, from net.Conn) {
	defer func() { _, _ = to.Close(), from.Close() }()
	buffer := make([]byte, 1<<16)
	for {
		n, err := from.Read(buffer)
		time.Sleep(d.delay())
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// A server whose answers come later than the timeout applies what it is sent, over and
// over; each unit counts once, and all are delivered as soon as it is near enough.
func TestARoundTripAboveTheTimeoutDoublesNothing(t *testing.T) {
	t.Parallel()
	s := realServer(t, "--databases 1")
	var mu sync.Mutex
	delay := 5 * time.Millisecond
	far := distance{func() time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return delay
	}}.serve(t, s.Addr())
	cfg := ratelimit.DefaultConfig() // which waits 100 ms for an answer
	cfg.RedisKeyPrefix, cfg.RedisURLs = "p", []string{"redis://" + far}
	lim, err := ratelimit.New(cfg, ratelimit.WithLogger(nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lim.Close(context.Background()) })
	count := func() {
		lim.Check("team", 3)
		_ = lim.Sync(context.Background()) // its answer may come too late
	}
	count()
	mu.Lock()
	delay = 70 * time.Millisecond
	mu.Unlock()
	for range 8 {
		count()
		time.Sleep(50 * time.Millisecond)
	}
	mu.Lock()
	delay = 5 * time.Millisecond
	mu.Unlock()
	eventually(t, "delivering once the server is near", func() bool {
		_ = lim.Sync(context.Background())
		return lim.Stats().Undelivered == 0
	})
	time.Sleep(200 * time.Millisecond) // what is under way arrives
	st := lim.Stats()
	if got := heldUnder(t, s.Conn(), "p")["team"]; got != st.Counted || st.Delivered != st.Counted || st.Counted != 27 {
		t.Errorf("the server holds %d, %+v", got, st)
	}
}
