package ratelimit

// This file tests readings of the clock that are used late: a goroutine read the
// clock, and others went on for more than a window before it came to the entry.

import (
	"testing"
	"time"

	"github.com/hanzoai/limiters/internal/level"
)

// decideLate decides as Check does, by a reading made before.
func (n *node) decideLate(key string, units uint64, r reading) (d Decision) {
	n.decide(&d, key, &request{units: units, epoch: r.epoch}, &r)
	n.audit.count(key, r.epoch, units)
	return d
}

// A late reading is no clock that stepped back: the entry stays as it is, and only
// the late units themselves are stale, for their epoch cannot be read any more.
func TestALateReadingCostsAnEntryNothing(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		behind time.Duration
		stale  uint64
	}{
		{time.Minute, 0}, // the previous epoch
		{2 * time.Minute, 1},
		{time.Hour, 1},
	} {
		w := newWorld(t)
		n := w.node(nil)
		late := n.read()
		w.clock.Advance(row.behind)
		n.check("k", 50)
		n.sync()
		n.check("k", 7)
		before := n.entries()["k"]
		if d := n.decideLate("k", 1, late); !d.Allowed() || d.Level() != 58 {
			t.Errorf("%v behind: %v at level %v, want allowed at 58", row.behind, d.Verdict(), d.Level())
		}
		for range 3 { // not even many of them
			n.decideLate("k", 0, reading{late.wall + 1, late.mono + 1, late.epoch, late.into + 1})
		}
		if e := n.entries()["k"]; e.Epoch != before.Epoch || e.Slots[1] != before.Slots[1] || e.UsedAt != before.UsedAt || e.Estimate != 50 {
			t.Errorf("%v behind: the entry was %+v, and is %+v", row.behind, before, e)
		}
		if got := n.Stats().Dropped; got != (Dropped{Stale: row.stale}) {
			t.Errorf("%v behind: dropped %+v, want %d stale", row.behind, got, row.stale)
		}
		w.conserves(n)
	}
}

// Nor does a scan, a tick or the search for room, each by one reading for many
// entries, cost those that moved on meanwhile.
func TestAWalkByALateReadingCostsNoEntryAnything(t *testing.T) {
	t.Parallel()
	for name, walk := range map[string]func(*node, reading){
		"scan":    func(n *node, r reading) { n.table.shards[0].scan(r, &[level.Tiers]int{}) },
		"room":    func(n *node, r reading) { n.table.shards[0].evictOneLocked(nil, spareHeld, &r) },
		"advance": func(n *node, r reading) { n.entry("k").advanceLocked(&r) },
	} {
		w := newWorld(t)
		n := w.small(10)
		late := n.read()
		w.clock.Advance(3 * time.Minute)
		n.check("k", 7)
		walk(n, late)
		if d, got := n.Peek("k"), n.Stats().Dropped; d.Level() != 7 || got != (Dropped{}) {
			t.Errorf("%s: level %v, dropped %+v; want 7 and none", name, d.Level(), got)
		}
		w.conserves(n)
	}
}

// A wall that does step back is still followed.
func TestAStepBackIsNoLateReading(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(nil)
	n.check("k", 7)
	w.clock.StepWall(-3 * time.Minute)
	if d := n.check("k", 1); d.Level() != 1 || n.Stats().Dropped.Stale != 7 {
		t.Errorf("level %v, dropped %+v; want 1 and 7 stale", d.Level(), n.Stats().Dropped)
	}
	w.conserves(n)
}
