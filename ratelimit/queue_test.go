package ratelimit

// This file tests the queue, and the bound on what waits in it (docs/design.md, the
// configuration's channel_capacity).

import (
	"fmt"
	"testing"
	"time"
)

func TestAnEntityQueuesOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(nil)
	for range 50 {
		n.check("a", 1)
		n.Peek("a")
	}
	if s := n.Stats(); s.Queued != 1 {
		t.Errorf("an entity checked 50 times is queued %d times", s.Queued)
	}
	n.Forget("a")
	n.check("a", 1)
	n.Forget("a")
	n.check("a", 1)
	if s := n.Stats(); s.Queued != 1 || s.Entities != 1 {
		t.Errorf("forgotten and revived: %+v", s)
	}
	n.sync()
	if s := n.Stats(); s.Queued != 0 {
		t.Errorf("%d queued after a tick", s.Queued)
	}
	w.conserves(n)
}

func TestAnOutageKeepsWhatTheBoundsAllowAndDeliversItAfterwards(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.ChannelCapacity, c.LocalCacheMaxEntries, c.MaxSyncKeysPerTick = 50, 100, 20 })
	n.link.breaks(errUnreachable, nil)
	for i := range 300 {
		n.check(fmt.Sprint("k", i), 1)
		if i%50 == 0 {
			w.clock.Advance(time.Second)
		}
		s := n.Stats()
		if s.Entities > 150 || s.Queued > 150 {
			t.Fatalf("%d entities in the table, %d queued, want at most 150", s.Entities, s.Queued)
		}
		if want := uint64(max(0, i+1-150)); s.Dropped != (Dropped{Overflow: want}) {
			t.Fatalf("after %d keys dropped %+v, want %d as overflow", i+1, s.Dropped, want)
		}
	}
	w.conserves(n)
	n.link.heals()
	w.clock.Advance(10 * time.Second)
	if s := n.Stats(); s.Undelivered != 0 || s.Dropped != (Dropped{Overflow: 150}) || s.Queued != 0 || s.Entities != 100 {
		t.Errorf("%+v, want all delivered but the overflow", s)
	}
	w.conserves(n)
}

// When a batch is given up, an entity near its threshold asks again.
func TestAPressedEntityOfAnAbandonedBatchAsksAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.TickInterval = 15 * time.Second })
	n.check("hot", 250)
	n.sync()
	w.clock.Advance(7500 * time.Millisecond)
	n.check("hot", 1) // limited; asks for a read
	n.link.breaks(errUnreachable, nil)
	n.syncFails()
	w.clock.StepWall(2 * time.Minute)
	n.check("idle", 1)
	n.link.heals()
	n.says("the next tick", "+1 idle0 ?hot-1 ?hot0 ?idle-1 ")
	w.conserves(n)
}
