package ratelimit

// This file counts decisions without a counter that several cores write to: each
// entry has counts of its own, under the lock that a check holds anyway, and tells
// its shard, once, that there is something to collect. So a tick looks at the
// entities that were checked since the one before, and at no others.

import "sync"

// shardCounts are what was collected from a shard's entries since the start, and what
// is counted here at once: misses, evictions, and decisions that left no entry.
type shardCounts struct {
	allowed, limited uint64 // decisions
	misses           uint64 // look-ups that found no entry in the table: unknown, or idle for too long
	units            uint64 // recorded for the fleet
	evicted          [evictCauses]uint64
}

// A toldSet holds a shard's entries with something to collect, each at its toldAt. The
// zero value is empty.
type toldSet struct {
	mu      sync.Mutex
	entries []*entry // guarded by mu
	allowed uint64   // guarded by mu; decisions of entries that counted very many since they were collected
	limited uint64   // guarded by mu
	spare   []*entry // guarded by the shard's lock; empty: the room of the set before
}

// countLocked counts a decision about the entry, which is one of the shard's, and the
// units that were asked for. Of the shard it needs no lock.
func (e *entry) countLocked(s *shard, v Verdict, units uint64) {
	if v == VerdictLimited {
		e.limited++
		e.refused = plus(e.refused, units)
	} else {
		e.allowed++
	}
	if e.toldAt.Load() == 0 {
		e.tellLocked(s)
	}
	if e.allowed|e.limited >= manyCounted {
		e.spillLocked(s)
	}
}

// manyCounted is how many decisions an entry counts by itself: far from where its
// numbers would wrap.
const manyCounted = 1 << 31

// spillLocked counts the entry's decisions where more of them have room, for they were
// not collected for very long.
func (e *entry) spillLocked(s *shard) {
	s.told.mu.Lock()
	defer s.told.mu.Unlock()
	s.told.allowed += uint64(e.allowed)
	s.told.limited += uint64(e.limited)
	e.allowed, e.limited = 0, 0
}

// tellLocked puts the entry into the set of those with something to collect.
func (e *entry) tellLocked(s *shard) {
	s.told.mu.Lock()
	s.told.entries = append(s.told.entries, e)
	e.toldAt.Store(uint32(len(s.told.entries)))
	s.told.mu.Unlock()
}

// collectLocked adds what entries counted to the shard's counts.
func (s *shard) collectLocked() {
	s.told.mu.Lock()
	told := s.told.entries
	s.told.entries = s.told.spare
	s.counts.allowed += s.told.allowed
	s.counts.limited += s.told.limited
	s.told.allowed, s.told.limited = 0, 0
	s.told.mu.Unlock()
	// An entry leaves the set under the shard's lock alone, so these are ours.
	for _, e := range told {
		e.lock()
		s.takeLocked(e)
		e.unlock()
	}
	clear(told)
	if s.told.spare = told[:0]; len(told) < cap(told)/8 {
		s.told.spare = nil // it was a flood
	}
}

// collectOneLocked is collectLocked for one entry.
func (s *shard) collectOneLocked(e *entry) {
	if e.toldAt.Load() == 0 {
		return
	}
	s.told.mu.Lock()
	last := len(s.told.entries) - 1
	moved := s.told.entries[last]
	at := e.toldAt.Load()
	s.told.entries[at-1] = moved
	moved.toldAt.Store(at)
	s.told.entries[last] = nil
	s.told.entries = s.told.entries[:last]
	s.told.mu.Unlock()
	s.takeLocked(e)
}

// takeLocked adds an entry's counts to the shard's. It requires the locks of both.
func (s *shard) takeLocked(e *entry) {
	s.counts.allowed += uint64(e.allowed)
	s.counts.limited += uint64(e.limited)
	s.counts.units = plus(s.counts.units, e.units)
	s.table.refusals.add(e.key, e.refused)
	e.allowed, e.limited, e.units, e.refused = 0, 0, 0, 0
	e.toldAt.Store(0)
}

// At the end of a round the system's clock is read for all: after so many checks of an
// entity, and after so many look-ups of a shard that found none, which take longer.
const (
	round       = 256
	missesRound = 16
)

// roundEndsLocked reports whether a check was the last of a round of its entity, whose
// key has this hash. The entities' rounds do not end together.
func (e *entry) roundEndsLocked(hash uint64) bool {
	return e.roundLocked(hash) == 0
}

// roundLocked is how many checks of its round the entity has had.
func (e *entry) roundLocked(hash uint64) uint64 {
	return (hash>>32 + uint64(e.allowed+e.limited)) % round
}

// missesEndRoundLocked is roundEndsLocked for a shard that may just have met a new key.
func (s *shard) missesEndRoundLocked() bool { return s.counts.misses%missesRound == 0 }

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
		sum.units = plus(sum.units, c.units)
		for j := range c.evicted {
			sum.evicted[j] += c.evicted[j]
		}
	}
	return sum
}
