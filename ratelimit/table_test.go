// Tests of the table: what it holds, for how long, and within which bound.

package ratelimit

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"github.com/hanzoai/limiters/ratelimit/store"
)

// An entryState is what a test sees of an entry.
type entryState struct {
	Place    place
	Epoch    int64
	Slots    [2][3]uint64 // pending, unsent, total
	Estimate float64
	Hits     uint8
	WantRead bool
	Queued   bool
	SyncedAt int64
	UsedAt   int64
}

// eachEntry calls f for every entry in the table.
func (n *node) eachEntry(f func(e *entry)) {
	for i := range n.table.shards {
		for p := range n.table.shards[i].lists {
			for e := n.table.shards[i].lists[p].front; e != nil; e = e.next {
				f(e)
			}
		}
	}
}

// entries returns all entries by key. Nothing else may run.
func (n *node) entries() map[string]entryState {
	all := map[string]entryState{}
	n.eachEntry(func(e *entry) {
		if _, twice := all[e.key]; twice {
			n.world.t.Errorf("key %q has two entries", e.key)
		}
		state := entryState{
			Place: e.place, Epoch: e.epoch, Estimate: e.slide.Aging, Hits: e.hits,
			WantRead: e.wantRead, Queued: e.queued, SyncedAt: e.syncedAt, UsedAt: e.usedAt,
		}
		for i, s := range e.slots {
			state.Slots[i] = [3]uint64{s.pending, s.unsent, s.total}
		}
		all[e.key] = state
	})
	return all
}

// held returns the keys in the table, sorted.
func (n *node) held() (keys []string) {
	n.eachEntry(func(e *entry) { keys = append(keys, e.key) })
	slices.Sort(keys)
	return keys
}

func TestAnEntityIdleForTooLongIsUnknown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.LocalCacheIdleTimeout = 3 * time.Minute })
	n.check("k", 1)
	w.clock.Advance(3*time.Minute - 1)
	if d := n.Peek("k"); d.Basis() == BasisFirstContact {
		t.Fatal("forgotten before its idle timeout")
	}
	w.clock.Advance(3*time.Minute - 1) // a probe is use
	n.check("k", 1)
	w.clock.Advance(3 * time.Minute)
	if d := n.check("k", 1); d.Basis() != BasisFirstContact {
		t.Fatalf("rests on %v, want first contact", d.Basis())
	}
	if got := n.table.counts().evicted; got != [evictCauses]uint64{evictExpired: 1} {
		t.Errorf("evictions by cause %v, want one expired", got)
	}
	w.clock.Advance(time.Second)
	w.conserves(n)
}

func TestTheScanEvictsIdleEntities(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) {
		c.LocalCacheIdleTimeout, c.TierScanIntervalTicks = 3*time.Minute, 1
	})
	for i := range 1000 {
		n.check(fmt.Sprint(i), 1)
	}
	w.clock.Advance(time.Minute)
	n.Peek("7")
	w.clock.Advance(2*time.Minute - time.Second)
	if got := n.Stats().Entities; got != 1000 {
		t.Fatalf("%d entities a second before the idle timeout, want 1,000", got)
	}
	w.clock.Advance(time.Second)
	if got := n.held(); !slices.Equal(got, []string{"7"}) {
		t.Fatalf("%d entities after the idle timeout, want that which was used", len(got))
	}
	if got := n.table.counts().evicted; got != [evictCauses]uint64{evictExpired: 999} {
		t.Errorf("evictions by cause %v, want 999 expired", got)
	}
	w.conserves(n)
}

// An outage must not make an idle entity's units vanish, nor the entity unknown.
func TestAnIdleEntityWithUnsentUnitsIsKeptUntilTheyAreDelivered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) {
		c.LocalCacheIdleTimeout, c.LocalCacheTTL, c.SyncInterval = time.Minute, time.Minute, 10*time.Second
		c.Window, c.TierScanIntervalTicks = WindowFixed, 1
	}).alone()
	n.check("k", 1)
	w.clock.Advance(30 * time.Second)
	n.check("k", 98)
	w.clock.Advance(30*time.Second - 1) // to the end of the epoch
	n.check("other", 1)
	w.clock.Advance(31 * time.Second)
	if d := n.check("k", 60); d.Basis() == BasisFirstContact || d.Level() != 60 {
		t.Fatalf("%v on %v at level %v, want an entity that is known, in a new window", d.Verdict(), d.Basis(), d.Level())
	}
	n.link.heals()
	w.clock.Advance(time.Second)
	w.conserves(n)
	if s := n.Stats(); s.Undelivered != 0 || s.Delivered != 160 {
		t.Errorf("delivered %d, undelivered %d; want 160, 0", s.Delivered, s.Undelivered)
	}
}

func TestAnEntryOlderThanItsTTLIsReadFromScratch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.LocalCacheTTL, c.LocalCacheIdleTimeout = 150*time.Second, 150*time.Second })
	n.check("k", 5) // idle: never read on its own account
	w.clock.Advance(time.Second)
	n.reads()
	w.clock.Advance(44 * time.Second)
	n.Peek("k")
	w.clock.Advance(105*time.Second - 1)
	if got := n.probe("k"); got != 0 {
		t.Fatalf("%d counters read before the TTL", got)
	}
	w.mem.Set(n.counterKey("k", n.read().epoch-1), "4000")
	w.clock.Advance(time.Second + 1) // 151 s after its creation, 150 after its first read
	if got := n.probe("k"); got != 2 {
		t.Fatalf("%d counters read after the TTL, want both", got)
	}
	if d := n.Peek("k"); math.Abs(d.Level()-4000.0*29/60) > 1e-9 {
		t.Fatalf("level %v, want what was read", d.Level())
	}
}

// To drop an entry for its age would let a limited entity through until the answer.
func TestAnEntryOlderThanItsTTLGoesOnDeciding(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.LocalCacheTTL, c.LocalCacheIdleTimeout = 150*time.Second, 150*time.Second }).alone()
	n.follow([]row{
		{0, 60, yes, 60},
		{75 * time.Second, 50, yes, 60*0.75 + 50},
		{75 * time.Second, 76, no, 50*0.5 + 76}, // its age is the TTL
		{15 * time.Second, 88, no, 50*0.25 + 88},
		{0, 87, yes, 50*0.25 + 87},
	})
	if d := n.Peek("k"); d.Basis() != BasisLocal {
		t.Fatalf("rests on %v", d.Basis())
	}
}

// The TTL holds for an entity of any tier, just after a read of its own too.
func TestAnEntryOlderThanItsTTLIsReadAtItsNextAccess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.LocalCacheTTL, c.LocalCacheIdleTimeout = 150*time.Second, 150*time.Second })
	n.check("k", 85)
	w.clock.Advance(time.Second)
	n.reads()
	last := n.read().mono
	for range 300 {
		w.clock.Advance(500 * time.Millisecond)
		n.Peek("k")
		n.Sync(context.Background())
		if n.reads() > 0 {
			last = n.read().mono
		}
		if age := n.read().mono - last; age >= int64(150*time.Second) {
			t.Fatalf("not read for %v", time.Duration(age))
		}
	}
}

func TestForget(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(nil)
	n.Forget("never seen")
	n.check("k", 500)
	n.Forget("k") // its units are not delivered: it is remembered
	if d := n.check("k", 1); d.Basis() == BasisFirstContact || d.Allowed() {
		t.Fatalf("%v on %v with units undelivered", d.Verdict(), d.Basis())
	}
	n.Forget("k")
	n.Forget("k")
	w.clock.Advance(time.Second)
	w.conserves(n)
	if d := n.check("k", 1); d.Basis() != BasisFirstContact || !d.Allowed() {
		t.Fatalf("%v on %v, want a first contact", d.Verdict(), d.Basis())
	}
	w.clock.Advance(time.Second)
	if d := n.check("k", 1); d.Allowed() || d.Basis() != BasisFleet {
		t.Fatalf("%v on %v at level %v, want what the fleet counted", d.Verdict(), d.Basis(), d.Level())
	}
	n.Forget("k")
	if d := n.Peek("k"); d.Basis() != BasisFirstContact {
		t.Errorf("rests on %v with all delivered, want first contact", d.Basis())
	}
	if got := n.table.counts().evicted[evictExplicit]; got != 2 {
		t.Errorf("%d explicit evictions, want 2", got)
	}
	w.conserves(n)
}

func TestForgetAfterCloseLeavesNothing(t *testing.T) {
	t.Parallel()
	n := newWorld(t).node(nil)
	n.Close(context.Background())
	n.Check("k", 50)
	n.Forget("k")
	if got := n.entries(); len(got) != 0 {
		t.Errorf("remain %v", got)
	}
}

// The same timeline has the same answers and the same end.
func TestATimelineHasOneOutcome(t *testing.T) {
	t.Parallel()
	type outcome struct {
		Decisions []string
		Entries   []map[string]entryState
		Stats     []Stats
		Store     map[string]string
		Batches   [][]store.Write
	}
	play := func() (o outcome) {
		w := newWorld(t)
		small := func(c *Config) {
			c.LocalCacheMaxEntries, c.GlobalThreshold, c.ChannelCapacity, c.MaxSyncKeysPerTick = 300, 20, 50, 40
		}
		nodes := []*node{w.node(small), w.node(small)}
		for i := range 5000 {
			n := nodes[i%7%2]
			key := fmt.Sprint("key-", i*i%977)
			if i%3 == 0 {
				key = fmt.Sprint("hot-", i%11)
			}
			d := n.check(key, uint64(i%5))
			o.Decisions = append(o.Decisions, fmt.Sprint(key, d.Verdict(), d.Basis(), d.Level(), d.RetryAfter()))
			switch {
			case i%50 == 0:
				w.clock.Advance(time.Duration(i) * time.Millisecond)
			case i%701 == 0:
				w.clock.StepWall(time.Duration(i-2500) * 50 * time.Millisecond)
			case i%997 == 0:
				n.Forget(key)
			}
		}
		w.clock.Advance(10 * time.Second)
		o.Store = map[string]string{}
		for _, n := range nodes {
			o.Entries = append(o.Entries, n.entries())
			o.Stats = append(o.Stats, n.Stats())
			for _, b := range n.link.take() {
				o.Batches = append(o.Batches, b.Writes)
			}
			n.Close(context.Background())
		}
		for _, key := range w.mem.Keys() {
			if !isSequence(key) {
				o.Store[key], _ = w.mem.Text(key)
			}
		}
		return o
	}
	first, second := play(), play()
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("two runs of one timeline differ (-first +second):\n%s", diff)
	}
}

// isSequence reports whether a key of the store is named after a random identity.
func isSequence(key string) bool { return len(key) > 4 && key[len(key)-4:] == ":seq" }

// The sizes that keep a check to three cache lines of an entry and one of a shard.
func TestLayout(t *testing.T) {
	t.Parallel()
	if strconv.IntSize != 64 {
		t.Skip("for 64 bits")
	}
	const line = 64
	var e entry
	var s shard
	for name, got := range map[string][2]uintptr{
		"entry":           {(unsafe.Sizeof(e) + line - 1) &^ (line - 1), 5 * line},
		"entry, sliding":  {unsafe.Offsetof(e.slide) + unsafe.Offsetof(e.slide.Sum), 3 * line},
		"shard":           {unsafe.Sizeof(s), 5 * line},
		"shard, changing": {unsafe.Offsetof(s.entries) + unsafe.Offsetof(s.entries.len), line},
		"bucket":          {unsafe.Sizeof(bucket{}), line},
	} {
		if got[0] != got[1] {
			t.Errorf("%s: %d bytes, want %d", name, got[0], got[1])
		}
	}
}
