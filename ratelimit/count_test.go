// This file tests that decisions are counted exactly, wherever they are made and
// whenever they are collected.

package ratelimit

import (
	"fmt"
	"sync"
	"testing"

	"github.com/hanzoai/limiters/internal/clock"
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

// Entries that left the table are not held for their counts, with no tick at all.
func TestWhatIsToBeCollectedIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.LocalCacheMaxEntries, c.ChannelCapacity = 64, 10 })
	most := 0
	for i := range 20_000 {
		n.check(fmt.Sprint("k", i), 1)
		n.Peek(fmt.Sprint("k", i)) // a key seen once is counted at once
		waiting := 0
		for j := range n.table.shards {
			waiting += len(n.table.shards[j].told.entries)
		}
		if most = max(most, waiting); waiting > 64+10 {
			t.Fatalf("%d entries wait to be collected", waiting)
		}
	}
	if most < 10 {
		t.Errorf("%d entries waited to be collected at most: the test counts nothing", most)
	}
	if s := n.Stats(); s.Allowed != 40_000 || s.Counted != 20_000 {
		t.Errorf("%d allowed, %d counted; want 40,000 and 20,000", s.Allowed, s.Counted)
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

// Every so often a check reads the system's clock for all: a known key's, a new one's, and
// those of a group of new ones, which take long.
func TestChecksKeepTheClockFresh(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name  string
		most  int // checks of one shard between two readings
		check func(n *node, i int)
	}{
		{"a known key", round, func(n *node, _ int) { n.Check("k", 0) }},
		{"new keys", missesRound, func(n *node, i int) { n.Check(fmt.Sprint("k", i), 1) }},
		{"new keys that leave no entry", missesRound, func(n *node, i int) { n.Check(fmt.Sprint("k", i), 0) }},
		{"a known key in a group", round, func(n *node, _ int) { n.CheckAll([]Item{{Key: "k", Units: 0}}) }},
		{"new keys in a group", missesRound, func(n *node, i int) {
			n.CheckAll([]Item{{Key: fmt.Sprint("a", i), Units: 1}, {Key: fmt.Sprint("b", i), Units: 1}})
		}},
		{"new keys in a group that is refused", missesRound, func(n *node, i int) {
			n.CheckAll([]Item{{Key: fmt.Sprint("a", i), Units: 1}, {Key: "blocked", Units: 1}})
		}},
	} {
		w := newWorld(t)
		n := w.small(64) // one shard
		n.SetOverrides(map[string]uint64{"blocked": 0})
		n.Check("k", 1)
		n.system = clock.NewSystem() // which does not run: what changes its reading is a check
		renewed := 0
		for i := range 4 * row.most {
			_, before, _ := n.system.Glance()
			row.check(n, i)
			if _, after, _ := n.system.Glance(); after != before {
				renewed++
			}
		}
		if renewed < 3 {
			t.Errorf("%s: %d checks renewed the reading %d times", row.name, 4*row.most, renewed)
		}
	}
}
