// This file checks levels and limits on counts that went through Redis.

package integration

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/hanzoai/limiters/ratelimit"
)

// After every tick the level is the weighted sum of the two windows, exactly, for
// traffic of any shape; for even traffic it is what passed in the last window. The
// node that ticks first knows all but what the other counted since its last tick.
func TestSuiteSlidingWindow(t *testing.T) {
	t.Parallel()
	for _, shape := range []struct {
		name string
		next func(*rand.Rand) uint64 // units in the next second
		even float64                 // the level, if the traffic is even
	}{
		{"even", func(*rand.Rand) uint64 { return 3 }, 2 * 3 * 64},
		{"random", func(r *rand.Rand) uint64 { return 1 + r.Uint64N(5) }, 0},
	} {
		t.Run(shape.name, func(t *testing.T) {
			t.Parallel()
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			random := rand.New(rand.NewPCG(seed, 0))
			s := newSuite(t)
			change := func(c *ratelimit.Config) { c.GlobalThreshold = 999 }
			first, second := s.node(change), s.node(change) // in the order of their ticks
			counts := map[int64]uint64{}
			for passed := 1; passed <= 200; passed++ {
				units, during := shape.next(random), s.epoch(suiteWindow)
				counts[during] += 2 * units
				first.Check("team", units)
				second.Check("team", units)
				s.clock.Advance(time.Second)
				epoch, into := s.epoch(suiteWindow), float64(passed%64)/64
				want := float64(counts[epoch-1])*(1-into) + float64(counts[epoch])
				second.expectLevel("team", want)
				before := want - float64(units)
				if during < epoch { // the window has just begun: what is missing weighs 1 all the same
					before = float64(counts[epoch-1] - units)
				}
				first.expectLevel("team", before)
				if shape.even > 0 && passed > 64 && want != shape.even {
					t.Errorf("after %d s of even traffic the level is %v, want %v", passed, want, shape.even)
				}
				s.expectTotal("team", epoch-1, int64(counts[epoch-1]))
				s.expectTotal("team", epoch, int64(counts[epoch]))
				if t.Failed() {
					t.Fatalf("in second %d", passed)
				}
			}
		})
	}
}

// Between syncs an estimate leaks, a threshold per window, until the tier's
// interval is over and the counters are read again.
func TestSuiteDecayOverASyncInterval(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	n := s.node(func(c *ratelimit.Config) { c.GlobalThreshold = 64 }) // leaks 1 unit per second
	n.Check("team", 40)                                               // Normal: read every 16 s
	s.clock.Advance(time.Second)
	for passed := range 17 {
		n.expectLevel("team", float64(40-passed))
		s.clock.Advance(time.Second)
	}
	n.expectLevel("team", 40)
	if got := n.Stats().Partitions[0]; got.Reads != 3 || got.RoundTrips != 2 {
		t.Errorf("%d counters read in %d scripts, want 1 and 2 in 2", got.Reads, got.RoundTrips)
	}

	// What leaks is never more than what the window before still weighs.
	s.clock.Advance(suiteWindow - 18*time.Second + suiteWindow/4)
	n.Peek("team") // has it read
	s.clock.Advance(time.Second)
	n.expectLevel("team", 40*(1-17.0/64))
	s.clock.Advance(suiteWindow)
	if d := n.Peek("team"); d.Level() != 0 {
		t.Errorf("level %v two windows after the last unit", d.Level())
	}
}

// One node admits one unit less than the threshold, on counts of its own and on
// the fleet's; then it says when to return, and means it.
func TestSuiteLimitingAtTheThreshold(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	n := s.node(func(c *ratelimit.Config) { c.GlobalThreshold = 64 })
	epoch := s.epoch(suiteWindow)
	if got := n.allowed("team", 100); got != 63 {
		t.Errorf("%d admitted of 64, want 63", got)
	}
	s.clock.Advance(time.Second)
	s.expectTotal("team", epoch, 63)
	d := n.Check("team", 2)
	if d.Allowed() || d.Basis() != ratelimit.BasisFleet || d.Level() != 65 || d.Threshold() != 64 {
		t.Errorf("2 more: %+v", d)
	}
	// 63 + 2 − 1 per second < 64: a nanosecond after a second, which a read within a tick
	// would begin anew.
	if got := d.RetryAfter(); got != 2*time.Second+1 {
		t.Errorf("RetryAfter = %v, want two seconds and a nanosecond", got)
	}
	s.clock.Advance(time.Second)
	if n.Check("team", 2).Allowed() {
		t.Error("allowed a nanosecond early")
	}
	s.clock.Advance(1)
	if !n.Check("team", 2).Allowed() {
		t.Error("limited at the time it was told")
	}
	s.clock.Advance(time.Second)
	s.expectTotal("team", epoch, 65)
	if n.Allow("team") {
		t.Error("allowed beyond the threshold")
	}
	if s := n.Stats(); s.Allowed != 64 || s.Limited != 37+3 || s.Counted != 65 {
		t.Errorf("%d allowed, %d limited, %d counted", s.Allowed, s.Limited, s.Counted)
	}
}

func TestSuiteCustomThresholds(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	n := s.node(func(c *ratelimit.Config) {
		c.CustomKeys = ratelimit.Overrides{"vip": 700, "shut": 0, "one": 1}
	}, ratelimit.WithResolver(func(key string) (uint64, bool) { return 10, key == "free:7" }))
	epoch := s.epoch(suiteWindow)
	expect := func(want map[string]int) {
		t.Helper()
		for key, passed := range want {
			if got := n.allowed(key, 1000); got != passed {
				t.Errorf("%s: %d admitted, want %d", key, got, passed)
			}
		}
	}
	// A first contact passes, but for a threshold of 0.
	expect(map[string]int{"vip": 699, "shut": 0, "one": 1, "free:7": 9, "plain": 99})
	if d := n.CheckCustom("other", 1); d.Verdict() != ratelimit.VerdictNotApplicable {
		t.Errorf("a key without a threshold of its own: %+v", d)
	}
	s.clock.Advance(time.Second)
	for key, want := range map[string]int64{"vip": 699, "shut": 0, "one": 1, "free:7": 9, "plain": 99, "other": 0} {
		s.expectTotal(key, epoch, want)
	}
	n.SetOverrides(map[string]uint64{"plain": 200, "vip": 650})
	expect(map[string]int{"plain": 100, "vip": 0})
	s.clock.Advance(time.Second)
	s.expectTotal("plain", epoch, 199)
	s.expectTotal("vip", epoch, 699)
}

// A window below a second: the same, on a clock; and with production's loops, where
// every unit is accounted for at the end.
func TestSuiteSubSecondWindows(t *testing.T) {
	t.Parallel()
	const window = 128 * time.Millisecond
	s := newSuite(t)
	n := s.node(func(c *ratelimit.Config) { c.WindowInterval = window })
	tick := window / 16
	for i := range 4 {
		if got := n.allowed("team", 200); got != 99 {
			t.Errorf("window %d: %d admitted, want 99", i, got)
		}
		s.clock.Advance(tick)
		s.expectTotal("team", s.epoch(window), 99)
		n.expectLevel("team", 99)
		s.clock.Advance(2*window - tick)
	}

	production := func(c *ratelimit.Config) {
		c.WindowInterval, c.GlobalCacheTTL = 100*time.Millisecond, time.Minute // so that all can be read at the end
		c.GlobalThreshold = 1 << 40
	}
	a, b := s.looping(production), s.looping(production)
	for end := time.Now().Add(5 * 100 * time.Millisecond); time.Now().Before(end); {
		a.Check("busy", 1)
		b.Check("busy", 2)
		a.Check("other", 1)
	}
	a.end()
	b.end()
	var counted, delivered, dropped uint64
	for _, n := range []*suiteNode{a, b} {
		st := n.Stats()
		counted, delivered, dropped = counted+st.Counted, delivered+st.Delivered, dropped+st.Dropped.Stale
	}
	if got := uint64(s.sum(0, "busy") + s.sum(0, "other")); got != delivered || delivered+dropped != counted || delivered == 0 {
		t.Errorf("%d units in Redis, %d delivered, %d stale, %d counted", got, delivered, dropped, counted)
	}
}
