package ratelimit

// This file tests the walk over the table: what it counts and evicts, when,
// and in which slices (docs/design.md, the tick).

import (
	"fmt"
	"testing"
	"time"

	"github.com/hanzoai/limiters/internal/level"
)

func TestTheScanCountsTiersByThePresentLevel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.TierScanIntervalTicks = 3 })
	n.SetOverrides(map[string]uint64{"big": 1000})
	for key, units := range map[string]uint64{"i1": 9, "l1": 10, "l2": 49, "n1": 50, "n2": 79, "h1": 80, "h2": 300, "big": 100} {
		n.check(key, units)
	}
	n.sync()
	n.sync()
	if got := n.Stats().Tiers; got != [level.Tiers]int{} {
		t.Errorf("before the third tick: %v", got)
	}
	n.sync()
	if got, want := n.Stats().Tiers, ([level.Tiers]int{1, 3, 2, 2}); got != want {
		t.Errorf("tiers %v, want %v", got, want)
	}
	n.check("late", 90)
	n.sync()
	n.sync()
	if got, want := n.Stats().Tiers, ([level.Tiers]int{1, 3, 2, 2}); got != want {
		t.Errorf("between scans: tiers %v, want %v", got, want)
	}
	w.clock.Advance(30 * time.Second) // half the threshold leaks
	if got, want := n.Stats().Tiers, ([level.Tiers]int{5, 3, 0, 1}); got != want {
		t.Errorf("half a window later: tiers %v, want %v", got, want)
	}
	w.clock.Advance(3 * time.Minute)
	if got, want := n.Stats().Tiers, ([level.Tiers]int{9}); got != want {
		t.Errorf("three windows later: tiers %v, want %v", got, want)
	}
}

func TestTheScanEvictsTheIdle(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(nil)
	n.check("a", 5)
	w.clock.Advance(299 * time.Second)
	if s := n.Stats(); s.Entities != 1 {
		t.Fatalf("%d entities before the idle timeout", s.Entities)
	}
	w.clock.Advance(31 * time.Second)
	if s := n.Stats(); s.Entities != 0 || n.entry("a") != nil {
		t.Errorf("%d entities after the idle timeout and a scan", s.Entities)
	}
	if got := n.table.counts().evicted; got != [evictCauses]uint64{evictExpired: 1} {
		t.Errorf("evictions %v, want one expired", got)
	}
	if d := n.check("a", 1); d.Basis() != BasisFirstContact {
		t.Errorf("checked afterwards: %v, want a first contact", d.Basis())
	}
}

// Eviction of an idle entity loses no unit that a read can still see.
func TestTheScanLeavesTheUndelivered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) {
		c.Window, c.TierScanIntervalTicks, c.LocalCacheIdleTimeout = WindowFixed, 1, 61*time.Second
	})
	w.clock.Advance(time.Second)
	n.link.breaks(errUnreachable, nil)
	n.check("a", 5)
	w.clock.Advance(62 * time.Second)
	if e := n.entry("a"); e == nil || !e.heldLocked() {
		t.Fatalf("the idle entry with units in flight: %+v, want it kept", e)
	}
	n.link.heals()
	w.clock.Advance(2 * time.Second)
	if s := n.Stats(); s.Delivered != 5 || n.entry("a") != nil {
		t.Errorf("%+v, want 5 delivered and the entry gone", s)
	}
	w.conserves(n)
}

// A walk over a large table takes several ticks, and begins anew one interval after
// it began.
func TestTheScanGoesInSlices(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.TierScanIntervalTicks, c.GlobalThreshold = 4, 1_000_000 })
	const entities = scanSlice + scanSlice/2
	for i := range entities {
		n.Check(fmt.Sprint("k", i), 1)
	}
	for tick, want := range []int{0, 0, 0, 0, entities, entities, entities, entities} {
		n.housekeep()
		if got := n.Stats().Tiers[Idle]; got != want {
			t.Errorf("after tick %d %d entities are counted, want %d", tick+1, got, want)
		}
	}
	if n.scan.next == 0 {
		t.Error("the second walk is not under way at the eighth tick")
	}
}

// Between the walk's look at an entry and its eviction a check may have used it, counted
// units, or another walk may have evicted it.
func TestTheScanLeavesWhatWasUsedSinceItsLook(t *testing.T) {
	t.Parallel()
	for name, between := range map[string]func(n *node, s *shard, e *entry){
		"used":    func(n *node, _ *shard, e *entry) { r := n.read(); e.useLocked(&r) },
		"counted": func(n *node, _ *shard, e *entry) { e.slots[1].unsent++ },
		"evicted": func(n *node, s *shard, e *entry) { r := n.read(); s.evictIdle(e, &r) },
	} {
		w := newWorld(t)
		n := w.node(func(c *Config) { c.TierScanIntervalTicks = 10_000 })
		n.check("k", 1)
		w.clock.Advance(time.Second)
		e := n.entry("k")
		s := n.table.shardOf(e.hash)
		e.usedAt = n.read().mono - int64(n.cfg.LocalCacheIdleTimeout)
		r := n.read()
		var counts [level.Tiers]int
		if !s.scanOneLocked(e, &r, &counts) {
			t.Fatalf("%s: the entry is not idle", name)
		}
		between(n, s, e)
		s.evictIdle(e, &r)
		want := 1
		if name == "evicted" {
			want = 0
		}
		if got := n.Stats().Entities; got != want || int64(want) != n.table.live.Load() {
			t.Errorf("%s meanwhile: %d entities are left, want %d", name, got, want)
		}
		e.slots[1].unsent = 0
	}
}
