// Tests of wall clocks that step: by any amount, in either direction, whatever the
// entity knew before.

package ratelimit

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// steps of the wall, and where they lead seen from 20 s into an epoch of a minute.
var steps = []struct {
	by     time.Duration
	epochs int64
}{
	{-100 * 365 * 24 * time.Hour, -52_560_000},
	{-365 * 24 * time.Hour, -525_600},
	{-10 * time.Minute, -10},
	{-2*time.Minute - 20*time.Second - 1, -3},
	{-2 * time.Minute, -2},
	{-time.Minute - 20*time.Second - 1, -2},
	{-time.Minute - 20*time.Second, -1},
	{-time.Minute, -1},
	{-20*time.Second - 1, -1},
	{-20 * time.Second, 0},
	{-1, 0},
	{1, 0},
	{40*time.Second - 1, 0},
	{40 * time.Second, 1},
	{time.Minute, 1},
	{time.Minute + 40*time.Second, 2},
	{2 * time.Minute, 2},
	{10 * time.Minute, 10},
	{365 * 24 * time.Hour, 525_600},
	{100 * 365 * 24 * time.Hour, 52_560_000},
}

func TestUnitsStayInTheirEpochWhenTheWallSteps(t *testing.T) {
	t.Parallel()
	for _, step := range steps {
		t.Run(step.by.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			n := w.node(nil, WithClock(still{w.clock}))
			w.clock.Advance(20 * time.Second)
			n.check("k", 10)
			w.clock.StepWall(step.by)
			d := n.check("k", 7)
			if d.Basis() == BasisFirstContact || !d.Allowed() {
				t.Fatalf("%v on %v", d.Verdict(), d.Basis())
			}
			want, stale := map[int64]uint64{0: 7}, uint64(0)
			switch step.epochs {
			case 0:
				want[0] += 10
			case 1:
				want[1] = 10
			case -1: // the entry's previous slot is the epoch of now
				want[-1] = 10
			default:
				stale = 10
			}
			if diff := cmp.Diff(want, n.unsentByAge("k")); diff != "" {
				t.Errorf("unsent units by epochs ago (-want +got):\n%s", diff)
			}
			if got := n.Stats().Dropped.Stale; got != stale {
				t.Errorf("%d units dropped as stale, want %d", got, stale)
			}
			w.conserves(n)
			n.sync()
			w.conserves(n)
			for age, units := range want {
				if got := w.total(n, "k", n.read().epoch-age); got != int64(units) {
					t.Errorf("the store holds %d units of %d epochs ago, want %d", got, age, units)
				}
			}
		})
	}
}

// Two windows after a step, of a wall that then runs as it should, nothing from
// before it limits anybody, and new traffic is limited as ever.
func TestAStepCostsAtMostTwoWindows(t *testing.T) {
	t.Parallel()
	for _, step := range steps {
		for _, connected := range []bool{true, false} {
			t.Run(fmt.Sprint(step.by, "/connected=", connected), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				n, other := w.node(nil), w.node(nil)
				if !connected {
					n.alone()
					other.alone()
				}
				w.clock.Advance(18 * time.Second)
				for _, n := range []*node{n, other} {
					n.check("k", 60)
					n.check("k", 30)
				}
				w.clock.Advance(2 * time.Second)
				n.check("k", 5)
				w.clock.StepWall(step.by)
				d := n.Peek("k")
				if !(d.Level() >= 0) || math.IsInf(d.Level(), 0) || d.Reset() < 0 || d.Reset() > 3*time.Minute {
					t.Fatalf("level %v, reset in %v", d.Level(), d.Reset())
				}
				if wait := d.RetryAfter(); wait < 0 || wait > 3*time.Minute {
					t.Fatalf("retry after %v", wait)
				}
				// Within the two windows nobody asks: a node that is not asked must be as good.
				back := time.Duration(0)
				if step.epochs == -1 {
					back = time.Minute // the units of the epoch ahead age once it has begun
				}
				w.clock.Advance(2*time.Minute + back)
				if d := n.Peek("k"); d.Level() != 0 {
					t.Fatalf("level %v two windows later", d.Level())
				}
				if got := n.allowed("k", 1000); got != 99 {
					t.Errorf("admitted %d units two windows later, want 99", got)
				}
				w.conserves(n, other)
			})
		}
	}
}

// Leaks, intervals and timeouts are measured by the monotonic clock.
func TestAStepWithinAnEpochLeaksNothing(t *testing.T) {
	t.Parallel()
	for _, by := range []time.Duration{-15 * time.Second, 15 * time.Second} {
		w := newWorld(t)
		n := w.node(func(c *Config) { c.GlobalThreshold = 60 }, WithClock(still{w.clock}))
		w.clock.Advance(20 * time.Second)
		n.check("k", 50)
		n.sync()
		w.clock.StepWall(by)
		if d := n.Peek("k"); d.Level() != 50 || d.Basis() != BasisFleet {
			t.Errorf("a step of %v: level %v on %v, want 50 on fleet", by, d.Level(), d.Basis())
		}
		w.clock.Advance(10 * time.Second)
		if d := n.Peek("k"); d.Level() != 40 {
			t.Errorf("10 s after a step of %v: level %v, want 40", by, d.Level())
		}
	}
}

func TestAStepDoesNotMakeAnEntityIdle(t *testing.T) {
	t.Parallel()
	for _, step := range steps {
		w := newWorld(t)
		n := w.node(nil, WithClock(still{w.clock}))
		w.clock.Advance(20 * time.Second)
		n.check("k", 1)
		n.sync()
		w.clock.StepWall(step.by)
		if d := n.Peek("k"); d.Basis() != BasisFleet {
			t.Errorf("after a step of %v the entity is on %v", step.by, d.Basis())
		}
	}
}

// What a node learned of an epoch that is ahead of a corrected wall is not trusted:
// it reads again at once.
func TestAfterAStepFarBackTheCountersAreReadAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	wrong := w.node(nil, WithClock(w.clock))
	w.clock.StepWall(365 * 24 * time.Hour)
	wrong.check("k", 50)
	w.clock.Advance(time.Second)
	w.clock.SetWall(start.Add(10 * time.Second)) // corrected
	w.mem.Set(wrong.counterKey("k", wrong.read().epoch), "500")
	if d := wrong.Peek("k"); d.Level() != 0 {
		t.Fatalf("level %v, want what was counted a year ahead forgotten", d.Level())
	}
	wrong.reads()
	w.clock.Advance(time.Second)
	if d := wrong.Peek("k"); d.Allowed() || d.Level() != 500 {
		t.Errorf("%v at level %v, want limited by what the fleet counted", d.Verdict(), d.Level())
	}
}

// Nodes that count in different epochs admit at most what each would alone.
func TestNodesWhoseWallsDiffer(t *testing.T) {
	t.Parallel()
	for offset, most := range map[time.Duration]int{
		-30 * time.Second: 200, -time.Second: 130, 0: 130, time.Second: 130, 30 * time.Second: 200,
	} {
		w := newWorld(t)
		off := w.clock.Node(offset)
		a, b := w.node(nil), w.node(nil, WithClock(off))
		w.clock.Advance(31 * time.Second)
		a.check("k", 1)
		b.check("k", 1)
		passed := 0
		for range 10 {
			w.clock.Advance(time.Second)
			passed += a.allowed("k", 10) + b.allowed("k", 10)
		}
		if passed > most {
			t.Errorf("walls that differ by %v: admitted %d of a threshold of 100 in ten seconds, want at most %d", offset, passed, most)
		}
		w.clock.Advance(time.Second)
		w.conserves(a, b)
	}
}

func TestExtremeWalls(t *testing.T) {
	t.Parallel()
	for name, kind := range windows {
		for _, wall := range []time.Time{
			time.Unix(0, math.MinInt64), time.Unix(0, math.MinInt64+1), time.Unix(-1, 0), time.Unix(0, 0),
			time.Unix(0, math.MaxInt64-1), time.Unix(0, math.MaxInt64),
		} {
			w := newWorld(t)
			n := w.node(kind, WithClock(still{w.clock}))
			n.check("k", 50)
			w.clock.SetWall(wall)
			for _, at := range []time.Time{wall, start, time.Unix(0, 0), {}} {
				d := n.CheckAt("k", 1, at)
				if !(d.Level() >= 0) || d.RetryAfter() < 0 || d.Reset() < 0 || n.calendar == nil && d.Reset() > 3*time.Minute {
					t.Errorf("%s, at %v: level %v, retry after %v, reset in %v", name, wall, d.Level(), d.RetryAfter(), d.Reset())
				}
			}
			if got := n.allowed("k", 1000); got > 99 {
				t.Errorf("%s, at %v: admitted %d units of a threshold of 100", name, wall, got)
			}
			n.check("new", 1000)
			if d := n.check("new", 1); d.Allowed() || d.RetryAfter() <= 0 {
				t.Errorf("%s, at %v: a new key is %v, retry after %v", name, wall, d.Verdict(), d.RetryAfter())
			}
			n.Sync(t.Context())
		}
	}
}

// However the wall jumps about, no burst admits a unit too many, no level or wait is
// out of bounds, and every unit is accounted for, in every kind of window.
func TestAnyStepsKeepDecisionsSound(t *testing.T) {
	t.Parallel()
	for name, kind := range windows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(rt *rapid.T) { stepsAtRandom(t, rt, kind) })
		})
	}
}

func stepsAtRandom(t *testing.T, rt *rapid.T, kind func(*Config)) {
	w := newWorld(t)
	n := w.node(func(c *Config) { kind(c); c.GlobalThreshold, c.LocalCacheMaxEntries = 20, 1 })
	defer n.end()
	for range rapid.IntRange(1, 30).Draw(rt, "steps") {
		switch rapid.IntRange(0, 3).Draw(rt, "step") {
		case 0:
			w.clock.Advance(time.Duration(rapid.Int64Range(0, 100*second).Draw(rt, "advance")))
		case 1:
			by := rapid.OneOf(rapid.Int64Range(-minute, minute), rapid.Int64Range(-5*minute, 5*minute), rapid.Int64())
			w.clock.StepWall(time.Duration(by.Draw(rt, "step the wall")))
		default:
			d := n.check("k", rapid.Uint64Range(0, 25).Draw(rt, "units"))
			if !(d.Level() >= 0) || d.Reset() < 0 || n.calendar == nil && d.Reset() > 3*time.Minute || d.RetryAfter() < 0 || d.Remaining() > 20 {
				rt.Fatalf("level %v, reset in %v, retry after %v, %d remain", d.Level(), d.Reset(), d.RetryAfter(), d.Remaining())
			}
			if got := n.allowed("k", 1000); got > 19 && d.Basis() != BasisFirstContact {
				rt.Fatalf("admitted %d at once, of a threshold of 20", got)
			}
		}
		n.balances(rt)
	}
}

// balances fails a random test if units are not accounted for. The store may have
// lost any: its clock is the one that steps.
func (n *node) balances(rt *rapid.T) {
	for _, v := range n.world.violations(func(counter) bool { return true }, n) {
		rt.Fatal(v)
	}
}
