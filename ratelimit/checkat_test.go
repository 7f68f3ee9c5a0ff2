// Tests of CheckAt: it decides now and counts in the epoch of a time.

package ratelimit

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// unsentByAge returns the key's unsent units, by how many epochs ago they count.
func (n *node) unsentByAge(key string) map[int64]uint64 {
	unsent, _ := n.unsettled()
	ages := map[int64]uint64{}
	for c, units := range unsent {
		if c.key == key {
			ages[n.read().epoch-c.epoch] += units
		}
	}
	return ages
}

func TestCheckAtCountsInTheEpochOfTheTime(t *testing.T) {
	t.Parallel()
	now := start.Add(10*time.Minute + 20*time.Second)
	for _, c := range []struct {
		name    string
		at      time.Time
		age     int64 // of the epoch that counts them
		dropped bool
	}{
		{"now", now, 0, false},
		{"earlier in this epoch", start.Add(10 * time.Minute), 0, false},
		{"a nanosecond before it", start.Add(10*time.Minute - 1), 1, false},
		{"at the start of the previous epoch", start.Add(9 * time.Minute), 1, false},
		{"a nanosecond before that", start.Add(9*time.Minute - 1), 0, true},
		{"long ago", start.Add(-24 * time.Hour), 0, true},
		{"at the Unix epoch", time.Unix(0, 0), 0, true},
		{"at the zero time, which int64 nanoseconds do not reach", time.Time{}, 0, true},
		{"at the earliest time they reach", time.Unix(0, math.MinInt64), 0, true},
		{"2^64 ns ago, which int64 nanoseconds take for now", now.Add(math.MinInt64).Add(math.MinInt64), 0, true},
		{"before all times", time.Unix(math.MinInt64, 0), 0, true},
		{"a nanosecond ahead", now.Add(1), 0, false},
		{"an epoch ahead", now.Add(time.Minute), 0, false},
		{"a year ahead", now.AddDate(1, 0, 0), 0, false},
		{"at the latest time int64 nanoseconds reach", time.Unix(0, math.MaxInt64), 0, false},
		{"after all times", time.Unix(math.MaxInt64-62135596801, 999999999), 0, false},
		{"in another zone", now.In(time.FixedZone("", 5*3600)), 0, false},
	} {
		for _, known := range []bool{false, true} {
			w := newWorld(t)
			n := w.node(nil, WithClock(still{w.clock}))
			w.clock.SetWall(now)
			if known {
				n.Check("k", 1)
			}
			d := n.CheckAt("k", 7, c.at)
			level, basis := 7.0, BasisFirstContact
			want, stale := map[int64]uint64{c.age: 7}, uint64(0)
			if c.dropped {
				want, stale = map[int64]uint64{}, 7
			}
			counted := uint64(7)
			if known {
				level, basis, counted = 8, BasisLocal, 8
				want[0]++
			}
			if !d.Allowed() || d.Level() != level || d.Basis() != basis {
				t.Errorf("%s, known %v: %v on %v at level %v, want allowed on %v at %v", c.name, known, d.Verdict(), d.Basis(), d.Level(), basis, level)
			}
			if diff := cmp.Diff(want, n.unsentByAge("k")); diff != "" {
				t.Errorf("%s, known %v: unsent units by epochs ago (-want +got):\n%s", c.name, known, diff)
			}
			if s := n.Stats(); s.Counted != counted || s.Dropped.Stale != stale {
				t.Errorf("%s, known %v: counted %d and %d stale, want %d and %d", c.name, known, s.Counted, s.Dropped.Stale, counted, stale)
			}
		}
	}
}

func TestCheckAtWeighsItsOwnUnitsWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(nil, WithClock(still{w.clock}))
	n.Check("k", 1)
	w.clock.Advance(90 * time.Second) // the unit of the previous epoch weighs half
	before := start.Add(59 * time.Second)
	for i, c := range []struct {
		units uint64
		want  Verdict
		level float64
	}{
		{100, no, 100.5}, // would weigh 50 in its epoch
		{60, yes, 60.5},
		{69, yes, 0.5 + 30 + 69},
		{1, yes, 0.5 + 64.5 + 1},
	} {
		d := n.CheckAt("k", c.units, before)
		if d.Verdict() != c.want || d.Level() != c.level {
			t.Fatalf("check %d: %v at level %v, want %v at %v", i, d.Verdict(), d.Level(), c.want, c.level)
		}
	}
}

func TestCheckAtLimitedCountsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(nil, WithClock(still{w.clock}))
	n.Check("k", 100)
	for _, at := range []time.Time{start, start.Add(-time.Second), start.Add(-time.Hour)} {
		if d := n.CheckAt("k", 1, at); d.Allowed() {
			t.Errorf("allowed at level %v", d.Level())
		}
	}
	if s := n.Stats(); s.Counted != 100 || s.Dropped.Stale != 0 {
		t.Errorf("counted %d, %d stale; want 100, 0", s.Counted, s.Dropped.Stale)
	}
}

func TestCheckAtDeliversToTheEpochOfTheTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(nil)
	w.clock.Advance(time.Minute)
	before := n.counterKey("k", n.read().epoch)
	w.clock.Advance(time.Minute)
	n.CheckAt("k", 3, start.Add(119*time.Second))
	n.CheckAt("k", 4, start.Add(120*time.Second))
	w.clock.Advance(time.Second)
	for key, want := range map[string]int64{before: 3, n.counterKey("k", n.read().epoch): 4} {
		if got, _ := w.mem.Get(key); got != want {
			t.Errorf("the store holds %d at %q, want %d", got, key, want)
		}
	}
}

// With the wall a window back, the entry's previous slot is the epoch of now.
func TestCheckAtAfterTheClockSteppedBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(nil, WithClock(still{w.clock}))
	n.Check("k", 1)
	w.clock.StepWall(-time.Second)
	n.CheckAt("k", 2, start)                        // ahead of now: counts as now
	n.CheckAt("k", 4, start.Add(-time.Second))      // now
	n.CheckAt("k", 8, start.Add(-61*time.Second))   // the epoch before: the entry has it no more
	n.CheckAt("k", 16, start.Add(-600*time.Second)) // stale anyway
	want := map[int64]uint64{-1: 1, 0: 6}
	if diff := cmp.Diff(want, n.unsentByAge("k")); diff != "" {
		t.Errorf("unsent units by epochs ago (-want +got):\n%s", diff)
	}
	if s := n.Stats(); s.Counted != 31 || s.Dropped.Stale != 24 {
		t.Errorf("counted %d, %d stale; want 31, 24", s.Counted, s.Dropped.Stale)
	}
}
