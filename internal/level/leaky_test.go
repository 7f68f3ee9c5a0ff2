// Tests of the leaky window: epochs, weights, leaks, and the waits that follow from
// them.

package level

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const (
	minute = int64(time.Minute)
	second = int64(time.Second)

	start = 1_767_225_600 * second // 2026-01-01
)

func TestEpochAndProgressOfAReading(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		wall, window int64
		epoch, into  int64
	}{
		{0, minute, 0, 0},
		{1, minute, 0, 1},
		{minute - 1, minute, 0, minute - 1},
		{minute, minute, 1, 0},
		{minute + 1, minute, 1, 1},
		{start, minute, start / minute, 0},
		{start + 30*second, minute, start / minute, 30 * second},
		{-1, minute, -1, minute - 1}, // before 1970
		{-minute, minute, -1, 0},
		{-minute - 1, minute, -2, minute - 1},
		{250 * second / 1000, 100 * second / 1000, 2, 50 * second / 1000}, // a window below a second
		{math.MaxInt64, minute, math.MaxInt64 / minute, math.MaxInt64 % minute},
		{math.MinInt64, minute, math.MinInt64/minute - 1, minute + math.MinInt64%minute},
	} {
		epoch, into := EpochAt(c.wall, c.window)
		if epoch != c.epoch || into != c.into {
			t.Errorf("EpochAt(%d, %d) = %d, %d, want %d, %d", c.wall, c.window, epoch, into, c.epoch, c.into)
		}
	}
}

func TestEveryReadingLiesInItsEpoch(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		window := rapid.Int64Range(1, int64(8760*time.Hour)).Draw(t, "window")
		wall := rapid.Int64Range(math.MinInt64+window, math.MaxInt64).Draw(t, "wall")
		epoch, into := EpochAt(wall, window)
		if into < 0 || into >= window || epoch*window+into != wall {
			t.Fatalf("EpochAt(%d, %d) = %d, %d", wall, window, epoch, into)
		}
	})
}

func TestElapsedIsNeverNegativeAndNeverOverflows(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ now, since, want int64 }{
		{5, 3, 2},
		{3, 3, 0},
		{3, 5, 0},
		{math.MinInt64, math.MaxInt64, 0},
		{math.MaxInt64, math.MinInt64, math.MaxInt64},
		{math.MaxInt64, -1, math.MaxInt64},
		{math.MaxInt64, 0, math.MaxInt64},
		{0, math.MinInt64, math.MaxInt64},
	} {
		if got := Elapsed(c.now, c.since); got != c.want {
			t.Errorf("Elapsed(%d, %d) = %d, want %d", c.now, c.since, got, c.want)
		}
	}
}

func TestLevelOfAModel(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		model     Leaky
		threshold uint64
		wait      int64
		want      float64
	}{
		{"nothing", Leaky{}, 60, 0, 0},

		{"current units weigh 1 at the start of an epoch", Leaky{Local: 40}, 60, 0, 40},
		{"and at its end", Leaky{Local: 40, Into: minute - 1}, 60, 0, 40},
		{"previous units weigh 1 at the start", Leaky{LocalBefore: 40}, 60, 0, 40},
		{"half in the middle", Leaky{LocalBefore: 40, Into: minute / 2}, 60, 0, 20},
		{"a quarter after three quarters", Leaky{LocalBefore: 40, Local: 3, Into: minute / 4 * 3}, 60, 0, 13},
		{"a wait moves on in the epoch", Leaky{LocalBefore: 40, Local: 3}, 60, minute / 4 * 3, 13},
		{"past its end, the current is the previous", Leaky{LocalBefore: 40, Local: 12}, 60, minute * 5 / 4, 9},
		{"past the next end nothing is left", Leaky{LocalBefore: 40, Local: 12}, 60, 2 * minute, 0},
		{"nor later", Leaky{LocalBefore: 40, Local: 12}, 60, 100 * minute, 0},

		{"an estimate leaks threshold/window", Leaky{Estimate: 50, Fleet: 50}, 60, 20 * second, 30},
		{"from the last sync on", Leaky{Estimate: 50, Fleet: 50, Elapsed: 10 * second, Into: 10 * second}, 60, 10 * second, 30},
		{"to 0", Leaky{Estimate: 50, Fleet: 50}, 60, 50 * second, 0},
		{"and not below", Leaky{Estimate: 50, Fleet: 50}, 60, 59 * second, 0},
		{"a fresh one counts whole", Leaky{Estimate: 50, Fleet: 50}, 60, 0, 50},
		{"a threshold of 0 leaks nothing", Leaky{Estimate: 50, Fleet: 50}, 0, 20 * second, 50},

		{"what the totals weigh bounds the estimate", Leaky{Estimate: 600, FleetBefore: 600}, 60, minute / 2, 300},
		{"the bound falls with the previous total", Leaky{Estimate: 600, FleetBefore: 500, Fleet: 100}, 60, minute * 9 / 10, 150},
		{"in the next epoch the current total falls", Leaky{Estimate: 600, Fleet: 600}, 60, minute * 19 / 10, 60},
		{"two epochs on nothing is left", Leaky{Estimate: 600, Fleet: 600}, 60, 2 * minute, 0},
		{"without totals there is no estimate", Leaky{Estimate: 600}, 60, 0, 0},

		{"fleet and pending add up", Leaky{Estimate: 50, Fleet: 50, LocalBefore: 8, Local: 3}, 60, minute / 4, 35 + 6 + 3},

		{"before the reference epoch its units weigh 1", Leaky{LocalBefore: 40, Local: 3, Into: -minute / 2}, 60, 0, 43},
		{"until it begins", Leaky{LocalBefore: 40, Local: 3, Into: -minute / 2}, 60, minute / 2, 43},
		{"and fall then", Leaky{LocalBefore: 40, Local: 3, Into: -minute / 2}, 60, minute, 23},
		{"the estimate leaks meanwhile", Leaky{Estimate: 40, FleetBefore: 40, Into: -minute / 2}, 60, minute / 2, 10},
	} {
		c.model.Window = minute
		if got := c.model.Level(c.threshold, c.wait); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: level = %v, want %v", c.name, got, c.want)
		}
	}
}

// drawModel draws any model that an entry can give.
func drawModel(t *rapid.T) (m Leaky, threshold uint64) {
	units := func(name string) float64 {
		return float64(rapid.OneOf(
			rapid.Just(uint64(0)), rapid.Uint64Range(0, 20), rapid.Uint64Range(0, 1<<53-1),
		).Draw(t, name))
	}
	m.Window = rapid.OneOf(rapid.Just(minute), rapid.Int64Range(int64(100*time.Millisecond), int64(8760*time.Hour))).Draw(t, "window")
	m.Into = rapid.Int64Range(-m.Window, m.Window-1).Draw(t, "into")
	m.Elapsed = rapid.OneOf(rapid.Int64Range(0, m.Window/16), rapid.Int64Range(0, 3*m.Window)).Draw(t, "elapsed")
	m.FleetBefore, m.Fleet = units("fleet before"), units("fleet")
	m.LocalBefore, m.Local = units("pending before"), units("pending")
	m.Estimate = rapid.Float64Range(0, m.FleetBefore+m.Fleet).Draw(t, "estimate")
	threshold = rapid.OneOf(
		rapid.Uint64Range(0, 3), rapid.Uint64Range(0, 100), rapid.Uint64(), rapid.Just(uint64(math.MaxUint64)),
	).Draw(t, "threshold")
	return m, threshold
}

func TestLevelIsFiniteNeverNegativeAndNeverGrowsWithTime(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m, threshold := drawModel(t)
		a := rapid.Int64Range(0, 4*m.Window).Draw(t, "wait")
		b := a + rapid.OneOf(rapid.Just(int64(1)), rapid.Int64Range(0, 4*m.Window)).Draw(t, "and then")
		first, second := m.Level(threshold, a), m.Level(threshold, b)
		if !(first >= 0) || !(second >= 0) || math.IsInf(first, 0) || second > first {
			t.Fatalf("level is %v after %d ns and %v after %d ns", first, a, second, b)
		}
		if end := m.Level(threshold, m.EmptyAfter()); end != 0 {
			t.Fatalf("level is %v when no epoch that counts is left", end)
		}
	})
}

func TestWaitIsTheFirstNanosecondThatWillDo(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m, threshold := drawModel(t)
		below := rapid.Float64Range(1e-9, 1<<54).Draw(t, "below")
		ok := func(wait int64) bool { return m.Level(threshold, wait) < below }
		wait := LeastWait(m.EmptyAfter(), ok)
		if wait < 0 || wait > m.EmptyAfter() {
			t.Fatalf("wait is %d, want 0 … %d", wait, m.EmptyAfter())
		}
		if !ok(wait) || wait > 0 && ok(wait-1) {
			t.Fatalf("after %d ns level is %v, one before it %v; want it below %v just then",
				wait, m.Level(threshold, wait), m.Level(threshold, wait-1), below)
		}
	})
}

// What a wait promises holds whenever the counters are read until a tick has passed.
func TestNoReadWithinATickLeavesMoreThanHighest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		m, threshold := drawModel(rt)
		tick := rapid.Int64Range(0, m.Window/4).Draw(rt, "tick")
		wait := rapid.OneOf(rapid.Int64Range(0, tick), rapid.Int64Range(0, 2*m.Window)).Draw(rt, "wait")
		highest := m.Highest(threshold, tick, wait)
		if later := m.Highest(threshold, tick, wait+rapid.Int64Range(0, m.Window).Draw(rt, "more")); later > highest {
			rt.Fatalf("the highest level rises from %v to %v", highest, later)
		}
		if got := m.Level(threshold, wait); got > highest {
			rt.Fatalf("level %v, highest %v", got, highest)
		}
		// A node that reads after some time, as it happens.
		read := rapid.Int64Range(0, min(tick, wait)).Draw(rt, "read")
		after := m
		after.FleetBefore, after.Fleet = m.FleetBefore+m.LocalBefore, m.Fleet+m.Local
		after.LocalBefore, after.Local, after.Elapsed = 0, 0, 0
		if after.Into += read; after.Into >= m.Window {
			after.Into -= m.Window
			after.FleetBefore, after.Fleet = after.Fleet, 0
		}
		after.Estimate = after.Weighed()
		if got := after.Level(threshold, wait-read); got > highest {
			rt.Fatalf("read after %d ns the level is %v after %d, highest %v", read, got, wait, highest)
		}
	})
}

func TestLooseCountsPendingUnitsWhole(t *testing.T) {
	t.Parallel()
	m := Leaky{Window: minute, Into: minute / 2, FleetBefore: 40, Fleet: 10, LocalBefore: 3, Local: 5}
	for _, c := range []struct {
		wait          int64
		loose, strict float64
	}{
		{0, 20 + 10 + 3 + 5, 40 + 10 + 3 + 5},
		{minute / 4, 10 + 10 + 3 + 5, 40 + 10 + 3 + 5},
		{minute / 2, 10 + 5, 10 + 5},
		{minute, 5 + 5, 10 + 5},
		{minute * 3 / 2, 0, 0},
	} {
		if loose, strict := m.Loose(false, c.wait), m.Loose(true, c.wait); loose != c.loose || strict != c.strict {
			t.Errorf("after %d: %v, strict %v; want %v, %v", c.wait, loose, strict, c.loose, c.strict)
		}
	}
}

// No read within the tick brings the level higher than the highest, wherever boundaries lie.
func TestTheHighestLevelIsThatOfAnyRead(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		units := rapid.Float64Range(0, 200)
		m := Leaky{
			Window: minute, Into: rapid.Int64Range(-minute+1, minute-1).Draw(rt, "into"), Elapsed: rapid.Int64Range(0, minute).Draw(rt, "elapsed"),
			FleetBefore: units.Draw(rt, "fleet before"), Fleet: units.Draw(rt, "fleet"),
			LocalBefore: units.Draw(rt, "local before"), Local: units.Draw(rt, "local"),
		}
		m.Estimate = m.Weighed()
		threshold := rapid.Uint64Range(1, 200).Draw(rt, "threshold")
		tick, wait := rapid.Int64Range(1, minute).Draw(rt, "tick"), rapid.Int64Range(0, 2*minute).Draw(rt, "wait")
		highest := m.Highest(threshold, tick, wait)
		last := min(tick, wait)
		reads := []int64{last, -m.Into, m.Window - m.Into}
		for i := range int64(100) {
			reads = append(reads, last/100*i)
		}
		for _, read := range reads {
			if got := m.afterRead(threshold, read, wait); 0 <= read && read <= last && got > highest*(1+1e-9) {
				rt.Fatalf("read after %d of %d: level %v after %d, the highest is %v", read, tick, got, wait, highest)
			}
		}
		if got := m.Level(threshold, wait); got > highest {
			rt.Fatalf("without a read the level is %v, the highest %v", got, highest)
		}
	})
}
