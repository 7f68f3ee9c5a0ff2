// Tests of what leaves a full table, and of what is set aside.

package ratelimit

import (
	"context"
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
			n.sync() // what was delivered is not set aside any more
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
				n.check(fmt.Sprint("limited", i), 3)
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

// A new key gets in even then; but those after it take its place, not another's.
func TestAFloodThroughATableOfLimitedEntitiesCostsItOne(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{2, 64, 1000} {
		w := newWorld(t)
		n := w.small(limit)
		for i := range limit {
			n.check(fmt.Sprint("limited", i), 3)
		}
		n.flood("once", 500)
		if got := len(n.starting("limited")); got != limit-1 {
			t.Errorf("a table of %d kept %d limited entities, want all but one", limit, got)
		}
		if got := n.starting("once"); !slices.Equal(got, []string{"once499"}) {
			t.Errorf("a table of %d holds %q of the flood, want the last", limit, got)
		}
		w.conserves(n)
	}
}

// Each check of a new key must not look at every limited entity: this test would
// take minutes.
func TestATableOfLimitedEntitiesCostsANewKeyLittle(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.GlobalThreshold, c.LocalCacheMaxEntries = 1, 10_000 }, WithClock(still{w.clock}))
	for i := range 20_000 { // at a threshold of 1, what was seen once is limited
		n.Check(fmt.Sprint("key", i), 1)
	}
	if got := n.Stats().Entities; got != 10_000 {
		t.Errorf("the table holds %d entities, want 10,000", got)
	}
}

func TestAnEntityIsEvictedOnceItIsNotLimitedAnyMore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.small(10)
	for i := range 9 {
		n.check(fmt.Sprint("limited", i), 3)
	}
	n.flood("once", 100) // has the limited ones guarded
	w.clock.Advance(time.Minute + 59*time.Second)
	for i := range 20 {
		key := fmt.Sprint("used", i)
		n.check(key, 1)
		n.check(key, 0)
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
			if got := n.held(); !slices.Equal(got, []string{key}) {
				t.Fatalf("after a check of %q the table holds %q", key, got)
			}
			if got := len(n.entries()); got > 2 {
				t.Fatalf("%d entries of two keys", got)
			}
		}
	}
	// What is not delivered is set aside, and found again.
	if admitted["a"] != 2 || admitted["b"] != 2 {
		t.Errorf("admitted %v, want 2 of each", admitted)
	}
	w.conserves(n)
	n.sync()
	w.conserves(n)
	if got := n.entries(); len(got) != 1 {
		t.Errorf("after delivery remain %v, want what is in the table", got)
	}
}

func TestWhatIsSetAsideIsRevivedAsItWas(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.LocalCacheMaxEntries = 1 }, WithClock(still{w.clock}))
	n.check("k", 40)
	n.sync()
	n.check("k", 30) // unsent
	n.check("other", 1)
	if got := n.entries()["k"]; got.Place != aside || got.Slots[1] != [3]uint64{30, 30, 40} {
		t.Fatalf("the evicted entry is %+v, want one set aside with 30 units", got)
	}
	if d := n.check("k", 30); d.Allowed() || d.Level() != 100 || d.Basis() != BasisFleet {
		t.Fatalf("%v on %v at level %v, want limited at 100", d.Verdict(), d.Basis(), d.Level())
	}
	if got := n.entries()["k"]; got.Place != main {
		t.Errorf("the entry revived is in place %d, want in main", got.Place)
	}
	n.sync()
	w.conserves(n)
	if got := n.Stats(); got.Delivered != 71 {
		t.Errorf("delivered %d units, want 71", got.Delivered)
	}
}

func TestAnEntityInFlightIsSetAsideUntilTheAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.LocalCacheMaxEntries = 1 }, WithClock(still{w.clock}))
	n.check("k", 60)
	n.link.breaks(nil, errTimeout) // applied, and not known to be
	n.Sync(context.Background())
	n.check("other", 1)
	if got := n.entries()["k"]; got.Place != aside || got.Slots[1] != [3]uint64{60, 0, 0} {
		t.Fatalf("the evicted entry is %+v, want one set aside", got)
	}
	if d := n.check("k", 50); d.Allowed() {
		t.Fatalf("%v on %v at level %v, want limited by what is in flight", d.Verdict(), d.Basis(), d.Level())
	}
	n.check("other", 1)
	n.link.heals()
	n.sync()
	w.conserves(n)
	if got := n.entries(); len(got) != 1 {
		t.Errorf("after the answer remain %v, want what is in the table", got)
	}
}

func TestTheOldestOfTooManySetAsideAreDroppedAsOverflow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.LocalCacheMaxEntries, c.ChannelCapacity = 1, 10 }, WithClock(still{w.clock}))
	for i := range 20 {
		n.check(fmt.Sprintf("key%02d", i), 2)
	}
	var kept []string
	n.eachEntry(func(e *entry) { kept = append(kept, e.key) })
	slices.Sort(kept)
	if len(kept) != 11 || kept[0] != "key09" || kept[10] != "key19" {
		t.Errorf("remain %q, want the last in the table and the ten before it set aside", kept)
	}
	if got := n.Stats(); got.Dropped.Overflow != 18 || got.Undelivered != 22 {
		t.Errorf("dropped %d as overflow, %d undelivered; want 18, 22", got.Dropped.Overflow, got.Undelivered)
	}
	w.conserves(n)
	n.sync()
	n.Peek("key19") // the queue was full when it was new
	n.sync()
	w.conserves(n)
	if got := n.Stats(); got.Delivered != 22 {
		t.Errorf("delivered %d, want 22", got.Delivered)
	}
}

// consistent checks what holds of a table and its queues between any two calls.
func (n *node) consistent() error {
	live, known, queued := 0, 0, map[*entry]bool{}
	for _, p := range n.partitions {
		for r, l := range p.queue.waiting {
			for e := l.front; e != nil; e = e.queueNext {
				if queued[e] || !e.inQueue || e.queueRank != rank(r) || !e.queued {
					return fmt.Errorf("%q waits at rank %d, marked as waiting %v at %d", e.key, r, e.inQueue, e.queueRank)
				}
				queued[e] = true
			}
		}
		for e := p.queue.evicted.front; e != nil; e = e.next {
			known++
			if !e.setAside || e.place != aside {
				return fmt.Errorf("%q is kept, but its place is %d", e.key, e.place)
			}
		}
		if got, limit := p.queue.evicted.len, p.queue.limit; got > limit {
			return fmt.Errorf("%d entries are set aside, more than %d", got, limit)
		}
	}
	for i := range n.table.shards {
		s := &n.table.shards[i]
		for p := range s.lists {
			for e := s.lists[p].front; e != nil; e = e.next {
				live, known = live+1, known+1
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
			if e.place == aside && !e.setAside && e.inFlight && !e.unsentLocked() {
				continue // one too many, and remembered until the answer
			}
			known--
		}
	}
	switch {
	case known != 0:
		return fmt.Errorf("the lists hold %+d entries that no look-up finds", known)
	case int64(live) != n.table.live.Load() || int64(live) > n.table.limit:
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
		capacity := n.cfg.ChannelCapacity
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
			if err := n.consistent(); err != nil && (capacity > 20 || !strings.Contains(err.Error(), "does not wait")) {
				rt.Fatal(err) // a queue shorter than the table turns idle ones away
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

// A new key costs a table full of limited entities a look at those that may be limited
// no more, and at no others: whoever was looked at is in the new epoch.
func TestANewKeyLooksAtTheLimitedOnlyWhenTheyAreDue(t *testing.T) {
	t.Parallel()
	const size = 1000
	w := newWorld(t)
	n := w.node(func(c *Config) {
		c.LocalCacheMaxEntries, c.GlobalThreshold, c.CountLimited = size, 1000, true
		c.TickInterval, c.TierScanIntervalTicks = c.WindowInterval/4, 1000 // no scan looks at any
	})
	for i := range size {
		n.check(fmt.Sprint("limited", i), uint64(1001+i)) // until further and further into the next window
	}
	for i := range 2 * size {
		n.check(fmt.Sprint("flood", i), 1)
	}
	w.clock.Advance(n.cfg.WindowInterval)
	epoch := n.read().epoch
	looked := func() (count int) {
		n.eachEntry(func(e *entry) {
			if e.place == guarded && e.epoch == epoch {
				count++
			}
		})
		return count
	}
	held := len(n.held())
	for i := range 100 {
		w.clock.Advance(n.cfg.WindowInterval / 200)
		n.check(fmt.Sprint("new", i), 1)
		if got := looked(); got > 5 {
			t.Fatalf("after %d new keys %d of %d guarded entries were looked at and stayed", i+1, got, held)
		}
	}
	released := 0
	n.eachEntry(func(e *entry) {
		if e.place == main && e.epoch == epoch {
			released++
		}
	})
	if released < size/4 {
		t.Errorf("%d entries were released, want those limited for half a window: the test shows nothing", released)
	}
}

// An entity that is limited still when it is due is then left alone for a while, so
// that new keys do not look at it again and again.
func TestWhoIsLimitedForLongerIsLeftAloneForAWhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.small(10)
	for i := range 9 {
		n.check(fmt.Sprint("limited", i), 3)
	}
	n.flood("once", 100) // has the limited ones guarded
	s := &n.table.shards[0]
	e := s.due[0]
	w.clock.Advance(time.Duration(e.limitedUntil-n.read().mono) - time.Microsecond)
	e.limitedUntil = n.read().mono // it was looked at too early, by a microsecond
	n.check("new", 1)
	if alone := e.limitedUntil - n.read().mono; e.place != guarded || alone < 10*lookAgainAfter {
		t.Errorf("in place %d, left alone for %d ns, want %d for each of 10 entries", e.place, alone, lookAgainAfter)
	}
}
