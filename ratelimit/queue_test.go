package ratelimit

// This file tests the bounds of the queue and of what evicted entries keep
// (docs/design.md, the configuration's channel_capacity).

import (
	"fmt"
	"testing"
	"time"

	"github.com/hanzoai/limiters/ratelimit/store"
)

func TestTheQueueTurnsIdleEntitiesAwayAtItsBound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.ChannelCapacity, c.TierScanIntervalTicks = 3, 1000 })
	for i := range 5 {
		n.check(fmt.Sprint("k", i), 1)
	}
	n.check("warm", 10) // finds room all the same
	n.check("hot", 80)
	if s := n.Stats(); s.Queued != 5 || s.Undelivered != 95 {
		t.Errorf("%d queued, %d units undelivered, want 3 idle ones and 2 others, and every unit", s.Queued, s.Undelivered)
	}
	if got := n.partitions[0].queue.entered.Load(); got != 5 {
		t.Errorf("%d pushes counted, want those that found room: 5", got)
	}
	n.says("the first tick", "+80 hot0 +10 warm0 +1 k00 +1 k10 +1 k20 ?hot-1 ?warm-1 ?k0-1 ?k1-1 ?k2-1 ")
	n.says("nothing is queued by itself", "")
	n.check("k3", 1)
	n.says("its next check queues one turned away", "+2 k30 ?k3-1 ")
	w.conserves(n)
	if s := n.Stats(); s.Undelivered != 1 { // k4's
		t.Errorf("%d units undelivered, want 1", s.Undelivered)
	}
}

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

// Evicted entries keep their units until they are delivered; beyond the bound the
// oldest ones' units are dropped.
func TestEvictedEntriesAreKeptUpToABound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.ChannelCapacity = 3 })
	for i := range 5 {
		n.check(fmt.Sprint("k", i), uint64(10+i))
	}
	for i := range 5 {
		n.Forget(fmt.Sprint("k", i))
	}
	if s := n.Stats(); s.Dropped != (Dropped{Overflow: 10 + 11}) || s.Undelivered != 12+13+14 || s.Entities != 0 {
		t.Errorf("%+v, want the oldest two dropped", s)
	}
	w.conserves(n)
	if e := n.entry("k0"); e != nil {
		t.Errorf("an entry whose units were dropped is still kept: %+v", e)
	}
	n.says("the others are sent, without a read", "+12 k20 +13 k30 +14 k40 ")
	for i := range 5 {
		if e := n.entry(fmt.Sprint("k", i)); e != nil {
			t.Errorf("k%d outlives the delivery of its units", i)
		}
	}
	w.conserves(n)
}

func TestARevivedEntryIsNotDropped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.ChannelCapacity = 2 })
	n.check("revived", 20)
	n.Forget("revived")
	if d := n.check("revived", 1); d.Basis() != BasisLocal || d.Level() != 21 {
		t.Errorf("revived: %v at level %v, want it as it was: local, 21", d.Basis(), d.Level())
	}
	for i := range 4 {
		n.check(fmt.Sprint("k", i), 1)
		n.Forget(fmt.Sprint("k", i))
	}
	if s := n.Stats(); s.Dropped != (Dropped{Overflow: 2}) || s.Undelivered != 23 {
		t.Errorf("%+v, want two of the four dropped and nothing of the revived one", s)
	}
	n.Forget("revived") // now the youngest
	if s := n.Stats(); s.Dropped != (Dropped{Overflow: 3}) {
		t.Errorf("%+v, want a third of the four dropped", s)
	}
	n.sync()
	w.conserves(n)
	if got := w.total(n, "revived", n.epochAt(0)); got != 21 {
		t.Errorf("the store holds %d of the revived one, want 21", got)
	}
}

// Units in flight are the batch's: no bound drops them.
func TestTheBoundDropsNothingInFlight(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.ChannelCapacity = 1 })
	for i := range 4 {
		n.check(fmt.Sprint("k", i), 10)
	}
	n.link.breaks(nil, errTimeout)
	n.syncFails()
	for i := range 4 {
		n.check(fmt.Sprint("k", i), 10)
		n.Forget(fmt.Sprint("k", i))
	}
	s := n.Stats()
	if s.Partitions[0].InFlight != 40 || s.Dropped != (Dropped{Overflow: 30}) || s.Undelivered != 50 {
		t.Errorf("%+v, want the 40 units sent still in flight, and 10 of the others kept", s)
	}
	w.conserves(n)
	n.link.heals()
	n.sync()
	n.sync()
	if s := n.Stats(); s.Undelivered != 0 {
		t.Errorf("%+v", s)
	}
	w.conserves(n)
}

// A batch that was refused counter by counter puts evicted entries back under
// their bound.
func TestRefusalsOfEvictedEntriesKeepTheBound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.ChannelCapacity, c.MaxSyncKeysPerTick = 2, 100 })
	for i := range 6 {
		n.check(fmt.Sprint("k", i), 10)
		w.mem.Fail(n.counterKey(fmt.Sprint("k", i), n.epochAt(0)), store.Refused)
	}
	n.link.hook(func(*store.Batch) error {
		for i := range 6 {
			n.Forget(fmt.Sprint("k", i))
		}
		return nil
	}, nil)
	n.sync()
	if s := n.Stats(); s.Undelivered != 20 || s.Dropped != (Dropped{Overflow: 40}) {
		t.Errorf("%+v, want the units of 2 entries kept", s)
	}
	w.conserves(n)
}

func TestAFullQueueOfAnOutageDrainsAfterIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.ChannelCapacity, c.LocalCacheMaxEntries, c.MaxSyncKeysPerTick = 50, 100, 20 })
	n.link.breaks(errUnreachable, nil)
	for i := range 300 {
		n.check(fmt.Sprint("k", i), 1)
		if i%50 == 0 {
			w.clock.Advance(time.Second)
		}
		p := n.partitions[0]
		if kept := p.queue.evicted.len; kept > 50 {
			t.Fatalf("%d evicted entries kept, want at most 50", kept)
		}
		if live := n.Stats().Entities; live > 100 {
			t.Fatalf("%d entities in the table, want at most 100", live)
		}
	}
	w.conserves(n)
	n.link.heals()
	w.clock.Advance(70 * time.Second) // two scans, each of which fills the queue
	if s := n.Stats(); s.Undelivered != 0 || s.Dropped.Total() != s.Dropped.Overflow || s.Queued != 0 {
		t.Errorf("%+v, want all delivered but the overflow", s)
	}
	w.conserves(n)
}

// When a batch is given up, an entity near its threshold asks again although the
// queue is full of idle ones.
func TestAPressedEntityOfAnAbandonedBatchFindsRoom(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.ChannelCapacity, c.TickInterval = 1, 15*time.Second })
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
