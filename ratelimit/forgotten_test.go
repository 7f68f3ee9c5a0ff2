package ratelimit

// This file tests that a store which lost counts is noticed and said: all of them, those
// since some moment, or single counters.

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hanzoai/limiters/ratelimit/store"
)

// losses are ways to lose what a node's sequence key stands for. Each keeps what it says.
var losses = map[string]struct {
	lose func(w *world, n *node, before map[string]string)
	all  bool // counters are gone, too
}{
	"flushed":     {func(w *world, _ *node, _ map[string]string) { w.mem.FlushAll() }, true},
	"rolled back": {func(w *world, _ *node, before map[string]string) { w.rollBack(before) }, true},
	"the sequence key evicted": {func(w *world, n *node, _ map[string]string) {
		w.mem.Delete(n.partitions[0].sequence)
	}, false},
	"a snapshot without this node": {func(w *world, n *node, before map[string]string) {
		delete(before, n.partitions[0].sequence)
		w.rollBack(before)
	}, true},
}

// contents is what the store holds.
func (w *world) contents() map[string]string {
	held := map[string]string{}
	for _, key := range w.mem.Keys() {
		held[key], _ = w.mem.Text(key)
	}
	return held
}

// rollBack makes the store hold what it held before.
func (w *world) rollBack(held map[string]string) {
	w.mem.FlushAll()
	for key, text := range held {
		w.mem.Set(key, text)
	}
}

// A store that lost what it acknowledged is told of by one count and one log line,
// between two ticks as well as during an outage, and whatever becomes of the replies.
func TestForgottenBatchesAreSaid(t *testing.T) {
	t.Parallel()
	for name, loss := range losses {
		for _, failure := range []error{nil, errTimeout, errUnreachable} {
			w := newWorld(t)
			n := w.node(func(c *Config) { c.GlobalThreshold = 1000 })
			var before map[string]string
			for i := range 6 {
				n.check("a", 10)
				n.check("b", 7)
				n.sync()
				if i == 2 {
					before = w.contents()
				}
			}
			n.lines()
			n.check("a", 3)
			n.check("b", 2)
			loss.lose(w, n, before)
			wantUnknown := uint64(0)
			if failure != nil {
				if failure == errTimeout {
					n.link.breaks(nil, failure)
				} else {
					n.link.breaks(failure, nil)
				}
				n.syncFails()
				n.link.heals()
			}
			for range 5 {
				n.sync()
				w.clock.Advance(time.Second)
				n.check("a", 1)
			}
			s := n.Stats()
			if s.Partitions[0].Forgotten != 1 || s.Dropped.Unknown != wantUnknown {
				t.Errorf("%s, %v: %d forgotten, %+v dropped; want 1 and none", name, failure, s.Partitions[0].Forgotten, s.Dropped)
			}
			if gone := s.LostTotals > 0; gone != loss.all {
				t.Errorf("%s, %v: %d totals lost", name, failure, s.LostTotals)
			}
			said := 0
			for _, line := range n.lines() {
				if has(line, "level=WARN", "forgot batches that it had acknowledged", "batches=1", "partition=memory") {
					said++
				}
			}
			if said != 1 {
				t.Errorf("%s, %v: said %d times, want once", name, failure, said)
			}
		}
	}
}

// A batch whose fate nobody can know, for the sequence key is gone, says so too, and the
// batches after it do not say it again.
func TestAForgottenOrphanIsSaidOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(nil)
	for range 3 {
		n.check("a", 1)
		n.sync()
	}
	n.check("a", 5)
	n.link.breaks(errTimeout, nil)
	n.syncFails()
	n.link.heals()
	w.mem.FlushAll()
	for range 4 {
		n.sync()
		n.check("a", 1)
	}
	if s := n.Stats(); s.Partitions[0].Forgotten != 1 || s.Dropped != (Dropped{Unknown: 5}) {
		t.Errorf("%d forgotten, dropped %+v; want 1, and 5 unknown", s.Partitions[0].Forgotten, s.Dropped)
	}
}

// What says nothing of a loss: new identities, silence, batches given up, others' counts,
// evictions here, and batches refused or repeated.
func TestNothingIsSaidToBeForgottenThatIsThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n, other := w.node(func(c *Config) { c.LocalCacheMaxEntries = 3 }), w.node(nil)
	failures := []error{errTimeout, errEOF, errReadOnly, errUnreachable}
	for i := range 600 {
		n.check(fmt.Sprint("k", i%7), uint64(1+i%5))
		other.check(fmt.Sprint("k", i%5), 2)
		switch i % 40 {
		case 3:
			n.link.breaks(failures[i/40%4], nil)
		case 11:
			n.link.breaks(nil, failures[i/40%2])
		case 19:
			n.link.heals()
		case 25:
			n.Forget("k1")
		case 39:
			if i/40%5 == 4 {
				w.clock.Advance(40 * time.Minute)
			}
		}
		w.clock.Advance(time.Second)
	}
	for i, n := range []*node{n, other} {
		if s := n.Stats(); s.Partitions[0].Forgotten != 0 || s.LostTotals != 0 {
			t.Errorf("node %d: %d forgotten, %d totals lost", i, s.Partitions[0].Forgotten, s.LostTotals)
		}
	}
}

// An evicted counter is told of by its total: once for each time, by each node that
// delivered to it, whether it writes the counter next or reads it.
func TestLostTotalsAreCounted(t *testing.T) {
	t.Parallel()
	for _, writes := range []bool{false, true} {
		for _, back := range []int64{0, 1, 11, 12, 13, 40} { // what others put there meanwhile
			w := newWorld(t)
			n := w.node(func(c *Config) { c.GlobalThreshold = 1000 })
			n.check("a", 12)
			n.check("b", 5)
			n.sync()
			if back == 0 {
				w.mem.Delete(n.counterKey("a", n.epochAt(0)))
			} else {
				w.mem.Set(n.counterKey("a", n.epochAt(0)), fmt.Sprint(back))
			}
			n.lines()
			want := uint64(0)
			if back < 12 {
				want = 1
			}
			if writes && back == 12 {
				want = 0
			}
			for range 3 {
				if e := n.entry("a"); writes {
					n.check("a", 1)
				} else {
					e.lock()
					e.wantRead = true
					e.queueLocked(rankWarm)
					e.unlock()
				}
				n.sync()
			}
			if got := n.Stats().LostTotals; got != want {
				t.Errorf("writes %v, a counter of 12 units that holds %d: %d lost, want %d", writes, back, got, want)
			}
			if got := len(n.lines()); got != int(want) {
				t.Errorf("writes %v, %d: %d lines", writes, back, got)
			}
		}
	}
}

// What was delivered moves with its epoch, and is a bound beyond 2^32, too.
func TestLostTotalsOfTheEpochBefore(t *testing.T) {
	t.Parallel()
	for _, units := range []uint64{1, 1 << 20, 1<<32 + 7, store.MaxUnits} {
		w := newWorld(t)
		n := w.node(func(c *Config) { c.GlobalThreshold = store.MaxUnits })
		n.check("a", units)
		n.sync()
		epoch := n.epochAt(0)
		w.clock.Advance(time.Minute)
		n.check("a", 2)
		n.sync()
		if got := n.Stats().LostTotals; got != 0 {
			t.Fatalf("%d units: %d totals lost", units, got)
		}
		w.mem.Delete(n.counterKey("a", epoch))
		e := n.entry("a")
		e.lock()
		e.wantRead = true
		e.queueLocked(rankWarm)
		e.unlock()
		n.sync()
		if got := n.Stats().LostTotals; got != 1 {
			t.Errorf("%d units: %d totals lost, want that of the epoch before", units, got)
		}
	}
}

// has reports whether the text holds all of the words.
func has(text string, words ...string) bool {
	for _, word := range words {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}
