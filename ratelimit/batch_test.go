package ratelimit

// This file tests what a batch says for an entity (docs/design.md, the tick):
// which epochs it writes, when it reads, and what it carries beside.

import (
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/hanzoai/limiters/ratelimit/store"
)

// said describes an attempt: "+5 a-1 +3 a0 ?b-1" writes 5 units of a in the epoch
// before the node's, 3 in its own, and reads b's counter of the epoch before.
func (n *node) said(b store.Batch) (text string) {
	name := func(key string) string {
		m := regexp.MustCompile(`:([^:]*):(\d+)$`).FindStringSubmatch(key)
		var epoch int64
		fmt.Sscan(m[2], &epoch)
		return fmt.Sprint(m[1], epoch-n.epochAt(0))
	}
	for _, w := range b.Writes {
		text += fmt.Sprintf("+%d %s ", w.Delta, name(w.Key))
	}
	for _, key := range b.Reads {
		text += "?" + name(key) + " "
	}
	return text
}

// says runs a tick and compares what its one batch says; "" is no batch.
func (n *node) says(row, want string) {
	n.world.t.Helper()
	n.link.take()
	n.sync()
	var got string
	for _, b := range n.link.take() {
		got += n.said(b)
	}
	if got != want {
		n.world.t.Errorf("%s: the tick said %q, want %q", row, got, want)
	}
}

func TestWritingIsReading(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.TickInterval, c.TierScanIntervalTicks = 5*time.Second, 1000 })
	other := w.node(nil)

	w.clock.Advance(30 * time.Second)
	n.says("nothing known", "")
	n.check("a", 3)
	n.says("first sync: both counters", "+3 a0 ?a-1 ")
	n.says("nothing new", "")
	n.check("a", 2)
	n.says("settled: a write alone", "+2 a0 ")

	w.clock.Advance(25 * time.Second)
	n.check("a", 1)
	n.link.take()
	w.clock.Advance(5 * time.Second) // the tick at the boundary itself sends it
	if got := n.said(n.link.take()[0]); got != "+1 a-1 ?a0 " {
		t.Errorf("units of the epoch before, at its end: %q", got)
	}
	n.check("a", 4)
	n.says("a young epoch: the one before may still grow", "+4 a0 ?a-1 ")
	other.check("a", 6)
	w.clock.Advance(9999 * time.Millisecond) // just short of two ticks
	n.check("a", 1)
	n.says("short of two ticks: again", "+1 a0 ?a-1 ")
	w.clock.Advance(time.Millisecond)
	n.check("a", 1)
	n.says("two ticks: a last time", "+1 a0 ?a-1 ")
	n.check("a", 1)
	n.says("read since: a write alone", "+1 a0 ")
	w.conserves(n, other)
}

// Every check between these ticks is limited, so that nothing is written.
func TestAReadAloneAsksForBothCounters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.TickInterval = 15 * time.Second })
	w.clock.Advance(31 * time.Second)
	n.check("a", 250) // first contact passes whatever it is
	n.says("first sync", "+250 a0 ?a-1 ")
	w.clock.Advance(7499 * time.Millisecond)
	n.check("a", 1)
	n.says("before the hot tier's interval", "")
	w.clock.Advance(time.Millisecond)
	n.check("a", 1)
	n.says("the hot tier's interval", "?a-1 ?a0 ")
	n.check("a", 1)
	n.says("read just now", "")
}

func TestABatchCarriesBothEpochs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.TickInterval = 15 * time.Second })
	w.clock.Advance(59 * time.Second)
	n.check("a", 3)
	w.clock.Advance(500 * time.Millisecond)
	n.link.take()
	n.link.breaks(errUnreachable, nil)
	w.clock.Advance(500 * time.Millisecond) // a tick fails, with a's units of the old epoch
	n.check("a", 4)
	n.check("b", 1)
	n.link.heals()
	n.link.take()
	n.sync()
	attempts := n.link.take()
	if got := n.said(attempts[0]); got != "+3 a-1 ?a0 " {
		t.Errorf("sent again: %q", got)
	}
	if got := n.said(attempts[1]); got != "+4 a0 +1 b0 ?a-1 ?b-1 " {
		t.Errorf("after it: %q", got)
	}
	n.CheckAt("b", 7, start.Add(59*time.Second))
	n.audit.count("b", n.epochAt(-1), 7)
	n.check("b", 2)
	n.says("both epochs unsent, young epoch", "+7 b-1 +2 b0 ")
	w.clock.Advance(31 * time.Second)
	n.check("b", 1)
	n.sync()
	n.CheckAt("b", 5, start.Add(59*time.Second))
	n.audit.count("b", n.epochAt(-1), 5)
	n.check("b", 2)
	n.says("both epochs unsent, settled epoch", "+5 b-1 +2 b0 ")
	w.conserves(n)
	if got := w.total(n, "b", n.epochAt(-1)); got != 12 {
		t.Errorf("the store holds %d units of b in the epoch before, want 12", got)
	}
}

func TestUnitsLeaveUnsentWhenTheyAreEncoded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(nil)
	n.check("a", 3)
	if got := n.entry("a").slots[1].unsent; got != 3 {
		t.Fatalf("%d unsent before the first tick, want 3", got)
	}
	n.link.breaks(errUnreachable, nil)
	n.syncFails()
	n.check("a", 2)
	e := n.entry("a")
	if e.slots[1].unsent != 2 || e.slots[1].pending != 5 || !e.inFlight {
		t.Errorf("after an attempt that never left: %+v, want 2 unsent of 5 pending", e.slots[1])
	}
	w.conserves(n)
}

func TestStaleUnitsAreDroppedBeforeTheyAreSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.TickInterval = 15 * time.Second })
	n.check("dead", 9)
	n.check("alive", 9)
	n.link.breaks(errUnreachable, nil)
	n.syncFails()
	n.check("dead", 5)
	n.check("alive", 5)
	w.clock.Advance(61 * time.Second)
	n.check("alive", 1)
	w.clock.Advance(58 * time.Second) // no read sees the first window from two windows on
	n.syncFails()
	w.clock.Advance(time.Second)
	n.link.heals()
	n.link.take()
	n.sync()
	var got string
	for _, b := range n.link.take() {
		got += n.said(b)
	}
	if got != "+1 alive-1 ?dead-1 ?dead0 ?alive0 " { // neither was ever read
		t.Errorf("after two windows the tick said %q, want no unit that no read can see", got)
	}
	if d := n.Stats().Dropped; d != (Dropped{Stale: 28}) {
		t.Errorf("dropped %+v, want 28 stale", d)
	}
	w.conserves(n)
}

func TestWhatABatchCarriesBeside(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	link := &link{store: w.mem}
	n := w.node(func(c *Config) { c.RedisKeyPrefix = "pre" }, WithPartitions(Partition{Name: "p", Store: link, HashTag: "tag"}))
	other := w.node(nil)
	n.check("a", 1)
	n.sync()
	n.check("a", 1)
	n.sync()
	other.check("a", 1)
	other.sync()
	attempts := link.take()
	sequence := regexp.MustCompile(`^\{tag\}pre:[0-9a-f]{32}:seq$`)
	for i, b := range attempts {
		if b.Number != uint64(i+1) || b.Retry || b.Window != time.Minute || b.WindowKey != "{tag}pre:window" ||
			!sequence.MatchString(b.Sequence) || b.Sequence != attempts[0].Sequence {
			t.Errorf("batch %d: %+v", i+1, b)
		}
		// Four times what a counter lives (120 s + 5 s), but at least an hour.
		if b.SequenceTTL != time.Hour {
			t.Errorf("batch %d: the sequence lives for %v, want an hour", i+1, b.SequenceTTL)
		}
		if want := fmt.Sprint("{tag}pre:a:", n.epochAt(0)); b.Writes[0].Key != want {
			t.Errorf("batch %d writes %q, want %q", i+1, b.Writes[0].Key, want)
		}
	}
	if theirs := other.link.take()[0].Sequence; theirs[len(theirs)-36:] == attempts[0].Sequence[len(attempts[0].Sequence)-36:] {
		t.Errorf("two limiters share the identity in %q", theirs)
	}
	long := w.node(func(c *Config) { c.WindowInterval, c.GlobalCacheTTL = time.Hour, 3*time.Hour })
	long.check("a", 1)
	long.sync()
	if got, want := long.link.take()[0].SequenceTTL, 4*(3*time.Hour+5*time.Second); got != want {
		t.Errorf("the sequence lives for %v, want %v", got, want)
	}
}

func TestPartitionsHaveIdentitiesOfTheirOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n, _ := w.nodeOf(4, nil)
	seen := map[string]bool{}
	for _, p := range n.partitions {
		seen[p.sequence] = true
	}
	if len(seen) != 4 {
		t.Errorf("4 partitions use %d sequence keys", len(seen))
	}
}

// Counters outlive the two windows in which they are read by a margin, by at most
// a tenth more, and not all of an epoch equally long.
func TestExpiryOfCounters(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		change func(*Config)
		base   time.Duration
	}{
		{func(*Config) {}, 125 * time.Second},
		{func(c *Config) { c.WindowInterval = 10 * time.Minute; c.TickInterval = 30 * time.Second }, 21 * time.Minute},
		{func(c *Config) { c.WindowInterval = 100 * time.Millisecond }, 5200 * time.Millisecond},
		{func(c *Config) { c.GlobalCacheTTL = time.Hour + 999*time.Microsecond }, time.Hour + 5*time.Second},
	} {
		w := newWorld(t)
		n := w.node(c.change)
		for i := range 400 {
			n.check(fmt.Sprint("k", i), 1)
		}
		n.sync()
		batch := n.link.take()[0]
		ttls := map[time.Duration]bool{}
		for i := range batch.Writes {
			ttl := batch.Lifetime(i)
			if ttl < c.base || ttl > c.base+c.base/10 || ttl%time.Millisecond != 0 {
				t.Fatalf("a counter lives for %v, want %v to a tenth more, in milliseconds", ttl, c.base)
			}
			ttls[ttl] = true
			key := batch.Writes[i].Key
			if got, _ := w.mem.TTL(key); got != ttl {
				t.Errorf("%s lives for %v in the store, want %v", key, got, ttl)
			}
		}
		if len(ttls) < 50 {
			t.Errorf("400 counters of base %v have %d different expiries, want 50 or more", c.base, len(ttls))
		}
	}
}
