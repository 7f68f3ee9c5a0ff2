package ratelimit

// This file is a part of the table: the entries whose keys hash to it, and where
// each is kept.

import (
	"container/heap"
	"sync"
	"sync/atomic"

	"github.com/hanzoai/limiters/internal/level"
)

// maxHits bounds an entry's credit with eviction: so many times it is passed over
// without another look-up.
const maxHits = 3

// A shard holds a share of the entries. Its lock guards what is in the table and
// where; what an entry knows has a lock of its own. A check of an entity in the
// table reads the first cache line, which hardly ever changes.
type shard struct {
	closed  atomic.Bool // nothing is counted for the fleet any more; set under mu, read under mu or an entry's lock
	entries index       // in the table and set aside; its lock is mu

	mu     sync.Mutex
	counts shardCounts      // guarded by mu
	lists  [aside]entryList // guarded by mu; by place: fresh, main, guarded; oldest first

	due dueHeap // guarded by mu; those in guarded, by limitedUntil

	told toldList

	table *table // immutable

	_ [40]byte // at most this shares a cache line with the next shard
}

// An evictCause says why an entry left the table.
type evictCause uint8

const (
	evictSize     evictCause = iota // to make room
	evictExpired                    // idle for local_cache_idle_timeout
	evictExplicit                   // Forget
	evictCauses
)

// lock takes the lock of the shard and that of an entry of it.
func (s *shard) lock(e *entry) {
	s.mu.Lock()
	e.mu.Lock()
}

// unlock lets both go.
func (s *shard) unlock(e *entry) {
	e.mu.Unlock()
	s.mu.Unlock()
}

// findLocked returns the table's entry for a key at a reading, locked and advanced
// to its epoch, nil if there is none. An entry set aside is revived; an entry idle
// for too long is evicted first: then the table may be beyond its bounds (changed).
func (s *shard) findLocked(hash uint64, key string, r *reading) (e *entry, changed bool) {
	e = s.entries.find(hash, key)
	if e == nil {
		s.counts.misses++
		return nil, false
	}
	e.mu.Lock()
	e.advanceLocked(r)
	if e.place != aside {
		if level.Elapsed(r.mono, e.usedAt) < s.table.idle {
			e.useLocked(r)
			return e, false
		}
		s.evictLocked(e, evictExpired)
	}
	s.counts.misses++
	if e.place != aside {
		e.mu.Unlock()
		return nil, true
	}
	e.partition.queue.unkeep(e)
	e.usedAt = r.mono
	s.placeLocked(e, main)
	return e, true
}

// createLocked adds an entry for a key that has none, and returns it locked.
func (s *shard) createLocked(hash uint64, key string, r *reading) *entry {
	e := newEntry(key)
	e.hash, e.partition = hash, s.table.owner(key)
	e.epoch, e.usedAt, e.wantRead = r.epoch, r.mono, true
	e.mu.Lock()
	s.placeLocked(e, fresh)
	s.entries.insert(e)
	return e
}

// placeLocked puts an entry that is in no list into one of the shard's.
func (s *shard) placeLocked(e *entry, p place) {
	e.place = p
	e.hits = 0
	s.lists[p].pushBack(e)
	s.table.live.Add(1)
}

// unlistLocked takes an entry out of its list.
func (s *shard) unlistLocked(e *entry) {
	s.lists[e.place].remove(e)
	if e.place == guarded {
		heap.Remove(&s.due, int(e.dueAt))
	}
}

// moveLocked moves an entry to the back of one of the shard's lists.
func (s *shard) moveLocked(e *entry, p place) {
	s.unlistLocked(e)
	e.place = p
	s.lists[p].pushBack(e)
}

// evictLocked takes an entry out of the table. One with units that are not
// delivered is set aside; the caller must then let [table.trim] see to its bound
// once it holds no lock.
func (s *shard) evictLocked(e *entry, cause evictCause) {
	s.unlistLocked(e)
	s.table.live.Add(-1)
	s.counts.evicted[cause]++
	if !e.inFlight && !e.unsentLocked() {
		s.forgetLocked(e)
		return
	}
	e.place = aside
	e.wantRead = false
	s.keepLocked(e)
}

// keepLocked keeps an entry set aside until its units are delivered, and queues it
// if some are unsent.
func (s *shard) keepLocked(e *entry) {
	if e.partition.queue.keep(e) {
		s.table.overfull.Store(true)
	}
	if e.unsentLocked() {
		e.queueLocked(rankIdle)
	}
}

// forgetLocked ends an entry that is in none of the shard's lists.
func (s *shard) forgetLocked(e *entry) {
	e.place = gone
	e.queued = false
	s.collectOneLocked(e)
	e.partition.queue.unkeep(e)
	e.partition.queue.remove(e)
	s.entries.remove(e)
}
