package ratelimit

// This file chooses what leaves a full table: first what was looked up only when
// it was new, then what was not looked up lately, and a limited entity only when
// every other is limited too. A flood of keys seen once passes through the tenth
// of the table that is for new entries (S3-FIFO, with an entry set aside taking
// the part of its ghost queue).

import (
	"container/heap"

	"github.com/hanzoai/limiters/internal/level"
)

// An entryList is linked by prev and next. The zero value is empty.
type entryList struct {
	front, back *entry
	len         int
}

func (l *entryList) pushBack(e *entry) {
	e.prev, e.next = l.back, nil
	if l.back == nil {
		l.front = e
	} else {
		l.back.next = e
	}
	l.back = e
	l.len++
}

func (l *entryList) remove(e *entry) {
	if e.prev == nil {
		l.front = e.next
	} else {
		e.prev.next = e.next
	}
	if e.next == nil {
		l.back = e.prev
	} else {
		e.next.prev = e.prev
	}
	e.prev, e.next = nil, nil
	l.len--
}

// makeRoomLocked evicts an unlimited entry of this shard, other than keep, if the
// table holds more than it may. It reports whether the table is within its bound.
// It locks entries one at a time, as do evictOneLocked, evictAnyLocked and what those
// call to walk a list: the caller must hold no entry's lock.
func (s *shard) makeRoomLocked(keep *entry, r *reading) bool {
	if s.table.live.Load() <= s.table.limit {
		return true
	}
	if !s.evictOneLocked(keep, r) {
		return false
	}
	return s.table.live.Load() <= s.table.limit
}

// evictOneLocked evicts an entry that is not limited and not keep, and reports whether
// there is one. What it passes over on the way moves, so that the next call does not
// meet it again soon: what was looked up gets on in main, what is limited goes to
// guarded for as long as it will be. So a table full of limited entities costs a
// new key no more than a look at each shard, and at what is due.
func (s *shard) evictOneLocked(keep *entry, r *reading) bool {
	s.releaseLocked(r)
	size := s.lists[fresh].len + s.lists[main].len + s.lists[guarded].len
	return s.passLocked(fresh, size/10, keep, r) || s.passLocked(main, 0, keep, r) || s.passLocked(fresh, 0, keep, r)
}

// passLocked goes along a list, the oldest first, until it evicts an entry or no
// more than leave are left. It reports whether it evicted one.
func (s *shard) passLocked(from place, leave int, keep *entry, r *reading) (evicted bool) {
	// Each entry is met at most maxHits + 1 times before its credit is used up.
	for steps := s.lists[from].len * (maxHits + 1); steps > 0 && s.lists[from].len > leave; steps-- {
		e := s.lists[from].front
		e.mu.Lock()
		limited := int64(0)
		if e != keep {
			limited = e.limitedForLocked(r, s.table.window)
		}
		switch {
		case e == keep:
			s.moveLocked(e, from)
		case limited > 0:
			s.guardLocked(e, r.mono+limited)
		case e.hits > 0 && from == fresh:
			e.hits = 0
			s.moveLocked(e, main)
		case e.hits > 0:
			e.hits--
			s.moveLocked(e, main)
		default:
			s.evictLocked(e, evictSize)
			evicted = true
		}
		e.mu.Unlock()
		if evicted {
			return true
		}
	}
	return false
}

// A dueHeap orders guarded entries by when they are to be looked at again, the first
// at the front.
type dueHeap []*entry

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].limitedUntil < h[j].limitedUntil }

func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].dueAt, h[j].dueAt = uint32(i), uint32(j)
}

// Push appends an entry. It is for package heap.
func (h *dueHeap) Push(x any) {
	e := x.(*entry)
	e.dueAt = uint32(len(*h))
	*h = append(*h, e)
}

// Pop takes the last entry off. It is for package heap.
func (h *dueHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return e
}

// guardLocked moves an entry that is limited until a monotonic time to guarded.
func (s *shard) guardLocked(e *entry, until int64) {
	s.moveLocked(e, guarded)
	e.limitedUntil = until
	heap.Push(&s.due, e)
}

// lookAgainAfter is how long a guarded entry that is limited for longer than expected
// is left alone at least, for each entry in the table, in nanoseconds. A look takes a
// small part of that.
const lookAgainAfter = 2000

// releaseLocked moves entries that are not limited any more from guarded to main. It
// looks at those that are due.
func (s *shard) releaseLocked(r *reading) {
	for len(s.due) > 0 && s.due[0].limitedUntil <= r.mono {
		e := s.due[0]
		e.mu.Lock()
		if limited := e.limitedForLocked(r, s.table.window); limited == 0 {
			s.moveLocked(e, main)
		} else {
			e.limitedUntil = r.mono + max(limited, lookAgainAfter*s.table.live.Load())
			heap.Fix(&s.due, 0)
		}
		e.mu.Unlock()
	}
}

// limitedForLocked returns for how long the entity would be refused a single unit
// if nothing else happened to it, in nanoseconds; 0 if it would not be refused.
func (e *entry) limitedForLocked(r *reading, window int64) int64 {
	e.advanceLocked(r)
	var m level.Leaky
	e.modelLocked(&m, r, window)
	passes := func(wait int64) bool {
		reached := m.Level(e.threshold, wait)
		return reached <= 0 || level.Fits(reached+1, e.threshold)
	}
	if passes(0) {
		return 0
	}
	return m.Wait(passes)
}

// evictAnyLocked evicts an entry although all are limited: the one that has been
// guarded longest, other than keep. It reports whether there is one.
func (s *shard) evictAnyLocked(keep *entry) bool {
	for _, p := range [...]place{guarded, main, fresh} {
		e := s.lists[p].front
		if e != nil && e == keep {
			e = e.next
		}
		if e != nil {
			e.mu.Lock()
			s.evictLocked(e, evictSize)
			e.mu.Unlock()
			return true
		}
	}
	return false
}

// makeRoom brings the table within its bound when a shard alone could not: an
// unlimited entry of any shard goes before a limited one of the home shard, and
// keep stays. It requires that no lock of the table is held.
func (t *table) makeRoom(home uint64, keep *entry, r *reading) {
	for pass := range 2 {
		for i := range t.shards {
			s := t.shardOf(home + uint64(i))
			for t.live.Load() > t.limit {
				s.mu.Lock()
				evicted := s.evictOneLocked(keep, r) || pass == 1 && s.evictAnyLocked(keep)
				s.mu.Unlock()
				if !evicted {
					break
				}
			}
		}
	}
}
