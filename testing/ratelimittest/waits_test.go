package ratelimittest

// This file tests calls that wait on the clock of a test.

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/hanzoai/limiters/ratelimit"
)

func TestRunWaitsLetsTimePassAsNeeded(t *testing.T) {
	t.Parallel()
	for range 20 { // the same every time
		clock := NewClock()
		cfg := ratelimit.DefaultConfig()
		cfg.GlobalThreshold, cfg.Inclusive, cfg.Window, cfg.WindowInterval = 10, true, ratelimit.WindowFixed, 7*time.Second
		lim := NewLimiter(t, clock, cfg)
		began := clock.Time()
		var at []time.Duration
		clock.RunWaits(lim, func() {
			for range 5 {
				if err := lim.Wait(context.Background(), "k", 4); err != nil {
					t.Error(err)
				}
				at = append(at, clock.Time().Sub(began))
			}
		})
		first := 7*time.Second - time.Duration(began.UnixNano()%int64(7*time.Second))
		for i, want := range []time.Duration{0, 0, first, first, first + 7*time.Second} {
			if at[i] != want {
				t.Fatalf("call %d passed at %v, want %v", i, at[i], want)
			}
		}
	}
}

func TestTimeoutsOnTheClock(t *testing.T) {
	t.Parallel()
	clock := NewClock()
	ctx, cancel := clock.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if at, ok := ctx.Deadline(); !ok || at != clock.Time().Add(time.Minute) || ctx.Err() != nil {
		t.Errorf("deadline %v, %v", at, ctx.Err())
	}
	shorter, cancelShorter := clock.WithTimeout(ctx, time.Hour)
	defer cancelShorter()
	if at, _ := shorter.Deadline(); at != clock.Time().Add(time.Minute) {
		t.Errorf("deadline %v, want the parent's", at)
	}
	canceled, cancelNow := clock.WithTimeout(context.Background(), time.Second)
	cancelNow()
	clock.Advance(time.Minute)
	<-ctx.Done()
	<-shorter.Done()
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) || !errors.Is(canceled.Err(), context.Canceled) || shorter.Err() == nil {
		t.Errorf("%v, %v, %v", ctx.Err(), canceled.Err(), shorter.Err())
	}
}

// A call whose context ends on the clock ends there; one that cannot be in time ends at
// once.
func TestWaitWithATimeoutOnTheClock(t *testing.T) {
	t.Parallel()
	clock := NewClock()
	cfg := ratelimit.DefaultConfig()
	cfg.GlobalThreshold, cfg.Inclusive, cfg.Window = 10, true, ratelimit.WindowFixed
	lim := NewLimiter(t, clock, cfg)
	lim.Check("k", 10)
	began := clock.Time()
	clock.RunWaits(lim, func() {
		ctx, cancel := clock.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := lim.Wait(ctx, "k", 1); !errors.Is(err, context.DeadlineExceeded) || clock.Time() != began {
			t.Errorf("%v after %v", err, clock.Time().Sub(began))
		}
		ctx, cancel = clock.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := lim.Wait(ctx, "k", 1); err != nil || clock.Time().Sub(began) != time.Minute {
			t.Errorf("%v after %v", err, clock.Time().Sub(began))
		}
	})
}
