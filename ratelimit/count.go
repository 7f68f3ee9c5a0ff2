package ratelimit

// This file counts decisions without a counter that several cores write to: each
// entry has counts of its own, under the lock that a check holds anyway, and tells
// its shard, once, that there is something to collect. So a tick looks at the
// entities that were checked since the one before, and at no others.

import (
	"sync"
	"sync/atomic"
)

// shardCounts are what was collected from a shard's entries since the start, and what
// is counted here at once: misses, evictions, and decisions that left no entry.
type shardCounts struct {
	allowed, limited uint64 // decisions
	misses           uint64 // look-ups that found no entry in the table: unknown, idle for too long, or set aside
	units            uint64 // recorded for the fleet
	evicted          [evictCauses]uint64
}

// spilled are decisions that were taken out of entries whose counts grew large.
type spilled struct {
	allowed, limited atomic.Uint64
}

// A toldList links a shard's entries with something to collect, by toldPrev and
// toldNext. The zero value is empty.
type toldList struct {
	mu    sync.Mutex
	front *entry // guarded by mu
}

// countLocked counts a decision about the entry, which is one of the shard's. Of the
// shard it needs no lock.
func (e *entry) countLocked(s *shard, v Verdict) {
	if v == VerdictLimited {
		e.limited++
	} else {
		e.allowed++
	}
	if !e.told {
		e.tellLocked(s)
	}
}

// tellLocked puts the entry on the list of those with something to collect.
func (e *entry) tellLocked(s *shard) {
	e.told = true
	s.told.mu.Lock()
	defer s.told.mu.Unlock()
	e.toldNext = s.told.front
	if e.toldNext != nil {
		e.toldNext.toldPrev = e
	}
	s.told.front = e
}

// collectLocked adds what entries counted to the shard's counts.
func (s *shard) collectLocked() {
	s.told.mu.Lock()
	e := s.told.front
	s.told.front = nil
	s.told.mu.Unlock()
	// An entry is taken off a list under the shard's lock alone, so this one is ours.
	for e != nil {
		next := e.toldNext
		e.mu.Lock()
		e.toldPrev, e.toldNext = nil, nil
		s.takeLocked(e)
		e.mu.Unlock()
		e = next
	}
}

// collectOneLocked is collectLocked for one entry.
func (s *shard) collectOneLocked(e *entry) {
	if !e.told {
		return
	}
	s.told.mu.Lock()
	if e.toldPrev == nil {
		s.told.front = e.toldNext
	} else {
		e.toldPrev.toldNext = e.toldNext
	}
	if e.toldNext != nil {
		e.toldNext.toldPrev = e.toldPrev
	}
	e.toldPrev, e.toldNext = nil, nil
	s.told.mu.Unlock()
	s.takeLocked(e)
}

// takeLocked adds the counts of an entry, which is off the list, to the shard's.
func (s *shard) takeLocked(e *entry) {
	s.counts.allowed += uint64(e.allowed)
	s.counts.limited += uint64(e.limited)
	s.counts.units += e.units
	e.allowed, e.limited, e.units = 0, 0, 0
	e.told = false
}

// A round is so many checks of an entity, or misses of a shard: at its end the
// system's clock is read for all, and an entry's counts are spilled if they are large.
const round = 256

// roundEndsLocked reports whether a check was the last of a round of its entity, whose
// key has this hash. The entities' rounds do not end together.
func (e *entry) roundEndsLocked(hash uint64) bool {
	return (uint32(hash>>32)+e.allowed+e.limited)%round == 0
}

// spillLocked puts the decisions aside before they are too many for the entry.
func (e *entry) spillLocked(t *table) {
	if (e.allowed|e.limited)>>31 != 0 {
		t.spilled.allowed.Add(uint64(e.allowed))
		t.spilled.limited.Add(uint64(e.limited))
		e.allowed, e.limited = 0, 0
	}
}

// counts returns the sum of all that was counted.
func (t *table) counts() (sum shardCounts) {
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		s.collectLocked()
		c := s.counts
		s.mu.Unlock()
		sum.allowed += c.allowed
		sum.limited += c.limited
		sum.misses += c.misses
		sum.units += c.units
		for j := range c.evicted {
			sum.evicted[j] += c.evicted[j]
		}
	}
	sum.allowed += t.spilled.allowed.Load()
	sum.limited += t.spilled.limited.Load()
	return sum
}
