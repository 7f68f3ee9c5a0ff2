// Tests of what leaves a full table, and of what must stay.

package ratelimit

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// small returns a node whose table holds limit entries, on a clock that calls no
// ticks, with a threshold of three units: a key is limited once it has two.
func (w *world) small(limit int) *node {
	return w.node(func(c *Config) { c.GlobalThreshold, c.LocalCacheMaxEntries = 3, limit }, WithClock(still{w.clock}))
}

// flood checks one unit of each of count keys that were never seen.
func (n *node) flood(name string, count int) {
	for i := range count {
		n.check(fmt.Sprint(name, i), 1)
		if i%50 == 0 {
			n.sync() // what is delivered may go
		}
	}
	n.sync()
}

// starting returns the keys in the table that start with prefix.
func (n *node) starting(prefix string) (keys []string) {
	for _, key := range n.held() {
		if strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	return keys
}

func TestAFloodOfKeysSeenOnceDoesNotPushLimitedEntitiesOut(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{2, 16, 64, 1000} {
		for _, free := range []int{1, limit / 2} { // room beside the limited
			w := newWorld(t)
			n := w.small(limit)
			limited := limit - free
			for i := range limited {
				n.check(fmt.Sprint("limited", i), uint64(2+i%2)) // at T − 1 one more is refused, too
				n.check(fmt.Sprint("before", i), 1)
			}
			n.flood("once", 1500)
			if got := len(n.starting("limited")); got != limited {
				t.Errorf("a table of %d kept %d of %d limited entities", limit, got, limited)
			}
			for i := range limited {
				if d := n.check(fmt.Sprint("limited", i), 1); d.Allowed() {
					t.Fatalf("a table of %d: limited%d is allowed on %v at level %v", limit, i, d.Basis(), d.Level())
				}
			}
			w.conserves(n)
		}
	}
}

// A new key is decided about and delivered even then, but stays only if it is limited, too.
func TestAFloodThroughATableOfLimitedEntitiesCostsNone(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{2, 64, 1000} {
		w := newWorld(t)
		n := w.small(limit)
		for i := range limit {
			n.check(fmt.Sprint("limited", i), 3)
		}
		n.sync()
		for i := range 500 {
			n.check(fmt.Sprint("once", i), 1)
			n.sync()
		}
		if got := len(n.starting("limited")); got != limit || len(n.held()) != limit {
			t.Errorf("a table of %d kept %d limited entities and holds %d", limit, got, len(n.held()))
		}
		for range 2 {
			n.check("newly limited", 2)
			n.sync()
		}
		if d := n.Check("newly limited", 1); d.Allowed() || d.Basis() != BasisFleet || len(n.held()) != limit {
			t.Errorf("a table of %d: %v on %v, %d entities held", limit, d.Verdict(), d.Basis(), len(n.held()))
		}
		w.conserves(n)
	}
}

// A new key costs a full table a bounded number of looks, whatever is in it: limited
// entities, used ones, or such as must stay.
func TestANewKeyCostsAFullTableABoundedNumberOfLooks(t *testing.T) {
	t.Parallel()
	const size = 3000
	for _, row := range []struct {
		name    string
		fill    func(n *node, key string)
		deliver bool
	}{
		{"limited", func(n *node, key string) { n.check(key, 3) }, true},
		{"used", func(n *node, key string) { n.check(key, 1); n.Peek(key); n.Peek(key); n.Peek(key) }, true},
		{"undelivered", func(n *node, key string) { n.check(key, 1) }, false},
	} {
		w := newWorld(t)
		n := w.small(size)
		for i := range size {
			row.fill(n, fmt.Sprint("key", i))
		}
		if row.deliver {
			n.sync()
		}
		for i := range 200 {
			n.check(fmt.Sprint("new", i), 1)
			if row.deliver {
				n.sync()
			}
			r := n.read()
			total := 0
			for j := range n.table.shards {
				s := &n.table.shards[j]
				s.mu.Lock()
				evicted, seen := s.evictOneLocked(nil, spareHeld, &r)
				s.mu.Unlock()
				if total = max(total, seen); evicted != row.deliver && seen > 0 {
					t.Fatalf("%s: a shard evicted one: %v", row.name, evicted)
				}
			}
			if total > 3*looks {
				t.Fatalf("%s: %d entries were looked at for one", row.name, total)
			}
		}
		w.conserves(n)
	}
}

func TestAnEntityIsEvictedOnceItIsNotLimitedAnyMore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.small(10)
	for i := range 9 {
		n.check(fmt.Sprint("limited", i), 3)
	}
	n.flood("once", 100)
	w.clock.Advance(time.Minute + 59*time.Second)
	for i := range 20 {
		key := fmt.Sprint("used", i)
		n.check(key, 1)
		n.check(key, 0)
		n.sync()
	}
	if got := n.starting("limited"); len(got) != 0 {
		t.Errorf("%q are still held, though limited no more", got)
	}
}

func TestAFloodOfKeysSeenOnceDoesNotPushHotEntitiesOut(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{50, 300} {
		w := newWorld(t)
		n := w.node(func(c *Config) { c.LocalCacheMaxEntries = limit }, WithClock(still{w.clock}))
		hot := limit / 4
		n.flood("early", limit) // the table is full when the hot ones come
		for i := range 30 * limit {
			key := fmt.Sprint("hot", i%hot)
			if d := n.Check(key, uint64(min(1, i/hot%3))); d.Basis() == BasisFirstContact && i >= 5*hot {
				t.Fatalf("a table of %d forgot %s, which is looked up again and again", limit, key)
			}
			n.Check(fmt.Sprint("once", i), 1)
			n.Check(fmt.Sprint("again", i), 1)
			if i%20 == 0 {
				n.sync()
			}
		}
		if got := len(n.starting("hot")); got != hot {
			t.Errorf("a table of %d kept %d of %d hot entities", limit, got, hot)
		}
	}
}

func TestANewHotEntityGetsIntoAFullTable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.LocalCacheMaxEntries = 50 }, WithClock(still{w.clock}))
	for range 10 {
		for i := range 50 { // all were looked up often
			n.check(fmt.Sprint("old", i), 1)
		}
	}
	n.sync()
	for i := range 90 {
		n.check("new", 1)
		n.check(fmt.Sprint("once", i), 1)
		n.sync()
		if got := n.starting("new"); len(got) != 1 {
			t.Fatalf("the new key is not in the table after check %d", i+1)
		}
	}
	if d := n.check("new", 10); d.Allowed() || d.Basis() != BasisFleet {
		t.Errorf("%v on %v at level %v", d.Verdict(), d.Basis(), d.Level())
	}
	w.conserves(n)
}

func TestATableOfOneSlotServesTwoKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.small(1)
	admitted := map[string]int{}
	for range 20 {
		for _, key := range []string{"a", "b"} {
			if n.check(key, 1).Allowed() {
				admitted[key]++
			}
		}
	}
	// What is not delivered stays.
	if got := n.held(); admitted["a"] != 2 || admitted["b"] != 2 || !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("admitted %v, the table holds %q; want 2 of each, and both", admitted, got)
	}
	w.conserves(n)
	n.sync()
	w.conserves(n)
	if got := n.held(); len(got) != 1 {
		t.Errorf("after delivery the table holds %q, want one", got)
	}
	for _, key := range []string{"a", "b", "a"} {
		n.check(key, 1)
		n.sync()
		if got := n.held(); len(got) != 1 {
			t.Errorf("after a check of %q and its delivery the table holds %q", key, got)
		}
	}
}

// What is in flight or unsent stays, and goes on deciding, however full the table is.
func TestAnEntityStaysUntilItsUnitsAreDelivered(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{false, true} {
		w := newWorld(t)
		n := w.node(func(c *Config) { c.LocalCacheMaxEntries = 1 }, WithClock(still{w.clock}))
		n.check("k", 60)
		if lost {
			n.link.breaks(nil, errTimeout) // applied, and not known to be
			n.syncFails()
		}
		n.check("other", 1)
		if got := n.held(); !slices.Equal(got, []string{"k", "other"}) {
			t.Fatalf("in flight: %v: the table holds %q, want both", lost, got)
		}
		if d := n.check("k", 50); d.Allowed() || d.Level() != 110 {
			t.Fatalf("in flight: %v: %v at level %v, want limited at 110", lost, d.Verdict(), d.Level())
		}
		n.link.heals()
		n.sync()
		n.sync() // other's unit may have waited for the batch before
		w.conserves(n)
		if got := n.Stats(); got.Entities != 1 || got.Delivered != 61 {
			t.Errorf("in flight: %v: after the answer %+v, want one entity and 61 units delivered", lost, got)
		}
	}
}

// Beyond the bound unsent units are dropped, but none in flight.
func TestTooManyUndeliveredEntriesAreDroppedAsOverflow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.LocalCacheMaxEntries, c.ChannelCapacity = 1, 10 }, WithClock(still{w.clock}))
	for i := range 3 {
		n.check(fmt.Sprint("flying", i), 2)
	}
	n.link.breaks(nil, errTimeout)
	n.syncFails()
	for i := range 20 {
		n.check(fmt.Sprintf("key%02d", i), 2)
	}
	if got := n.held(); len(got) != 11 || len(n.starting("flying")) != 3 || !slices.Contains(got, "key19") {
		t.Errorf("the table holds %q, want what is in flight and eight keys, the last among them", got)
	}
	if got := n.Stats(); got.Dropped.Overflow != 24 || got.Undelivered != 22 {
		t.Errorf("dropped %d as overflow, %d undelivered; want 24, 22", got.Dropped.Overflow, got.Undelivered)
	}
	w.conserves(n)
	n.link.heals()
	n.sync()
	n.sync()
	w.conserves(n)
	if got := n.Stats(); got.Delivered != 22 || got.Entities != 1 {
		t.Errorf("%+v, want 22 units delivered and one entity left", got)
	}
}

// consistent checks what holds of a table and its queues between any two calls.
func (n *node) consistent() error {
	live, known, inFlight, queued := 0, 0, 0, map[*entry]bool{}
	for _, p := range n.partitions {
		for r, l := range p.queue.waiting {
			for e := l.front; e != nil; e = e.queueNext {
				if queued[e] || !e.inQueue || e.queueRank != rank(r) || !e.queued {
					return fmt.Errorf("%q waits at rank %d, marked as waiting %v at %d", e.key, r, e.inQueue, e.queueRank)
				}
				queued[e] = true
			}
		}
	}
	for i := range n.table.shards {
		s := &n.table.shards[i]
		for p := range s.lists {
			for e := s.lists[p].front; e != nil; e = e.next {
				live, known = live+1, known+1
				if e.inFlight {
					inFlight++
				}
				switch {
				case e.place != place(p):
					return fmt.Errorf("%q is in list %d, but its place is %d", e.key, p, e.place)
				case e.inQueue != queued[e]:
					return fmt.Errorf("%q is marked as waiting: %v", e.key, e.inQueue)
				case e.unsentLocked() && !e.queued:
					return fmt.Errorf("%q has unsent units and does not wait", e.key)
				}
			}
		}
		for e := range s.entries.each() {
			if s.entries.find(e.hash, e.key) != e {
				return fmt.Errorf("%q is not found", e.key)
			}
			known--
		}
	}
	switch {
	case known != 0:
		return fmt.Errorf("the lists hold %+d entries that no look-up finds", known)
	case int64(live) != n.table.live.Load() || int64(live) > 1+n.table.limit+max(n.table.spare, int64(inFlight)):
		return fmt.Errorf("%d entries are in the table, counted as %d, of %d", live, n.table.live.Load(), n.table.limit)
	}
	return nil
}

func TestTheTableStaysConsistentWhateverHappens(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t)
		n := w.node(func(c *Config) {
			c.GlobalThreshold = rapid.Uint64Range(1, 6).Draw(rt, "threshold")
			c.LocalCacheMaxEntries = rapid.IntRange(1, 8).Draw(rt, "entries")
			c.ChannelCapacity = rapid.IntRange(1, 1000).Draw(rt, "capacity")
			c.TierScanIntervalTicks = 1
		})
		defer n.end()
		for range rapid.IntRange(1, 80).Draw(rt, "steps") {
			key := fmt.Sprint("k", rapid.IntRange(0, 12).Draw(rt, "key"))
			switch step := rapid.IntRange(0, 14).Draw(rt, "step"); step {
			default:
				n.check(key, uint64(step%3))
			case 9:
				w.clock.Advance(time.Duration(rapid.Int64Range(0, 90*second).Draw(rt, "advance")))
			case 10:
				n.Forget(key)
			case 11:
				n.link.breaks(rapid.SampledFrom([]error{nil, errUnreachable, errReadOnly, errTimeout, errEOF}).Draw(rt, "before"),
					rapid.SampledFrom([]error{nil, errTimeout, errEOF}).Draw(rt, "after"))
			case 12:
				w.clock.StepWall(time.Duration(rapid.Int64Range(-150*second, 150*second).Draw(rt, "step the wall")))
			case 13:
				w.clock.Advance(n.cfg.LocalCacheIdleTimeout)
			case 14:
				n.link.heals()
			}
			if err := n.consistent(); err != nil {
				rt.Fatal(err)
			}
			n.balances(rt)
		}
	})
}

// BenchmarkNewKeyInATableOfLimitedEntities is the worst a flood can do to a check.
func BenchmarkNewKeyInATableOfLimitedEntities(b *testing.B) {
	l := benchLimiter(b, func(c *Config) { c.GlobalThreshold = 1 })
	for i := range l.cfg.LocalCacheMaxEntries {
		l.Check(strconv.Itoa(i), 1)
	}
	i := l.cfg.LocalCacheMaxEntries
	for b.Loop() {
		i++
		l.Check(strconv.Itoa(i), 1)
	}
}

// Entries in flight cannot go. However many those are, a flood of keys while nothing is
// delivered leaves the table within its bound.
func TestTheTableStaysWithinItsBoundAroundABatchWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ limit, spare, inFlight int }{{1000, 200, 1000}, {1000, 200, 500}, {300, 300, 300}, {64, 20, 64}, {2000, 100, 1500}} {
		w := newWorld(t)
		n := w.node(func(cfg *Config) {
			cfg.LocalCacheMaxEntries, cfg.ChannelCapacity, cfg.MaxKeysPerScript, cfg.MaxSyncKeysPerTick = c.limit, c.spare, c.inFlight, 10_000
		})
		for i := range c.limit {
			n.check(fmt.Sprint("first", i), 1)
		}
		n.link.breaks(nil, errTimeout)
		n.syncFails()
		bound := int64(c.limit + c.spare + 1)
		for i := range 30 * c.limit {
			n.check(fmt.Sprint("then", i), 1)
			if held := n.table.live.Load(); held > bound+int64(c.inFlight/looks) {
				t.Fatalf("%+v: %d entries after %d keys, want %d or hardly more", c, held, i+1, bound)
			}
		}
		n.housekeep()
		n.check("last", 1)
		if held := n.table.live.Load(); held > bound {
			t.Errorf("%+v: %d entries in the end, want at most %d", c, held, bound)
		}
		n.link.heals()
		n.sync()
		w.conserves(n)
	}
}
