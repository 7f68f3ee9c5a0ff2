// Tests of tiers: when they have an entity's counters read.

package ratelimit

import (
	"context"
	"fmt"
	"testing"
	"time"
)

func TestTierNames(t *testing.T) {
	t.Parallel()
	for tier, want := range []string{"idle", "low", "normal", "hot", "hot"} {
		if got := Tier(tier).String(); got != want {
			t.Errorf("tier %d is named %q, want %q", tier, got, want)
		}
	}
}

// reads returns how many counters the node asked to read, without writing to
// them, since the last call.
func (n *node) reads() (reads int) {
	for _, b := range n.link.take() {
		reads += len(b.Reads)
	}
	return reads
}

// probe peeks at a key, syncs, and returns how many counters that read.
func (n *node) probe(key string) (reads int) {
	n.world.t.Helper()
	n.Peek(key)
	if err := n.Sync(context.Background()); err != nil {
		n.world.t.Fatal(err)
	}
	return n.reads()
}

// settleAt counts units of a key and lets the tick pass that syncs them.
func (n *node) settleAt(key string, units uint64) {
	n.check(key, units)
	n.world.clock.Advance(time.Second)
	n.reads()
}

func TestReadsAreAskedForAtTheIntervalOfTheTier(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		units uint64
		due   time.Duration // 0: never
	}{
		{"idle", 9, 0},
		{"low, at its boundary", 10, 60 * time.Second},
		{"low, at its end", 49, 60 * time.Second},
		{"normal, at its boundary", 50, 15 * time.Second},
		{"normal, at its end", 79, 15 * time.Second},
		{"hot, at its boundary", 80, 7500 * time.Millisecond},
		{"limited", 100, 7500 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			n := w.node(func(c *Config) { c.TickInterval = 2 * time.Second })
			n.check("k", c.units)
			w.clock.Advance(2 * time.Second)
			if got := n.reads(); got != 1 {
				t.Fatalf("the first sync read %d counters beside the one it wrote, want 1", got)
			}
			never := c.due == 0
			if never {
				c.due = n.cfg.LocalCacheIdleTimeout - 2*time.Second - 1 // from its use on
			}
			w.clock.Advance(c.due - 1)
			if got := n.probe("k"); got != 0 {
				t.Errorf("a probe less than %v after the last read had %d counters read", c.due, got)
			}
			w.clock.Advance(1)
			want := 2
			if never {
				want = 0
			}
			if got := n.probe("k"); got != want {
				t.Errorf("a probe %v after the last read had %d counters read, want %d", c.due, got, want)
			}
		})
	}
}

func TestIdleEntitiesSendTheirUnitsWithoutReading(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.GlobalThreshold = 1_000_000 })
	n.check("k", 1)
	w.clock.Advance(3 * time.Second) // the epoch's last early read was at its third second
	n.check("k", 1)
	w.clock.Advance(time.Second)
	n.link.take()
	for range 40 {
		n.check("k", 1)
		w.clock.Advance(time.Second)
	}
	batches := n.link.take()
	if len(batches) != 40 {
		t.Fatalf("40 ticks with traffic sent %d batches", len(batches))
	}
	for _, b := range batches {
		if len(b.Writes) != 1 || len(b.Reads) != 0 {
			t.Fatalf("a batch of an idle entity writes %d and reads %d counters, want 1 and 0", len(b.Writes), len(b.Reads))
		}
	}
}

func TestPromotionIsImmediate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.GlobalThreshold = 1000 })
	n.settleAt("k", 1)
	w.clock.Advance(19 * time.Second)
	n.check("k", 400)
	w.clock.Advance(time.Second) // at 21 s: reads, for the epoch's sake
	if got := n.reads(); got != 1 {
		t.Fatalf("%d counters read beside the one written, want 1", got)
	}
	w.clock.Advance(15 * time.Second) // a whole base interval, a quarter of Low's
	n.check("k", 1)
	w.clock.Advance(time.Second)
	if got := n.reads(); got != 0 {
		t.Fatalf("a low entity had %d counters read before its interval was over", got)
	}
	if d := n.check("k", 400); d.Level() < 500 {
		t.Fatalf("level %v, want that of a normal entity", d.Level())
	}
	w.clock.Advance(time.Second)
	if got := n.reads(); got != 1 {
		t.Fatalf("an entity that this request made Normal read %d counters at the next tick, want 1", got)
	}
}

// An entity that waits for its sync moves ahead of the idle ones once it is hot.
func TestPromotionMovesAnEntityAheadInTheQueue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.MaxSyncKeysPerTick, c.SyncByUnits = 1, false })
	for _, key := range []string{"idle", "warm", "hot"} {
		n.check(key, 1)
	}
	n.check("warm", 30)
	n.check("hot", 85)
	var order []string
	for range 3 {
		w.clock.Advance(time.Second)
		order = append(order, entities(n.link.take()))
	}
	if got := fmt.Sprint(order); got != "[hot warm idle]" {
		t.Errorf("one a tick, they were synced in the order %v, want the hottest first", got)
	}
}

func TestAProbeAsksForReadsToo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(nil)
	n.settleAt("k", 90)
	w.clock.Advance(7500 * time.Millisecond)
	n.link.take()
	n.Peek("k")
	w.clock.Advance(time.Second)
	batches := n.link.take()
	if len(batches) != 1 || len(batches[0].Writes) != 0 || len(batches[0].Reads) != 2 {
		t.Fatalf("a probe of a hot entity led to %+v, want one batch that reads two counters and writes none", batches)
	}
}

func TestALimitedRequestAsksForReadsToo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(nil)
	n.settleAt("k", 500)
	w.clock.Advance(8 * time.Second)
	n.link.take()
	if d := n.check("k", 1); d.Allowed() {
		t.Fatalf("allowed at level %v", d.Level())
	}
	w.clock.Advance(time.Second)
	if got := n.reads(); got != 2 {
		t.Fatalf("a limited request had %d counters read, want 2", got)
	}
}

func TestNobodyAsksNothingIsRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(nil)
	n.settleAt("k", 90)
	w.clock.Advance(time.Minute)
	if got := n.link.take(); len(got) != 0 {
		t.Fatalf("%d batches were sent for an entity that nobody asks about", len(got))
	}
}
