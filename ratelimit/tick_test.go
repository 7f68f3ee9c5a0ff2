package ratelimit

// This file tests which entities a tick takes, and in how many scripts
// (docs/design.md, the tick). The small tools that all tests of syncing use are at
// its end.

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hanzoai/limiters/ratelimit/store"
)

func TestAtMostOneBatchIsInFlight(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(nil)
	n.link.breaks(nil, errTimeout)
	n.check("a", 3)
	for i := range 5 {
		n.syncFails()
		n.check(fmt.Sprint("later", i), 1)
		w.conserves(n)
	}
	attempts := n.link.take()
	if len(attempts) != 5 {
		t.Fatalf("%d attempts in 5 ticks without an answer, want one each", len(attempts))
	}
	for i, b := range attempts {
		if b.Number != 1 || len(b.Writes) != 1 {
			t.Errorf("attempt %d: batch %d of %d writes, want batch 1 alone, of one", i, b.Number, len(b.Writes))
		}
	}
	if in := n.Stats().Partitions[0].InFlight; in != 3 {
		t.Errorf("%d units in flight, want 3", in)
	}
	n.link.heals()
	n.sync()
	attempts = n.link.take()
	if len(attempts) != 2 || attempts[0].Number != 1 || attempts[1].Number != 2 || len(attempts[1].Writes) != 5 {
		t.Errorf("after the answer: %v, want batch 1 and then batch 2 with what waited", numbers(attempts))
	}
	w.conserves(n)
}

func TestAnUnansweredBatchIsSentAgainUnchanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(nil)
	n.check("a", 3)
	n.check("b", 20)
	w.clock.Advance(58 * time.Second) // the clock ticks meanwhile
	n.check("a", 2)
	n.link.take()
	n.link.breaks(errReadOnly, nil)
	n.syncFails()
	n.link.breaks(nil, errTimeout)
	for range 50 { // across the end of the epoch
		n.check("a", 1)
		n.check("b", 1)
		w.clock.Advance(time.Second)
	}
	n.link.heals()
	n.sync()
	attempts := n.link.take()
	first := attempts[0]
	for i, b := range attempts[:51] {
		if want := i > 1; b.Retry != want { // attempt 0 was refused, 1 is the first in doubt
			t.Errorf("attempt %d: retry %v, want %v", i, b.Retry, want)
		}
		b.Retry, b.Patience = first.Retry, first.Patience
		if diff := cmp.Diff(first, b); diff != "" {
			t.Fatalf("attempt %d differs from the first (-first +it):\n%s", i, diff)
		}
	}
	w.conserves(n)
	if got := w.total(n, "a", n.epochAt(-1)); got != 5+2 {
		t.Errorf("the store holds %d units of a in the epoch before, want all 7", got)
	}
}

func TestThePressedGoFirstThenTheOldest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.MaxSyncKeysPerTick = 3 })
	for _, c := range []struct {
		key   string
		units uint64
	}{{"i1", 1}, {"i2", 9}, {"w1", 10}, {"i3", 1}, {"h1", 80}, {"w2", 79}, {"i4", 1}} {
		n.check(c.key, c.units)
	}
	n.check("i1", 1) // keeps its place
	n.check("i4", 9) // rises to 10 %, and so ahead of the idle ones
	for tick, want := range []string{"h1 w1 w2", "i4 i1 i2", "i3", ""} {
		n.sync()
		if got := entities(n.link.take()); got != want {
			t.Errorf("tick %d took %q, want %q", tick, got, want)
		}
	}
	w.conserves(n)
}

func TestScriptsPerTick(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		entities, perTick, perScript int
		want                         []int // entities of each script of the first tick
		deferred                     int
	}{
		{0, 20, 5, nil, 0},
		{1, 20, 5, []int{1}, 0},
		{5, 20, 5, []int{5}, 0},
		{6, 20, 5, []int{5, 1}, 0},
		{20, 20, 5, []int{5, 5, 5, 5}, 0},
		{21, 20, 5, []int{5, 5, 5, 5}, 1},
		{50, 12, 5, []int{5, 5, 2}, 38},
		{9, 3, 100, []int{3}, 6},
	} {
		w := newWorld(t)
		n := w.node(func(cfg *Config) { cfg.MaxSyncKeysPerTick, cfg.MaxKeysPerScript = c.perTick, c.perScript })
		for i := range c.entities {
			n.check(fmt.Sprint("k", i), 1+uint64(i%15)) // below and above a tenth
		}
		n.sync()
		var got []int
		for _, b := range n.link.take() {
			got = append(got, len(b.Writes))
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%d entities, %d per tick, %d per script (-want +got):\n%s", c.entities, c.perTick, c.perScript, diff)
		}
		if s := n.Stats(); s.Deferred != c.deferred || s.Queued != c.deferred {
			t.Errorf("%d entities, %d per tick: %d deferred, %d queued, want %d", c.entities, c.perTick, s.Deferred, s.Queued, c.deferred)
		}
		w.conserves(n)
	}
}

// An entity that is queued again while its batch is under way, by a check or by a
// refusal, waits for the next tick: a busy entity does not turn a tick into a loop.
func TestAnEntityIsSentOncePerTick(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(nil)
	n.check("busy", 1)
	n.link.hook(func(*store.Batch) error { n.check("busy", 1); return nil }, nil)
	n.sync()
	if got := len(n.link.take()); got != 1 {
		t.Errorf("an entity checked during its sync was sent %d times in one tick, want once", got)
	}
	n.link.heals()
	n.sync()
	n.check("refused", 1)
	w.mem.Fail(n.counterKey("refused", n.epochAt(0)), store.Refused)
	n.link.take()
	n.sync()
	if got := len(n.link.take()); got != 1 {
		t.Errorf("a refused entity was sent %d times in one tick, want once", got)
	}
	w.conserves(n)
}

func TestBusyEntitiesDoNotStarveOthersWithinATick(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.MaxKeysPerScript = 2 })
	n.check("h1", 80)
	n.check("h2", 80)
	n.check("i1", 1)
	n.check("i2", 1)
	n.link.hook(func(*store.Batch) error { n.check("h1", 1); n.check("h2", 1); return nil }, nil)
	n.sync()
	if got := entities(n.link.take()); got != "h1 h2 i1 i2" {
		t.Errorf("the tick took %q, want every entity that waited, once", got)
	}
	n.link.heals()
	n.sync()
	if got := entities(n.link.take()); got != "h1 h2" {
		t.Errorf("the next tick took %q, want those queued meanwhile", got)
	}
	w.conserves(n)
}

// One that rises in rank while a tick runs is taken by the next one; the tick does
// not grow for it.
func TestRisingDuringATickKeepsItsBound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.MaxKeysPerScript = 1 })
	for _, key := range []string{"a", "b", "c"} {
		n.check(key, 1)
	}
	n.link.hook(func(*store.Batch) error { n.check("c", 80); n.check("a", 1); n.check("b", 1); return nil }, nil)
	n.sync()
	if got := len(n.link.take()); got > 3 {
		t.Errorf("3 entities waited, the tick sent %d scripts of one", got)
	}
	n.link.heals()
	n.sync()
	w.conserves(n)
	if s := n.Stats(); s.Undelivered != 0 {
		t.Errorf("%d units undelivered after two ticks", s.Undelivered)
	}
}

func TestPartitionsShareTheBoundOfATick(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n, links := w.nodeOf(3, func(c *Config) { c.MaxSyncKeysPerTick = 10 })
	for i := range 300 {
		n.check(fmt.Sprint("k", i), 1)
	}
	n.sync()
	for i, l := range links {
		attempts := l.take()
		if len(attempts) != 1 || len(attempts[0].Writes) != 4 { // 10 / 3, rounded up
			t.Errorf("partition %d: %v, want one batch of 4", i, attempts)
		}
	}
}

func TestADeadPartitionDoesNotHoldUpTheOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n, links := w.nodeOf(3, nil)
	links[1].breaks(errUnreachable, nil)
	for second := range 90 {
		for i := range 30 {
			n.check(fmt.Sprint("k", i), 1)
		}
		w.clock.Advance(time.Second)
		for i, p := range n.Stats().Partitions {
			if i != 1 && (!p.Up || p.InFlight != 0 || p.Queued != 0) {
				t.Fatalf("second %d: a healthy partition beside a dead one: %+v", second, p)
			}
		}
	}
	if p := n.Stats().Partitions[1]; p.Up || p.Scripts != 0 || p.RoundTrips == 0 {
		t.Errorf("the dead partition: %+v", p)
	}
	links[1].heals()
	w.clock.Advance(2 * time.Second)
	if p := n.Stats().Partitions[1]; !p.Up || p.Queued != 0 || p.InFlight != 0 {
		t.Errorf("the partition after it came back: %+v", p)
	}
	if s := n.Stats(); s.Undelivered != 0 || s.Dropped.Total() != s.Dropped.Stale {
		t.Errorf("after the outage: %+v", s)
	}
}

func TestDeferredIsWhatTheBoundLeft(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.MaxSyncKeysPerTick = 2 })
	for i := range 5 {
		n.check(fmt.Sprint("k", i), 1)
	}
	for tick, want := range []int{3, 1, 0} {
		n.sync()
		if got := n.Stats().Deferred; got != want {
			t.Errorf("tick %d left %d, want %d", tick, got, want)
		}
	}
	// An outage defers nothing: more room per tick would not help.
	for i := range 5 {
		n.check(fmt.Sprint("k", i), 1)
	}
	n.link.breaks(errTimeout, nil)
	n.syncFails()
	n.syncFails()
	if got := n.Stats().Deferred; got != 0 {
		t.Errorf("%d deferred in an outage, want 0", got)
	}
}

// sync runs one tick of every partition.
func (n *node) sync() {
	n.world.t.Helper()
	if err := n.Sync(context.Background()); err != nil {
		n.world.t.Fatalf("Sync: %v", err)
	}
}

// syncFails runs one tick that some partition must fail.
func (n *node) syncFails() {
	n.world.t.Helper()
	if err := n.Sync(context.Background()); err == nil {
		n.world.t.Fatal("Sync succeeded")
	}
}

// nodeOf starts a limiter of several partitions on the world's store, each behind
// a link of its own.
func (w *world) nodeOf(partitions int, change func(*Config)) (n *node, links []*link) {
	var parts []Partition
	for i := range partitions {
		links = append(links, &link{store: w.mem})
		parts = append(parts, Partition{Name: fmt.Sprint("p", i), Store: links[i]})
	}
	return w.node(change, WithPartitions(parts...)), links
}

// entry returns the entry of a key in the table or set aside, nil if there is none.
func (n *node) entry(key string) *entry {
	hash := n.table.hash(key)
	s := n.table.shardOf(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.entries.find(hash, key)
}

// epochAt returns the node's epoch, moved by some.
func (n *node) epochAt(offset int64) int64 { return n.read().epoch + offset }

// counterKey returns the key of an entity's counter.
func (n *node) counterKey(key string, epoch int64) string {
	return string(appendCounterKey(nil, n.partitions[0].prefix, key, n.number(epoch)))
}

// total returns what the store holds of an entity in an epoch.
func (w *world) total(n *node, key string, epoch int64) int64 {
	total, _ := w.mem.Get(n.counterKey(key, epoch))
	return total
}

// hook has attempts call the functions that are not nil: before the store sees a
// batch, and after it answered.
func (l *link) hook(before func(*store.Batch) error, after func(*store.Reply) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.before, l.after, l.hooked = before, after, true
}

// numbers returns the batches' numbers.
func numbers(batches []store.Batch) (numbers []uint64) {
	for _, b := range batches {
		numbers = append(numbers, b.Number)
	}
	return numbers
}

// entities returns the entities that batches write or read, each once per batch,
// in order.
func entities(batches []store.Batch) string {
	var names []string
	for _, b := range batches {
		seen := map[string]bool{}
		for _, key := range append(writtenKeys(b), b.Reads...) {
			name := strings.Split(key, ":")[1]
			if !seen[name] {
				seen[name] = true
				names = append(names, name)
			}
		}
	}
	return strings.Join(names, " ")
}

func writtenKeys(b store.Batch) (keys []string) {
	for _, w := range b.Writes {
		keys = append(keys, w.Key)
	}
	return keys
}
