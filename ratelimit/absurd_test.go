package ratelimit

// This file tests what becomes of numbers that no one means: costs and thresholds
// beyond what counts can hold.

import (
	"math"
	"testing"
	"time"

	"github.com/hanzoai/limiters/ratelimit/store"
)

// A cost above 2^53 − 1 counts as that much, by every door, and no sum of costs wraps.
func TestAbsurdCostsAreClampedAtTheDoor(t *testing.T) {
	t.Parallel()
	doors := map[string]func(l *Limiter, n uint64){
		"Check":       func(l *Limiter, n uint64) { l.Check("a", n) },
		"CheckAt":     func(l *Limiter, n uint64) { l.CheckAt("a", n, start.Add(time.Hour)) },
		"CheckCustom": func(l *Limiter, n uint64) { l.CheckCustom("a", n) },
		"CheckAll": func(l *Limiter, n uint64) {
			l.CheckAll([]Item{{Key: "a", Units: n}, {Key: "a", Units: n}, {Key: "b", Units: 0}})
		},
	}
	for name, door := range doors {
		for _, n := range []uint64{store.MaxUnits + 1, 1 << 60, 1 << 63, math.MaxUint64 - 1, math.MaxUint64} {
			w := newWorld(t)
			l := w.node(func(c *Config) { c.CountLimited = true }).Limiter
			l.SetOverrides(map[string]uint64{"a": 50})
			for i := range uint64(3) {
				door(l, n)
				if s := l.Stats(); s.Counted != (i+1)*store.MaxUnits || s.Dropped != (Dropped{Overflow: i * store.MaxUnits}) {
					t.Fatalf("%s, %d units, time %d: %+v", name, n, i+1, s)
				}
			}
			if d := l.Peek("a"); d.Level() != store.MaxUnits || d.Verdict() != VerdictLimited {
				t.Errorf("%s, %d units: %v at level %v", name, n, d.Verdict(), d.Level())
			}
		}
	}
}

// Sums of costs stop at 2^64 − 1 rather than begin anew, and stay consistent before.
func TestSumsOfAbsurdCostsDoNotWrap(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.CountLimited = true })
	var before Stats
	for i := range 5000 {
		n.Check("a", math.MaxUint64)
		if i%1000 == 999 {
			n.Sync(t.Context())
			w.clock.Advance(time.Second)
		}
		s := n.Stats()
		if s.Counted < before.Counted || s.Dropped.Overflow < before.Dropped.Overflow || s.Undelivered > store.MaxUnits {
			t.Fatalf("check %d: %+v after %+v", i+1, s, before)
		}
		before = s
	}
	if before.Counted != math.MaxUint64 {
		t.Errorf("5,000 checks of 2^64 − 1 units counted %d, want what a uint64 holds", before.Counted)
	}
}

// A threshold above the largest count never limits, whatever is counted; the largest
// count itself does.
func TestAThresholdAboveAllCountsNeverLimits(t *testing.T) {
	t.Parallel()
	for _, threshold := range []uint64{store.MaxUnits + 1, 1 << 54, 1<<55 + 1, math.MaxInt64, math.MaxUint64} {
		for _, strict := range []bool{false, true} {
			w := newWorld(t)
			n := w.node(func(c *Config) { c.GlobalThreshold, c.StrictFirstContact = threshold, strict })
			for i := range 12 {
				for _, d := range []Decision{
					n.Check("a", math.MaxUint64), n.CheckAt("a", store.MaxUnits, start), n.Peek("a"),
					n.CheckAll([]Item{{Key: "a", Units: math.MaxUint64}, {Key: "new", Units: math.MaxUint64}})[0],
				} {
					if d.Verdict() != VerdictAllowed || d.RetryAfter() != 0 || math.IsInf(d.Level(), 0) || math.IsNaN(d.Level()) || d.Remaining() > threshold {
						t.Fatalf("threshold %d, strict %t, round %d: %v at level %v", threshold, strict, i, d.Verdict(), d.Level())
					}
				}
				n.Sync(t.Context())
				w.clock.Advance(10 * time.Second)
			}
		}
	}
	w := newWorld(t)
	n := w.node(func(c *Config) { c.GlobalThreshold, c.StrictFirstContact = store.MaxUnits, true })
	if d := n.Check("a", store.MaxUnits); d.Verdict() != VerdictLimited || d.RetryAfter() != Never {
		t.Errorf("2^53 − 1 units of a threshold of as many: %v", d.Verdict())
	}
	if d := n.Check("a", store.MaxUnits-1); d.Verdict() != VerdictAllowed {
		t.Errorf("one unit less: %v", d.Verdict())
	}
}
