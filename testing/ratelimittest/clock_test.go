package ratelimittest_test

// This file drives the clock, and what is late on it, along timelines.

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/testing/ratelimittest"
)

func TestClockMovesOnlyWhenTold(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	c := ratelimittest.NewClock()
	for _, row := range []struct {
		what       string
		do         func()
		wall, mono time.Duration // since the start
	}{
		{"nothing", func() {}, 0, 0},
		{"Advance", func() { c.Advance(time.Minute) }, time.Minute, time.Minute},
		{"StepWall back", func() { c.StepWall(-time.Hour) }, -59 * time.Minute, time.Minute},
		{"SetWall", func() { c.SetWall(start.Add(time.Second)) }, time.Second, time.Minute},
		{"Advance again", func() { c.Advance(time.Second) }, 2 * time.Second, 61 * time.Second},
	} {
		_, before := ratelimittest.NewClock().Now()
		row.do()
		_, mono := c.Now()
		if got := c.Time().Sub(start); got != row.wall {
			t.Errorf("%s: wall at %v, want %v", row.what, got, row.wall)
		}
		if got := time.Duration(mono - before); got != row.mono {
			t.Errorf("%s: mono at %v, want %v", row.what, got, row.mono)
		}
	}
}

func TestTicksRunAtTheirTimes(t *testing.T) {
	t.Parallel()
	c := ratelimittest.NewClockAt(time.Unix(0, 0))
	var at []int64
	note := func() { wall, _ := c.Now(); at = append(at, wall/int64(time.Second)) }
	stop := c.Tick(2*time.Second, note)
	c.Tick(3*time.Second, note)
	c.Advance(6 * time.Second)
	stop()
	c.Advance(6 * time.Second)
	if want := []int64{2, 3, 4, 6, 6, 9, 12}; !slices.Equal(at, want) {
		t.Errorf("ticks every 2 s (until 6 s) and every 3 s ran at %v, want %v", at, want)
	}
}

// A reply that is late leaves the limiter as it was until it arrives, covers the
// ticks meanwhile, and is then applied.
func TestADelayedReplyArrivesLater(t *testing.T) {
	t.Parallel()
	cfg := ratelimit.DefaultConfig()
	cfg.TickInterval = 20 * time.Millisecond
	c := ratelimittest.NewClock()
	s := ratelimittest.NewStore(c)
	l := ratelimittest.NewLimiter(t, c, cfg, ratelimittest.WithStore(s))
	s.Delay(50 * time.Millisecond)
	l.Check("k", 5)
	for _, row := range []struct {
		advance                      time.Duration
		attempts, answered           uint64
		delivered, undelivered, held uint64
	}{
		{19 * time.Millisecond, 0, 0, 0, 5, 0},
		{time.Millisecond, 1, 0, 0, 5, 5},       // 20: sent
		{49 * time.Millisecond, 1, 0, 0, 5, 5},  // 69: ticks at 40 and 60 are covered
		{time.Millisecond, 1, 1, 5, 0, 5},       // 70: the reply
		{100 * time.Millisecond, 1, 1, 5, 0, 5}, // nothing to say
	} {
		c.Advance(row.advance)
		r, st := s.Requests(), l.Stats()
		held, _ := s.Total(counterKey(cfg, "k", c.Time()))
		if r.Attempts != row.attempts || r.Answered != row.answered {
			t.Errorf("at %v: %d attempts, %d answered; want %d, %d", c.Time(), r.Attempts, r.Answered, row.attempts, row.answered)
		}
		if st.Delivered != row.delivered || st.Undelivered != row.undelivered || uint64(held) != row.held {
			t.Errorf("at %v: delivered %d, undelivered %d, the store holds %d; want %d, %d, %d", c.Time(),
				st.Delivered, st.Undelivered, held, row.delivered, row.undelivered, row.held)
		}
	}
}

// A reply slower than the timeout is waited for longer each time: no unit counts twice,
// and all are delivered, from then on with the first attempt.
func TestARoundTripBeyondTheTimeoutDelivers(t *testing.T) {
	t.Parallel()
	for _, delay := range []time.Duration{100, 120, 150, 199, 200, 350, 790, 990} {
		delay *= time.Millisecond
		cfg := ratelimit.DefaultConfig()
		c := ratelimittest.NewClock()
		s := ratelimittest.NewStore(c)
		l := ratelimittest.NewLimiter(t, c, cfg, ratelimittest.WithStore(s))
		s.Delay(delay)
		for range 24 {
			l.Check("k", 1)
			c.Advance(time.Second)
		}
		c.Advance(2 * time.Second)
		held, _ := s.Total(counterKey(cfg, "k", c.Time()))
		if st := l.Stats(); held != 24 || st.Delivered != 24 || st.Undelivered != 0 || st.Dropped.Total() != 0 {
			t.Errorf("%v: the store holds %d, delivered %d, undelivered %d; want 24, 24, 0", delay, held, st.Delivered, st.Undelivered)
		}
		if r := s.Requests(); r.Attempts-r.Answered > 4 {
			t.Errorf("%v: %d of %d attempts were not answered, want the first few", delay, r.Attempts-r.Answered, r.Attempts)
		}
	}
}

// Where replies come later than anybody waits for, a batch is sent once per tick, and
// counts once.
func TestARoundTripBeyondAllPatienceCountsOnce(t *testing.T) {
	t.Parallel()
	cfg := ratelimit.DefaultConfig()
	c := ratelimittest.NewClock()
	s := ratelimittest.NewStore(c)
	l := ratelimittest.NewLimiter(t, c, cfg, ratelimittest.WithStore(s))
	s.Delay(1500 * time.Millisecond)
	l.Check("k", 5)
	c.Advance(8 * time.Second)
	if r := s.Requests(); r.Attempts < 5 || r.Attempts > 8 || r.Answered != 0 {
		t.Errorf("%d attempts, %d answered in 8 ticks; want one a tick, or every other, and 0", r.Attempts, r.Answered)
	}
	s.Heal()
	c.Advance(2 * time.Second)
	held, _ := s.Total(counterKey(cfg, "k", c.Time()))
	if st := l.Stats(); held != 5 || st.Delivered != 5 || st.Undelivered != 0 {
		t.Errorf("the store holds %d, delivered %d, undelivered %d; want 5, 5, 0", held, st.Delivered, st.Undelivered)
	}
}

// Closing a limiter whose tick waits for a reply ends that tick.
func TestCloseEndsATickThatWaits(t *testing.T) {
	t.Parallel()
	c := ratelimittest.NewClock()
	s := ratelimittest.NewStore(c)
	l := ratelimittest.NewLimiter(t, c, ratelimit.DefaultConfig(), ratelimittest.WithStore(s))
	s.Delay(90 * time.Millisecond)
	l.Check("k", 5)
	c.Advance(time.Second)
	if err := l.Close(context.Background()); err != nil {
		t.Errorf("Close = %v", err)
	}
	if held, _ := s.Total(counterKey(ratelimit.DefaultConfig(), "k", c.Time())); held != 5 {
		t.Errorf("the store holds %d units, want 5", held)
	}
	c.Advance(time.Second) // the reply that nobody waits for
}
