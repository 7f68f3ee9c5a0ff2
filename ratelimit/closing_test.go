package ratelimit

// This file tests for how long Close goes on trying: its context says it.

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/hanzoai/limiters/ratelimit/store"
)

// closesWithin closes the limiter with so much time, 0 being no deadline, and returns
// what it left and how long it took.
func (b *bubble) closesWithin(t *testing.T, limit time.Duration) (left CloseError, took time.Duration) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	if limit > 0 {
		ctx, cancel = context.WithTimeout(context.Background(), limit)
	}
	defer cancel()
	began := time.Now()
	err := b.Close(ctx)
	took = time.Since(began)
	if said := new(CloseError); errors.As(err, &said) {
		left = *said
	} else if err != nil {
		t.Errorf("Close = %v, want a CloseError or nil", err)
	}
	if s := b.Stats(); s.Undelivered != 0 || s.Counted != s.Delivered+s.Dropped.Total() {
		t.Errorf("after Close %+v, want every unit delivered or dropped", s)
	}
	return left, took
}

// An outage that ends within the context costs nothing, whatever it looks like: so a
// rolling restart outlasts a failover.
func TestCloseOutlastsAnOutageWithinItsContext(t *testing.T) {
	t.Parallel()
	for _, failure := range []error{errUnreachable, errReadOnly, errTimeout, errEOF} {
		for _, c := range []struct{ outage, limit time.Duration }{
			{700 * time.Millisecond, 2 * time.Second},
			{4 * time.Second, 10 * time.Second},
			{25 * time.Second, 30 * time.Second},
			{3 * time.Second, 0}, // of no deadline
		} {
			inBubble(t, nil, func(t *testing.T, b *bubble) {
				b.Check("a", 3)
				b.Check("b", 4)
				closing := time.Now()
				b.hook(func(*store.Batch) error {
					if time.Since(closing) < c.outage {
						return failure
					}
					return nil
				}, nil)
				left, took := b.closesWithin(t, c.limit)
				if left != (CloseError{}) || b.Stats().Delivered != 7 {
					t.Errorf("%v for %v, Close with %v: left %+v, want nothing", failure, c.outage, c.limit, left)
				}
				if took < c.outage || took > c.outage+lastBackoff {
					t.Errorf("%v for %v, Close with %v took %v, want at most %v more", failure, c.outage, c.limit, took, lastBackoff)
				}
				if got, most := len(b.attempts()), 2*(5+int(c.outage/lastBackoff)); got > most { // two each where connections close
					t.Errorf("%v for %v: %d attempts, want at most %d", failure, c.outage, got, most)
				}
			})
		}
	}
}

// One that does not end takes what the context allows, or a few seconds if that allows
// everything.
func TestCloseGivesUpWhenItsContextSays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ limit, want time.Duration }{
		{150 * time.Millisecond, 150 * time.Millisecond}, {time.Second, time.Second}, {12 * time.Second, 12 * time.Second}, {0, closePatience},
	} {
		inBubble(t, nil, func(t *testing.T, b *bubble) {
			b.breaks(nil, errTimeout)
			b.Check("a", 3)
			left, took := b.closesWithin(t, c.limit)
			if took != c.want || left != (CloseError{Unknown: 3}) {
				t.Errorf("Close with %v took %v and left %+v, want %v and 3 units of unknown fate", c.limit, took, left, c.want)
			}
			if got, most := len(b.attempts()), 6+int(c.want/lastBackoff); got < 2 || got > most {
				t.Errorf("Close with %v made %d attempts, want 2 to %d", c.limit, got, most)
			}
		})
	}
}

// Headway begins the patience anew: a partition that is slow is not given up.
func TestCloseOfManyKeysGoesOnWhileItMakesHeadway(t *testing.T) {
	t.Parallel()
	inBubble(t, func(c *Config) { c.MaxSyncKeysPerTick = 1 }, func(t *testing.T, b *bubble) {
		const keys = 8
		for i := range keys {
			b.Check(string(rune('a'+i)), 1)
		}
		var healed time.Time // each batch fails for most of the patience
		b.hook(func(*store.Batch) error {
			if time.Since(healed) < closePatience-time.Second {
				return errUnreachable
			}
			healed = time.Now()
			return nil
		}, nil)
		healed = time.Now()
		left, took := b.closesWithin(t, 0)
		if left != (CloseError{}) || took < (keys-1)*(closePatience-time.Second) {
			t.Errorf("Close left %+v after %v, want nothing", left, took)
		}
	})
}

// A driven clock stands still while Close runs: three failures in a row are all it waits
// for, however much time the context has.
func TestCloseOnADrivenClockCountsFailures(t *testing.T) {
	t.Parallel()
	for _, limit := range []time.Duration{0, time.Hour} {
		w := newWorld(t)
		n := w.node(nil)
		n.check("a", 5)
		n.link.breaks(errReadOnly, nil)
		n.link.take()
		ctx, cancel := context.WithCancel(context.Background())
		if limit > 0 {
			ctx, cancel = context.WithTimeout(ctx, limit)
		}
		n.ends(ctx, "refused", &CloseError{Undelivered: 5})
		cancel()
		if got := len(n.link.take()); got != closeAttempts {
			t.Errorf("with %v: %d attempts, want %d", limit, got, closeAttempts)
		}
		w.conserves(n)
	}
}
