package ratelimit

// This file says what must hold of limiters at any time: see TestRandomHistories.

import (
	"fmt"
	"math"
	"strings"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/hanzoai/limiters/internal/level"
)

// invariants checks all that must hold between any two steps.
func (m *machine) invariants(rt *rapid.T) {
	var nodes []*node
	var found []string
	for i, n := range m.nodes {
		nodes = append(nodes, n.node)
		for _, v := range append(n.batches(), n.structure()...) {
			found = append(found, fmt.Sprintf("node %d: %s", i, v))
		}
		s := n.Stats()
		if s.Undelivered > s.Counted {
			found = append(found, fmt.Sprintf("node %d: %+v", i, s))
		}
		if tampered := m.flushed || m.misled || len(m.ruined) > 0; !tampered && (s.LostTotals > 0 || s.Partitions[0].Forgotten > 0) {
			found = append(found, fmt.Sprintf("node %d says that a store lost counts that did not: %+v", i, s))
		}
	}
	seen := int64(2) // epochs in which a counter can be read
	if m.nodes[0].calendar != nil {
		seen = 1
	}
	lost := func(c counter) bool { return m.flushed || m.ruined[c] || m.lastEpoch >= c.epoch+seen }
	if found = append(found, m.violations(lost, nodes...)...); len(found) > 0 {
		rt.Fatal(strings.Join(found, "\n"))
	}
}

// batches checks the attempts since the last call: bounded, no counter twice, and
// every one under a number like the first.
func (n *member) batches() (found []string) {
	bad := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	for _, b := range n.link.take() {
		seen, entities := map[string]bool{}, map[string]bool{}
		for _, key := range append(writtenKeys(b), b.Reads...) {
			if seen[key] {
				bad("batch %d names %q twice", b.Number, key)
			}
			seen[key] = true
			entities[key[:strings.LastIndexByte(key, ':')]] = true
		}
		if len(seen) == 0 || len(seen) > 2*n.cfg.MaxKeysPerScript || len(entities) > n.cfg.MaxKeysPerScript {
			bad("batch %d names %d counters, the bound is %d entities", b.Number, len(seen), n.cfg.MaxKeysPerScript)
		}
		for i, w := range b.Writes {
			b.Writes[i].Condition = nil // a repetition asks for nothing that no attempt can have granted
			if w.Delta == 0 && w.Condition == nil || n.calendar == nil && b.Lifetime(i) < 2*n.cfg.WindowInterval {
				bad("batch %d writes %+v for %v", b.Number, w, b.Lifetime(i))
			}
		}
		id := fmt.Sprint(b.Sequence, b.Number)
		first, again := n.sent[id]
		n.sent[id] = b
		first.Retry = first.Retry || b.Retry // it may be set, and stays so
		first.Patience = b.Patience
		if b.Acked >= b.Number {
			bad("batch %d says that %d was acknowledged", b.Number, b.Acked)
		}
		if again && !cmp.Equal(first, b) {
			bad("batch %d changed:\n%s", b.Number, cmp.Diff(first, b))
		}
	}
	return found
}

// structure checks the table, its lists, and the queue: that they agree, and keep
// their bounds. Nothing else may run.
func (n *node) structure() (found []string) {
	bad := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	keys := map[string]bool{}
	live, inFlight := 0, 0
	for i := range n.table.shards {
		s := &n.table.shards[i]
		listed := map[*entry]place{}
		for p := range s.lists {
			list := &s.lists[p]
			var before *entry
			length := 0
			for e := list.front; e != nil; before, e = e, e.next {
				if length++; e.prev != before || e.place != place(p) || length > list.len {
					bad("list %d: %q is in place %d, or its links are wrong", p, e.key, e.place)
					break
				}
				listed[e] = e.place
			}
			if length != list.len || list.back != before {
				bad("list %d holds %d entries, says %d", p, length, list.len)
			}
			live += length
		}
		for e := range s.entries.each() {
			if keys[e.key] {
				bad("%q has two entries", e.key)
			}
			keys[e.key] = true
			if p, ok := listed[e]; e.place == gone || !ok || p != e.place {
				bad("%q is in place %d, in a list: %v", e.key, e.place, ok)
			}
			delete(listed, e)
			if e.inFlight {
				inFlight++
			}
			for _, v := range n.sound(e) {
				bad("%q: %s", e.key, v)
			}
		}
		for i, e := range s.told.entries {
			if int(e.toldAt.Load()) != i+1 || e.place == gone {
				bad("%q is to be collected at %d, in place %d", e.key, e.toldAt.Load(), e.place)
			}
		}
		if len(listed) > 0 {
			bad("shard %d lists %d entries that it does not hold", i, len(listed))
		}
	}
	if most := 1 + n.cfg.LocalCacheMaxEntries + max(n.cfg.ChannelCapacity, inFlight); live != int(n.table.live.Load()) || live > most {
		bad("%d entries live, counted %d, bound %d", live, n.table.live.Load(), most)
	}
	q := &n.partitions[0].queue
	return append(found, q.structure(keys)...)
}

// sound checks what must hold of one entry.
func (n *node) sound(e *entry) (found []string) {
	bad := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	for i, slot := range e.slots {
		if slot.unsent > slot.pending && !n.closing.begun() {
			bad("slot %d: %+v: unsent units are not pending", i, slot)
		}
	}
	if e.queued != e.inQueue {
		bad("queued %v, in the queue %v", e.queued, e.inQueue)
	}
	if e.unsentLocked() && !e.queued && !n.closing.begun() {
		bad("it has unsent units and is not queued")
	}
	carried := false
	p := n.partitions[0]
	for _, it := range p.batch.items {
		carried = carried || p.carrying && it.entry == e
	}
	if e.inFlight != carried {
		bad("in flight %v, in the batch %v", e.inFlight, carried)
	}
	r := n.read()
	copied := entry{epoch: e.epoch, slots: e.slots, slide: e.slide, syncedAt: e.syncedAt}
	copied.shiftLocked(r.epoch)
	var m level.Leaky
	copied.modelLocked(&m, &r, n.window)
	for _, wait := range []int64{0, 1, n.window / 2, n.window, 2 * n.window} {
		if reached := m.Level(e.threshold, wait); math.IsNaN(reached) || math.IsInf(reached, 0) || reached < 0 {
			bad("level %v in %d ns", reached, wait)
		}
	}
	if reached := m.Level(e.threshold, m.EmptyAfter()); reached != 0 {
		bad("level %v when it must be empty", reached)
	}
	return found
}

// structure checks the queue's lists. Every entry in them must have one of the keys,
// once: so the table's bound is the queue's too.
func (q *queue) structure(keys map[string]bool) (found []string) {
	bad := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	seen := map[*entry]bool{}
	for r := range q.waiting {
		list := &q.waiting[r]
		var before *entry
		length := 0
		for e := list.front; e != nil; before, e = e, e.queueNext {
			if length++; e.queuePrev != before || !e.inQueue || int(e.queueRank) != r || seen[e] || !keys[e.key] || e.place == gone {
				bad("rank %d: %q in rank %d, queued %v, twice %v, or its links are wrong", r, e.key, e.queueRank, e.inQueue, seen[e])
				break
			}
			seen[e] = true
		}
		if length != list.len || list.back != before {
			bad("rank %d holds %d entries, says %d", r, length, list.len)
		}
	}
	return found
}
