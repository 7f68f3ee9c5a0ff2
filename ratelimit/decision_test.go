// Tests of what a Decision says: the words, the room left, and when to come back.

package ratelimit

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hanzoai/limiters/ratelimit/store"
)

func TestVerdictsAndBasesHaveNames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		got  fmt.Stringer
		want string
	}{
		{VerdictAllowed, "allowed"},
		{VerdictLimited, "limited"},
		{VerdictNotApplicable, "not_applicable"},
		{BasisFirstContact, "first_contact"},
		{BasisFleet, "fleet"},
		{BasisLocal, "local"},
	} {
		if got := c.got.String(); got != c.want {
			t.Errorf("%#v is %q, want %q", c.got, got, c.want)
		}
	}
}

func TestTheZeroDecisionIsHarmless(t *testing.T) {
	t.Parallel()
	var d Decision
	if !d.Allowed() || d.Level() != 0 || d.Remaining() != 0 || d.RetryAfter() != 0 || d.Reset() != 0 {
		t.Errorf("allowed %v, level %v, remaining %d, retry after %v, reset %v",
			d.Allowed(), d.Level(), d.Remaining(), d.RetryAfter(), d.Reset())
	}
}

func TestADecisionSaysWhatItRestsOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(cfg *Config) { cfg.SyncByUnits = false }) // it would be fleet at once
	expect := func(want Basis) {
		t.Helper()
		if d := n.check("k", 1); d.Basis() != want {
			t.Fatalf("rests on %v, want %v", d.Basis(), want)
		}
	}
	expect(BasisFirstContact)
	expect(BasisLocal) // known, never synced
	w.clock.Advance(time.Second)
	expect(BasisFleet)
	n.alone()
	w.clock.Advance(2*time.Minute - 1)
	expect(BasisFleet)
	w.clock.Advance(1)
	expect(BasisLocal) // two windows after the last sync
	n.link.heals()
	w.clock.Advance(time.Second)
	expect(BasisFleet)
}

func TestRemainingIsTheRoomBelowTheThreshold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		threshold, units, want uint64
	}{
		{100, 0, 100},
		{100, 1, 99},
		{100, 99, 1},
		{100, 100, 0},
		{100, 5000, 0},
		{0, 0, 0},
		{1, 0, 1},
		{1 << 53, 1, 1<<53 - 1},
		{1 << 60, 1, 1<<60 - 1},
		{1 << 63, 1, 1<<63 - 1},
		{math.MaxUint64, 0, math.MaxUint64},
		{math.MaxUint64, 1, math.MaxUint64 - 1},
		{math.MaxUint64, math.MaxUint64, math.MaxUint64 - store.MaxUnits}, // n counts as 2^53 − 1
	} {
		n := newWorld(t).node(func(cfg *Config) { cfg.GlobalThreshold = c.threshold })
		if got := n.Check("k", c.units).Remaining(); got != c.want {
			t.Errorf("after %d units of %d remain %d, want %d", c.units, c.threshold, got, c.want)
		}
	}
}

func TestRemainingIsInWholeUnits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(nil).alone()
	n.check("k", 50)
	w.clock.Advance(75*time.Second + 1) // 37.5 units, and a little less
	d := n.Peek("k")
	if got := d.Remaining(); got != 62 {
		t.Fatalf("at level %v of 100 remain %d, want 62", d.Level(), got)
	}
	if d := n.Check("k", 63); d.Verdict() != no {
		t.Errorf("one unit more than remain is %v at level %v", d.Verdict(), d.Level())
	}
	if d := n.Check("k", 61); d.Verdict() != yes {
		t.Errorf("one unit less than remain is %v at level %v", d.Verdict(), d.Level())
	}
}

func TestRetryAfterAndResetOfANodeAlone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name         string
		first        uint64        // units at first contact
		after        time.Duration // until the check
		units        uint64
		retry, reset time.Duration
	}{
		{"allowed", 1, 0, 1, 0, 2 * time.Minute},
		{"in the middle of a window", 1, 30 * time.Second, 1, 0, 90 * time.Second},
		{"limited until the previous epoch weighs less than 0.99", 99, 0, 1, time.Minute, 2 * time.Minute},
		{"until it weighs less than half", 100, 30 * time.Second, 50, time.Minute + 1, 90 * time.Second},
		{"until it weighs nothing", 100, 0, 99, 2*time.Minute - 600*time.Millisecond + 1, 2 * time.Minute},
		{"as much as the threshold never passes", 1, 0, 100, Never, 2 * time.Minute},
		{"nor does more", 1, 0, math.MaxUint64, Never, 2 * time.Minute},
		{"a probe of a limited key, as one unit", 200, 0, 0, 90*time.Second + 300*time.Millisecond + 1, 2 * time.Minute},
	} {
		w := newWorld(t)
		n := w.node(nil, WithClock(still{w.clock}))
		if got := n.Check("k", c.first).Reset(); got != 2*time.Minute {
			t.Errorf("%s: reset in %v at the first contact, want 2m0s", c.name, got)
		}
		w.clock.Advance(c.after)
		d := n.Check("k", c.units)
		if d.RetryAfter() != c.retry {
			t.Errorf("%s: retry after %v, want %v", c.name, d.RetryAfter(), c.retry)
		}
		if d.Reset() != c.reset {
			t.Errorf("%s: reset in %v, want %v", c.name, d.Reset(), c.reset)
		}
	}
}

// More units than 2^53 − 1 count as that many, after which others pass as they would.
func TestRetryAfterOfSaturatedUnits(t *testing.T) {
	t.Parallel()
	for _, units := range []uint64{store.MaxUnits, 1 << 53, 1 << 60, math.MaxUint64} {
		w := newWorld(t)
		n := w.node(func(c *Config) { c.GlobalThreshold = store.MaxUnits }, WithClock(still{w.clock}))
		n.Check("k", units) // a first contact
		if d := n.Check("k", units); d.Allowed() || d.RetryAfter() != Never {
			t.Errorf("%d units: %v, retry after %v; want never", units, d.Verdict(), d.RetryAfter())
		}
		d := n.Check("k", store.MaxUnits/2)
		wait := d.RetryAfter()
		if d.Allowed() || wait <= 0 || wait == Never {
			t.Fatalf("%v at level %v of %d, retry after %v; want limited, for a while", d.Verdict(), d.Level(), d.Threshold(), wait)
		}
		w.clock.Advance(wait)
		if d := n.Check("k", store.MaxUnits/2); !d.Allowed() {
			t.Errorf("limited at level %v, %v later", d.Level(), wait)
		}
	}
}

func TestDryRunAllowsAndSaysWhatEnforcementWould(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	enforced, dry := w.node(nil), w.node(func(c *Config) { c.DryRun = true })
	for i, units := range []uint64{60, 60, 39, 1, 0} {
		want, got := enforced.check("e", units), dry.check("d", units)
		if !got.Allowed() || !got.DryRun() || want.DryRun() {
			t.Errorf("check %d: allowed %v, dry run %v and %v", i, got.Allowed(), got.DryRun(), want.DryRun())
		}
		if got.Verdict() != want.Verdict() || got.Level() != want.Level() || got.RetryAfter() != want.RetryAfter() ||
			got.Remaining() != want.Remaining() || got.Reset() != want.Reset() {
			t.Errorf("check %d: %v at %v, enforced %v at %v", i, got.Verdict(), got.Level(), want.Verdict(), want.Level())
		}
	}
	a, b := enforced.Stats(), dry.Stats()
	if a.Counted != b.Counted || a.Limited != b.Limited || b.Limited == 0 {
		t.Errorf("counted %d and limited %d, enforced %d and %d", b.Counted, b.Limited, a.Counted, a.Limited)
	}
}

// A scene is a random past of the key "k", on a node whose fleet has another one.
type scene struct {
	threshold uint64
	counts    bool
	steps     []sceneStep
	units     uint64 // of the request that is decided last
}

type sceneStep struct {
	kind   int
	units  uint64
	amount time.Duration
}

func drawScene(t *rapid.T) scene {
	s := scene{
		threshold: rapid.OneOf(rapid.Uint64Range(1, 10), rapid.Uint64Range(1, 1000), rapid.Uint64Range(1000, 10_000), rapid.Just(uint64(1<<54))).Draw(t, "threshold"),
		counts:    rapid.Bool().Draw(t, "count limited"),
	}
	units := rapid.OneOf(rapid.Uint64Range(0, s.threshold+2), rapid.Uint64Range(0, 3*s.threshold), rapid.Uint64Range(0, 2))
	advance := rapid.OneOf(rapid.Int64Range(0, 5*second), rapid.Int64Range(0, minute*3/2))
	for range rapid.IntRange(1, 12).Draw(t, "steps") {
		s.steps = append(s.steps, sceneStep{
			kind:   rapid.IntRange(0, 6).Draw(t, "kind"),
			units:  units.Draw(t, "units"),
			amount: time.Duration(advance.Draw(t, "advance")),
		})
	}
	s.units = units.Draw(t, "last units")
	return s
}

// play runs the scene and returns the node after it, and its clock's world.
func (s scene) play(t *testing.T) *node {
	w := newWorld(t)
	setup := func(c *Config) {
		c.GlobalThreshold, c.CountLimited = s.threshold, s.counts
		c.LocalCacheTTL, c.LocalCacheIdleTimeout = 1000*time.Hour, 1000*time.Hour
		c.LocalCacheMaxEntries = 1 // a small table is made faster
	}
	n, other := w.node(setup, WithClock(still{w.clock})), w.node(setup, WithClock(still{w.clock}))
	n.Check("k", 1)
	for _, step := range s.steps {
		switch step.kind {
		case 0, 1:
			n.Check("k", step.units)
		case 2:
			other.Check("k", step.units)
			other.Sync(context.Background())
		case 3, 4:
			n.Sync(context.Background())
		case 5:
			w.clock.Advance(step.amount)
		case 6:
			w.clock.StepWall(step.amount - 30*time.Second)
		}
	}
	return n
}

func TestDeniedUntilRetryAfterAndAllowedFromThenOn(t *testing.T) {
	t.Parallel()
	limited := 0
	rapid.Check(t, func(rt *rapid.T) {
		s := drawScene(rt)
		d := s.play(t).Check("k", s.units)
		if !(d.Level() >= 0) || math.IsInf(d.Level(), 0) || d.Remaining() > d.Threshold() {
			rt.Fatalf("level %v, remaining %d of %d", d.Level(), d.Remaining(), d.Threshold())
		}
		wait := d.RetryAfter()
		if d.Verdict() == yes || wait == Never {
			if d.Verdict() == yes && wait != 0 {
				rt.Fatalf("allowed, retry after %v", wait)
			}
			if wait == Never && min(s.units, store.MaxUnits) < s.threshold {
				if s.threshold > 1 { // one of no units is answered as one of one
					rt.Fatalf("%d units of %d never pass", s.units, s.threshold)
				}
			}
			return
		}
		limited++
		after := func(wait time.Duration) Decision {
			n := s.play(t)
			n.Check("k", s.units)
			n.world.clock.Advance(wait)
			return n.Check("k", s.units)
		}
		if wait < 1 || wait > 3*time.Minute {
			rt.Fatalf("limited, retry after %v", wait)
		}
		// A read of the counters may make the wait longer than it is without.
		if before := after(wait - 1); before.Verdict() != no && d.model.Highest(d.threshold, d.tick, int64(wait)-1)+d.asked() < float64(d.threshold) {
			rt.Fatalf("%v at level %v one nanosecond before %v are over", before.Verdict(), before.Level(), wait)
		}
		if then := after(wait); then.Verdict() != yes {
			rt.Fatalf("%v at level %v after %v", then.Verdict(), then.Level(), wait)
		}
	})
	if limited == 0 {
		t.Error("no scene ended limited: the test tests nothing")
	}
}

func TestTheLevelIsZeroFromResetOn(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		s := drawScene(rt)
		d := s.play(t).Check("k", s.units)
		reset := d.Reset()
		after := func(wait time.Duration) float64 {
			n := s.play(t)
			n.Check("k", s.units)
			n.world.clock.Advance(wait)
			return n.Peek("k").Level()
		}
		if reset < 0 || reset > 3*time.Minute {
			rt.Fatalf("reset in %v", reset)
		}
		if reset > 0 && !d.reads { // a read may make it longer than it is without
			if got := after(reset - 1); !(got > 0) {
				rt.Fatalf("level %v one nanosecond before %v are over", got, reset)
			}
		}
		if got := after(reset); got != 0 {
			rt.Fatalf("level %v after %v", got, reset)
		}
	})
}
