package main

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/testing/ratelimittest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// run consumes d of the stream on a fake clock.
func run(t *testing.T, cfg ratelimit.Config, d time.Duration) map[string]*tally {
	t.Helper()
	clock := ratelimittest.NewClock()
	lim, err := ratelimit.New(cfg, ratelimit.WithClock(clock))
	if err != nil {
		t.Fatal(err)
	}
	batches := make(chan []event)
	go func() {
		defer close(batches)
		for range d / (20 * time.Millisecond) {
			batch := batchOf(clock.Time())
			batches <- batch
			batches <- nil // the one before has been handled: time may go on
			clock.Advance(20 * time.Millisecond)
		}
	}()
	consumed := consume(lim, batches)
	if err := lim.Close(t.Context()); err != nil {
		t.Error(err)
	}
	return consumed
}

func TestOnlyTheNoisyTeamIsStripped(t *testing.T) {
	t.Parallel()
	consumed := run(t, config(), 10*time.Second)
	for _, row := range []struct {
		team       string
		limit, sum uint64
		noisy      bool
	}{
		{"calm", 100, 500, false}, {"big", 1000, 5000, false}, {"noisy", 100, 3000, true},
	} {
		c := consumed[row.team]
		if c == nil || c.limit != row.limit || c.whole+c.stripped != row.sum || c.stripped > 0 != row.noisy {
			t.Errorf("%s: %+v, want a limit of %d, %d events, stripped: %v", row.team, c, row.limit, row.sum, row.noisy)
		}
	}
}

// Without CountLimited a team over its limit still has about its limit kept whole;
// with it, next to nothing.
func TestWhatIsStrippedCounts(t *testing.T) {
	t.Parallel()
	cfg := config()
	locked := run(t, cfg, 10*time.Second)["noisy"]
	cfg.CountLimited = false
	shared := run(t, cfg, 10*time.Second)["noisy"]
	if locked.whole > 200 || shared.whole < 800 {
		t.Errorf("kept whole in ten seconds: %d counting what is stripped, %d not; want at most 200, at least 800", locked.whole, shared.whole)
	}
}

func TestStrippedEventsAreKept(t *testing.T) {
	t.Parallel()
	clock := ratelimittest.NewClock()
	lim, err := ratelimit.New(config(), ratelimit.WithClock(clock))
	if err != nil {
		t.Fatal(err)
	}
	defer lim.Close(t.Context())
	var all []event
	for range 30 {
		all = append(all, batchOf(clock.Time())...)
	}
	batches := make(chan []event, 1)
	batches <- all
	close(batches)
	consume(lim, batches)
	stripped := 0
	for _, e := range all {
		if e.team == "" || e.time.IsZero() {
			t.Fatalf("an event lost more than its properties: %+v", e)
		}
		if e.properties == nil {
			stripped++
		}
	}
	if stripped != 81 { // noisy: 180, of which 99 pass
		t.Errorf("%d events were stripped, want 81", stripped)
	}
}

func TestTheStreamEnds(t *testing.T) {
	t.Parallel()
	batches := 0
	for batch := range stream(100 * time.Millisecond) {
		if batches++; len(batch) != 17 {
			t.Errorf("a batch of %d events, want 17", len(batch))
		}
	}
	if batches != 5 {
		t.Errorf("%d batches, want 5", batches)
	}
}
