// This file tests that decisions are counted exactly, wherever they are made and
// whenever they are collected.

package ratelimit

import (
	"fmt"
	"math"
	"sync"
	"testing"
)

// What was decided shows at once and to the one, whether the entity was allowed,
// limited, met for the first time, looked at, or is gone.
func TestDecisionsAreCountedWhereverTheyAreMade(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.small(10)
	want := Stats{}
	for i := range 1000 {
		key := fmt.Sprint("k", i%37)
		for _, units := range []uint64{0, 3, 60, 60} {
			before := n.Stats()
			if n.Check(key, units).Verdict() == VerdictLimited {
				want.Limited++
			} else {
				want.Allowed++
				want.Counted += units
			}
			if s := n.Stats(); s.Allowed != want.Allowed || s.Limited != want.Limited || s.Counted != want.Counted {
				t.Fatalf("%d, %d and %d are counted, want %d, %d and %d (before: %+v)",
					s.Allowed, s.Limited, s.Counted, want.Allowed, want.Limited, want.Counted, before)
			}
		}
	}
	if want.Limited == 0 || want.Allowed == 0 {
		t.Fatalf("%+v: the test does not limit, or does not allow", want)
	}
}

// The counts of an entry are narrow; the sum is not.
func TestCountsOfAnEntryDoNotOverflow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(nil)
	n.check("k", 1)
	s := n.Stats()
	n.check("k", 1)
	n.entry("k").allowed, n.entry("k").limited = math.MaxInt32, math.MaxInt32 // as after so many more
	const more = 10 * round
	for range more {
		n.check("k", 0)
		n.check("k", 1000)
	}
	if e := n.entry("k"); e.allowed > more || e.limited > more {
		t.Errorf("the entry counts %d and %d, and they were never put aside", e.allowed, e.limited)
	}
	got := n.Stats()
	if want := s.Allowed + math.MaxInt32 + more; got.Allowed != want {
		t.Errorf("%d allowed, want %d", got.Allowed, want)
	}
	if want := s.Limited + math.MaxInt32 + more; got.Limited != want {
		t.Errorf("%d limited, want %d", got.Limited, want)
	}
}

// Entries that left the table are not held for their counts, with no tick at all.
func TestWhatIsToBeCollectedIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.LocalCacheMaxEntries, c.ChannelCapacity = 64, 10 })
	most := 0
	for i := range 20_000 {
		n.check(fmt.Sprint("k", i), 1)
		waiting := 0
		for j := range n.table.shards {
			for e := n.table.shards[j].told.front; e != nil; e = e.toldNext {
				waiting++
			}
		}
		if most = max(most, waiting); waiting > 64+10 {
			t.Fatalf("%d entries wait to be collected", waiting)
		}
	}
	if most < 10 {
		t.Errorf("%d entries waited to be collected at most: the test counts nothing", most)
	}
	if s := n.Stats(); s.Allowed != 20_000 || s.Counted != 20_000 {
		t.Errorf("%d allowed, %d counted; want 20000 each", s.Allowed, s.Counted)
	}
	w.conserves(n)
}

func TestCountingDuringCollection(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.small(20)
	const each = 5000
	var workers sync.WaitGroup
	for g := range 4 {
		workers.Go(func() {
			for i := range each {
				n.Check(fmt.Sprint("k", (g+i)%40), uint64(i%2))
			}
		})
	}
	var last Stats
	for range 200 {
		s := n.Stats()
		if s.Allowed < last.Allowed || s.Limited < last.Limited || s.Counted < last.Counted || s.Undelivered > s.Counted {
			t.Fatalf("%+v after %+v", s, last)
		}
		last = s
	}
	workers.Wait()
	if s := n.Stats(); s.Allowed+s.Limited != 4*each {
		t.Errorf("%d decisions are counted, want %d", s.Allowed+s.Limited, 4*each)
	}
}
