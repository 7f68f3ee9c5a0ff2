// Tests of Check: first contact, the level, what is counted, and locking out.

package ratelimit

import (
	"context"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hanzoai/limiters/internal/clock"
	"github.com/hanzoai/limiters/ratelimit/store"
)

// A row of a timeline: time passes, then a check of the key "k" must answer so.
type row struct {
	after time.Duration
	units uint64
	want  Verdict
	level float64
}

// follow runs rows against the node.
func (n *node) follow(rows []row) {
	n.world.t.Helper()
	for i, r := range rows {
		n.world.clock.Advance(r.after)
		d := n.check("k", r.units)
		if d.Verdict() != r.want || math.Abs(d.Level()-r.level) > 1e-9 {
			n.world.t.Fatalf("row %d: after %v, %d units are %v at level %v; want %v at %v",
				i, r.after, r.units, d.Verdict(), d.Level(), r.want, r.level)
		}
	}
}

const (
	yes = VerdictAllowed
	no  = VerdictLimited
)

// A still clock calls no ticks: nothing happens but what the test does.
type still struct{ *clock.Fake }

func (still) Tick(time.Duration, func()) (stop func()) { return func() {} }

// end closes a node before its test ends, once its store can be reached.
func (n *node) end() {
	n.link.heals()
	n.Close(context.Background())
}

// alone lets a node tick without ever reaching its store.
func (n *node) alone() *node {
	n.link.breaks(errUnreachable, nil)
	return n
}

func TestFirstContact(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		threshold, units uint64
		open, strict     Verdict
	}{
		{100, 1, yes, yes},
		{100, 99, yes, yes},
		{100, 100, yes, no},
		{100, 5000, yes, no},
		{100, math.MaxUint64, yes, no},
		{0, 1, no, no},
		{0, math.MaxUint64, no, no},
		{1, 1, yes, no},
		{2, 1, yes, yes},
		{2, 2, yes, no},
		{math.MaxUint64, 1, yes, yes},
		{math.MaxUint64, math.MaxUint64, yes, yes}, // n counts as 2^53 − 1
		{store.MaxUnits, store.MaxUnits, yes, no},
	} {
		for _, strict := range []bool{false, true} {
			want := c.open
			if strict {
				want = c.strict
			}
			n := newWorld(t).node(func(cfg *Config) { cfg.GlobalThreshold, cfg.StrictFirstContact = c.threshold, strict })
			d := n.Check("k", c.units)
			if d.Verdict() != want || d.Basis() != BasisFirstContact || d.Threshold() != c.threshold {
				t.Errorf("strict %v: %d units of a threshold of %d are %v on %v of %d, want %v",
					strict, c.units, c.threshold, d.Verdict(), d.Basis(), d.Threshold(), want)
			}
			if d.Level() != float64(min(c.units, store.MaxUnits)) {
				t.Errorf("level %v, want %d", d.Level(), c.units)
			}
			entities, counted := 1, min(c.units, store.MaxUnits)
			if want == no {
				entities, counted = 0, 0
			}
			if got := n.Stats(); got.Entities != entities || got.Counted != counted {
				t.Errorf("strict %v: %d units of %d: %d entities and %d units counted, want %d and %d",
					strict, c.units, c.threshold, got.Entities, got.Counted, entities, counted)
			}
		}
	}
}

func TestFirstContactIsCountedAndLimitsWhatFollows(t *testing.T) {
	t.Parallel()
	n := newWorld(t).node(nil).alone()
	n.follow([]row{
		{0, 500, yes, 500},
		{0, 1, no, 501},
		{time.Minute, 1, no, 501},
		{30 * time.Second, 1, no, 251},
		{24 * time.Second, 1, yes, 51},
	})
}

func TestASingleUnitBelowTheThresholdIsTheLast(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		threshold uint64
		want      int
	}{{0, 0}, {1, 1}, {2, 1}, {3, 2}, {100, 99}, {1000, 999}} { // at 1 the first contact passes
		n := newWorld(t).node(func(cfg *Config) { cfg.GlobalThreshold = c.threshold })
		if got := n.allowed("k", 2000); got != c.want {
			t.Errorf("a threshold of %d admitted %d single units, want %d", c.threshold, got, c.want)
		}
	}
}

func TestTheLevelIncludesTheRequest(t *testing.T) {
	t.Parallel()
	newWorld(t).node(nil).alone().follow([]row{
		{0, 60, yes, 60},
		{0, 40, no, 100}, // reaches it
		{0, 39, yes, 99},
		{0, 1, no, 100},
		{0, 1, no, 100}, // nothing was recorded
		{0, 0, no, 99},  // no unit more would pass
	})
}

func TestPendingUnitsWeighByTheirEpoch(t *testing.T) {
	t.Parallel()
	newWorld(t).node(nil).alone().follow([]row{
		{30 * time.Second, 40, yes, 40},
		{29 * time.Second, 10, yes, 50}, // all of the current epoch
		{time.Second, 1, yes, 51},       // the next one has just begun
		{30 * time.Second, 0, yes, 50*0.5 + 1},
		{15 * time.Second, 4, yes, 50*0.25 + 1 + 4},
		{15 * time.Second, 0, yes, 5}, // the epoch before the previous one is gone
		{45 * time.Second, 0, yes, 5 * 0.25},
		{15 * time.Second, 0, yes, 0},
	})
}

func TestAnEstimateLeaks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.GlobalThreshold = 60 })
	n.follow([]row{
		{0, 50, yes, 50},
		{time.Second, 0, yes, 50}, // just synced
		{10 * time.Second, 0, yes, 40},
		{0, 5, yes, 45}, // pending adds to it
	})
	n.alone()
	n.follow([]row{
		{10 * time.Second, 0, yes, 35},
		{20 * time.Second, 0, yes, 15},
		{10 * time.Second, 0, yes, 5},
		{9 * time.Second, 0, yes, 5}, // an empty bucket, and pending of this epoch
	})
}

func TestAnEstimateWeighsThePreviousEpochAsOfTheSync(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.GlobalThreshold = 60 })
	n.follow([]row{{0, 30, yes, 30}, {90 * time.Second, 0, yes, 0}})
	w.clock.Advance(time.Second) // reads 30 units of the previous epoch, which weigh 29/60
	n.follow([]row{{10 * time.Second, 0, yes, 14.5 - 10}})
}

// Without the bound an estimate of k thresholds, leaking one threshold per window,
// would lock the key for k windows.
func TestAnEstimateOfManyThresholdsDoesNotLockAKeyForManyWindows(t *testing.T) {
	t.Parallel()
	n := newWorld(t).node(nil)
	n.follow([]row{
		{0, 10_000, yes, 10_000}, // 100 thresholds, at the first contact
		{time.Second, 0, no, 10_000},
	})
	n.alone()
	n.follow([]row{
		{59 * time.Second, 0, no, 10_000 - 100.0*59/60},
		{30 * time.Second, 0, no, 5_000}, // what the previous epoch's total still weighs
		{15 * time.Second, 0, no, 2_500},
		{14 * time.Second, 0, no, 10_000.0 / 60},
		{500 * time.Millisecond, 0, yes, 10_000.0 / 120},
		{500 * time.Millisecond, 99, yes, 99}, // two epochs on
	})
}

func TestLoweringAnOverrideInAnOutageDoesNotLockAKeyForHours(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.GlobalThreshold = 1000 })
	n.check("k", 900)
	w.clock.Advance(time.Second)
	n.alone()
	n.SetOverrides(map[string]uint64{"k": 2}) // leaks one unit in 30 s
	n.follow([]row{
		{0, 1, no, 901},
		{89 * time.Second, 1, no, 451},
		{30 * time.Second, 1, yes, 1},
	})
}

func TestLimitedRequestsAreNotCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(nil)
	n.follow([]row{{0, 99, yes, 99}, {0, 1, no, 100}, {0, 70, no, 169}, {0, 0, no, 99}})
	w.clock.Advance(time.Second)
	w.conserves(n)
	if got := n.Stats(); got.Counted != 99 || got.Delivered != 99 || got.Limited != 3 || got.Allowed != 1 {
		t.Errorf("counted %d, delivered %d, allowed %d, limited %d; want 99, 99, 1, 3", got.Counted, got.Delivered, got.Allowed, got.Limited)
	}
}

func TestCountLimitedCountsThemAllTheSame(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.CountLimited, c.StrictFirstContact = true, true })
	n.follow([]row{
		{0, 500, no, 500}, // first contact included
		{0, 1, no, 501},
		{0, 0, no, 501}, // a probe is not counted
	})
	w.clock.Advance(time.Second)
	w.conserves(n)
	if got := n.Stats(); got.Counted != 501 || got.Delivered != 501 || got.Limited != 3 {
		t.Errorf("counted %d, delivered %d, limited %d; want 501, 501, 3", got.Counted, got.Delivered, got.Limited)
	}
}

// overload offers a key load times its threshold of 600 per minute for windows
// minutes, evenly, and returns what each minute admitted.
func (n *node) overload(load, windows int) (admitted []int) {
	for range windows {
		passed := 0
		for range 60 {
			for range 10 * load {
				if n.check("k", 1).Allowed() {
					passed++
				}
			}
			n.world.clock.Advance(time.Second)
		}
		admitted = append(admitted, passed)
	}
	return admitted
}

func TestAKeyOfferedTwiceItsLimitForEverGetsItsLimit(t *testing.T) {
	t.Parallel()
	for _, connected := range []bool{true, false} {
		w := newWorld(t)
		n := w.node(func(c *Config) { c.GlobalThreshold = 600 })
		if !connected {
			n.alone()
		}
		admitted := n.overload(2, 10)
		total := 0
		for _, passed := range admitted[2:] {
			total += passed
		}
		if total < 8*600*9/10 || total > 8*600*11/10 {
			t.Errorf("connected %v: eight windows at twice the limit admitted %d, want 4,800 ± 10 %%; by window %v", connected, total, admitted)
		}
		w.conserves(n)
	}
}

func TestCountLimitedLocksAKeyOut(t *testing.T) {
	t.Parallel()
	for _, connected := range []bool{true, false} {
		w := newWorld(t)
		n := w.node(func(c *Config) { c.GlobalThreshold, c.CountLimited = 600, true })
		if !connected {
			n.alone()
		}
		admitted := n.overload(3, 10)
		for window, passed := range admitted[1:] {
			if passed > 600*5/100 {
				t.Errorf("connected %v: window %d at three times the limit admitted %d, want at most 5 %% of 600; all %v", connected, window+2, passed, admitted)
			}
		}
		if connected {
			w.conserves(n)
		}
	}
}

func TestAProbeOfAnUnknownKeyLeavesItUnknown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(nil)
	for range 3 {
		if d := n.Peek("k"); !d.Allowed() || d.Basis() != BasisFirstContact || d.Level() != 0 || d.Remaining() != 100 || d.Reset() != 0 {
			t.Fatalf("a probe of an unknown key is %v on %v at level %v", d.Verdict(), d.Basis(), d.Level())
		}
	}
	w.clock.Advance(time.Minute)
	if s := n.Stats(); s.Entities != 0 || s.Counted != 0 {
		t.Fatalf("probes left %d entities and %d units", s.Entities, s.Counted)
	}
}

// A key that this node knows nothing of, and is only asked about, becomes known if the
// fleet counted it: with Peek, with Check and in a group.
func TestWhoOnlyAsksLearnsTheFleetsCount(t *testing.T) {
	t.Parallel()
	for name, ask := range map[string]func(n *node) Decision{
		"Peek": func(n *node) Decision { return n.Peek("k") }, "Check": func(n *node) Decision { return n.Check("k", 0) },
		"CheckAll": func(n *node) Decision { return n.CheckAll([]Item{{Key: "k", Units: 0}})[0] },
	} {
		for kind, configure := range windows {
			w := newWorld(t)
			a, b := w.node(configure), w.node(configure)
			a.check("k", 30)
			a.check("k", 69)
			w.clock.Advance(2 * time.Second)
			if d := ask(b); d.Basis() != BasisFirstContact || !d.Allowed() {
				t.Fatalf("%s, %s: %v on %v at first", name, kind, d.Verdict(), d.Basis())
			}
			w.clock.Advance(time.Second)
			if d := ask(b); d.Basis() != BasisFleet || d.Level() < 90 {
				t.Errorf("%s, %s: a tick later it rests on %v at level %v, want the fleet's", name, kind, d.Basis(), d.Level())
			}
		}
	}
}

func TestAProbeOfAKnownKeyDecidesAndCountsNothing(t *testing.T) {
	t.Parallel()
	n := newWorld(t).node(nil).alone()
	n.follow([]row{{0, 100, yes, 100}, {0, 0, no, 100}, {time.Minute, 0, no, 100}, {time.Second, 0, yes, 100 - 100.0/60}})
	if s := n.Stats(); s.Counted != 100 {
		t.Fatalf("counted %d units, want 100", s.Counted)
	}
}

func TestNoUnitsAreSaidAgainstAThresholdOfZero(t *testing.T) {
	t.Parallel()
	n := newWorld(t).node(func(c *Config) { c.GlobalThreshold, c.CountLimited = 0, true })
	for range 3 { // unknown, then known: count_limited makes an entry
		if d := n.check("k", 7); d.Allowed() || d.Remaining() != 0 || d.RetryAfter() != Never {
			t.Fatalf("a threshold of 0 is %v, %d remaining, retry after %v", d.Verdict(), d.Remaining(), d.RetryAfter())
		}
	}
}

// Sums saturate at 2^53 − 1, and what that discards is dropped as overflow.
func TestHugeUnitsSaturate(t *testing.T) {
	t.Parallel()
	for _, units := range []uint64{store.MaxUnits, store.MaxUnits + 1, 1 << 63, math.MaxUint64} {
		w := newWorld(t)
		n := w.node(func(c *Config) { c.GlobalThreshold = math.MaxUint64 }).alone()
		rows := []row{
			{0, 5, yes, 5},
			{0, units, yes, 5 + store.MaxUnits},
			{0, 0, yes, store.MaxUnits},
			{0, units, yes, 2 * store.MaxUnits},
			{0, 1, yes, store.MaxUnits + 1},
		}
		n.follow(rows)
		unsent, _ := n.unsettled()
		if got := unsent[counter{"k", n.read().epoch}]; got != store.MaxUnits {
			t.Errorf("%d units twice: %d unsent, want 2^53 − 1", units, got)
		}
		if got, want := n.Stats().Dropped.Overflow, uint64(5+2*store.MaxUnits+1-store.MaxUnits); got != want {
			t.Errorf("%d units twice: %d dropped as overflow, want %d", units, got, want)
		}
		w.conserves(n)
		n.link.heals()
		w.clock.Advance(time.Second)
		w.conserves(n)
		if total, _ := w.mem.Get(n.counterKey("k", n.read().epoch)); total != store.MaxUnits {
			t.Errorf("the store holds %d, want 2^53 − 1", total)
		}
	}
}

func TestTheSecondNodeLimitsToo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.node(nil), w.node(nil)
	if got := a.allowed("k", 1000); got != 99 {
		t.Fatalf("the first node admitted %d units, want 99", got)
	}
	b.check("k", 1) // first contact
	w.clock.Advance(time.Second)
	w.conserves(a, b)
	b.follow([]row{
		{0, 1, no, 101}, // 99 of the first node's, its own, and this request
		{10 * time.Minute, 1, yes, 1},
	})
	w.conserves(a, b)
}

// A reference is the level by the words of the design, from counts by epoch alone.
type reference struct {
	known  bool
	epoch  int64 // the latest since it was last re-based
	counts map[int64]uint64
}

// at returns the level at an epoch and the progress in it.
func (m *reference) at(epoch int64, progress float64) float64 {
	switch {
	case !m.known:
		return 0
	case epoch < m.epoch-1:
		*m = reference{known: true, epoch: epoch, counts: map[int64]uint64{}}
	case epoch == m.epoch-1:
		progress = 0
	default:
		m.epoch = epoch
	}
	return float64(m.counts[m.epoch-1])*(1-progress) + float64(m.counts[m.epoch])
}

func TestDecisionsOfANodeAloneFollowTheReference(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t)
		threshold := rapid.Uint64Range(1, 60).Draw(rt, "threshold")
		counts := rapid.Bool().Draw(rt, "count limited")
		n := w.node(func(c *Config) {
			c.GlobalThreshold, c.CountLimited = threshold, counts
			c.LocalCacheIdleTimeout, c.LocalCacheTTL = 1000*time.Hour, 1000*time.Hour
			c.LocalCacheMaxEntries = 1 // a small table is made faster
		}, WithClock(still{w.clock}))
		defer n.end()
		m := &reference{counts: map[int64]uint64{}}
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			switch rapid.IntRange(0, 3).Draw(rt, "step") {
			case 0:
				w.clock.Advance(time.Duration(rapid.Int64Range(0, minute*3/2).Draw(rt, "advance")))
			case 1:
				if rapid.IntRange(0, 3).Draw(rt, "now") == 0 {
					w.clock.StepWall(time.Duration(rapid.Int64Range(-3*minute, 3*minute).Draw(rt, "step the wall")))
				}
			default:
				r := n.read()
				back := rapid.Int64Range(-1, 3).Draw(rt, "epochs back")
				units := rapid.Uint64Range(0, threshold+2).Draw(rt, "units")
				want := m.at(r.epoch, float64(r.into)/float64(minute)) + float64(units)
				verdict := yes
				if want+float64(max(units, 1)-units) >= float64(threshold) && m.known {
					verdict = no
				}
				d := n.CheckAt("k", units, time.Unix(0, r.wall-back*minute))
				if d.Verdict() != verdict || math.Abs(d.Level()-want) > 1e-9 {
					rt.Fatalf("%d units: %v at level %v, want %v at %v", units, d.Verdict(), d.Level(), verdict, want)
				}
				if units == 0 || verdict == no && !counts {
					continue
				}
				if !m.known {
					m.known, m.epoch = true, r.epoch
				}
				m.counts[r.epoch-max(0, back)] += units
			}
		}
	})
}
