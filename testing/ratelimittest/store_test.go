package ratelimittest_test

// This file breaks the store in every way and counts what arrives.

import (
	"fmt"
	"testing"
	"time"

	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/testing/ratelimittest"
)

// counterKey is the key of an entity's counter at a time.
func counterKey(cfg ratelimit.Config, entity string, at time.Time) string {
	return fmt.Sprintf("%s:%s:%d", cfg.RedisKeyPrefix, entity, at.UnixNano()/int64(cfg.WindowInterval))
}

func TestEveryFailureThenHealed(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		failure  ratelimittest.Failure
		held     int64  // units in the store while it fails
		attempts uint64 // in one tick
		up       bool
	}{
		{ratelimittest.None, 7, 1, true},
		{ratelimittest.Unreachable, 0, 1, false},
		{ratelimittest.Refused, 0, 1, false},
		{ratelimittest.RequestLost, 0, 1, false},
		{ratelimittest.ReplyLost, 7, 1, false},
		{ratelimittest.Reset, 7, 2, false}, // tried again at once
	} {
		t.Run(row.failure.String(), func(t *testing.T) {
			t.Parallel()
			cfg := ratelimit.DefaultConfig()
			c := ratelimittest.NewClock()
			s := ratelimittest.NewStore(c)
			l := ratelimittest.NewLimiter(t, c, cfg, ratelimittest.WithStore(s))
			l.Check("k", 7)
			s.Fail(row.failure)
			c.Advance(time.Second)
			held, _ := s.Total(counterKey(cfg, "k", c.Time()))
			if r := s.Requests(); held != row.held || r.Attempts != row.attempts {
				t.Errorf("after a tick the store holds %d after %d attempts, want %d after %d", held, r.Attempts, row.held, row.attempts)
			}
			if up := l.Stats().Partitions[0].Up; up != row.up {
				t.Errorf("up = %v, want %v", up, row.up)
			}
			s.Heal()
			c.Advance(time.Second)
			held, _ = s.Total(counterKey(cfg, "k", c.Time()))
			if st := l.Stats(); held != 7 || st.Delivered != 7 || st.Undelivered != 0 || st.Dropped.Total() != 0 {
				t.Errorf("healed, the store holds %d; delivered %d, undelivered %d, dropped %d; want 7, 7, 0, 0",
					held, st.Delivered, st.Undelivered, st.Dropped.Total())
			}
		})
	}
}

func TestFailNextFailsThatOften(t *testing.T) {
	t.Parallel()
	c := ratelimittest.NewClock()
	s := ratelimittest.NewStore(c)
	l := ratelimittest.NewLimiter(t, c, ratelimit.DefaultConfig(), ratelimittest.WithStore(s))
	s.FailNext(3, ratelimittest.Refused)
	l.Check("k", 1)
	for tick, want := range []uint64{0, 0, 0, 1, 1} {
		c.Advance(time.Second)
		if got := s.Requests().Answered; got != want {
			t.Errorf("%d requests answered after tick %d, want %d", got, tick+1, want)
		}
	}
}

// A failing link cuts off one limiter, a failing store all.
func TestLinksFailAlone(t *testing.T) {
	t.Parallel()
	cfg := ratelimit.DefaultConfig()
	c := ratelimittest.NewClock()
	s := ratelimittest.NewStore(c)
	links := []*ratelimittest.Store{s.Link(), s.Link()}
	for _, link := range links {
		ratelimittest.NewLimiter(t, c, cfg, ratelimittest.WithStore(link)).Check("k", 1)
	}
	links[0].Fail(ratelimittest.Unreachable)
	c.Advance(time.Second)
	if held, _ := s.Total(counterKey(cfg, "k", c.Time())); held != 1 {
		t.Errorf("with one of two links cut the store holds %d, want 1", held)
	}
	links[0].Heal()
	s.Fail(ratelimittest.Refused)
	c.Advance(time.Second)
	if held, _ := s.Total(counterKey(cfg, "k", c.Time())); held != 1 {
		t.Errorf("with the store refusing it holds %d, want 1", held)
	}
	s.Heal()
	c.Advance(time.Second)
	if held, _ := s.Total(counterKey(cfg, "k", c.Time())); held != 2 {
		t.Errorf("healed, the store holds %d, want 2", held)
	}
	if got := s.Requests(); got != (ratelimittest.Requests{Attempts: 3, Answered: 2, Writes: 2, Reads: 2}) {
		t.Errorf("the store was asked %+v", got)
	}
}

func TestPoisonAndFlush(t *testing.T) {
	t.Parallel()
	cfg := ratelimit.DefaultConfig()
	c := ratelimittest.NewClock()
	s := ratelimittest.NewStore(c)
	l := ratelimittest.NewLimiter(t, c, cfg, ratelimittest.WithStore(s))
	key := counterKey(cfg, "k", c.Time())
	s.Poison(key)
	l.Check("k", 3)
	c.Advance(time.Second)
	if st := l.Stats(); st.Dropped.Poisoned != 3 {
		t.Errorf("dropped as poisoned: %d units, want 3", st.Dropped.Poisoned)
	}
	if total, ok := s.Total(key); total != -1 || !ok {
		t.Errorf("Total = %d, %v; want -1, true", total, ok)
	}
	s.Flush()
	if keys := s.Keys(); len(keys) != 0 {
		t.Errorf("after Flush the store holds %q", keys)
	}
}

func TestABadConfigurationFailsTheTest(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("without a test a zero Config did not panic")
		}
	}()
	ratelimittest.NewLimiter(nil, ratelimittest.NewClock(), ratelimit.Config{})
}
