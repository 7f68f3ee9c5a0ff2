package ratelimit

// This file is a part of the table: the entries whose keys hash to it, and where
// each is kept.

import (
	"sync"
	"sync/atomic"
)

// A shard holds a share of the entries. Its lock guards what is in the table and
// where; what an entry knows has a lock of its own. A check of an entity in the
// table reads the first cache line, which hardly ever changes.
type shard struct {
	closed  atomic.Bool // nothing is counted for the fleet any more; set under mu, read under mu or an entry's lock
	entries index       // in the table and set aside; its lock is mu

	mu     sync.Mutex
	counts shardCounts       // guarded by mu
	lists  [places]entryList // guarded by mu; by place, oldest first; that of gone stays empty

	told toldSet

	table *table // immutable

	_ [32]byte // so that no two shards share a cache line
}

// findLocked returns the table's entry for a request at a reading, locked and advanced to its
// epoch, nil if there is none: a miss. An entry idle for too long is evicted first, unless it has
// undelivered units.
func (s *shard) findLocked(q *request, hash uint64, key string, r *reading) *entry {
	e := s.usedLocked(q, hash, key, r)
	if e == nil {
		s.counts.misses++
	}
	return e
}

// usedLocked is findLocked for what is no decision.
func (s *shard) usedLocked(q *request, hash uint64, key string, r *reading) *entry {
	e := s.entries.find(hash, key)
	if e == nil {
		return nil
	}
	e.lock()
	e.advanceLocked(r)
	if e.idleLocked(r, s.table.idle) && !e.heldLocked() {
		s.evictLocked(e, e.idleCauseLocked())
		e.unlock()
		return nil
	}
	e.useLocked(r)
	return e
}

// createLocked adds an entry for a check's key, which has none, and returns it locked.
func (s *shard) createLocked(c *check) *entry {
	e := newEntry(c.name)
	e.hash, e.partition = c.hash, s.table.owner(c.name)
	e.epoch, e.usedAt, e.wantRead = c.at.epoch, c.at.mono, true
	e.lock()
	s.addLocked(e)
	return e
}

// addLocked adds an entry of a key that has none.
func (s *shard) addLocked(e *entry) {
	e.place = fresh
	s.lists[fresh].pushBack(e)
	s.entries.insert(e)
	s.table.live.Add(1)
}

// moveLocked moves an entry to the back of a list.
func (s *shard) moveLocked(e *entry, p place) {
	s.lists[e.place].remove(e)
	e.place = p
	s.lists[p].pushBack(e)
}

// evictLocked ends an entry, and drops its unsent units if it has some. No batch may
// carry it.
func (s *shard) evictLocked(e *entry, cause evictCause) {
	s.counts.evicted[cause]++
	s.table.live.Add(-1)
	e.dropUnsentLocked(dropOverflow)
	s.collectOneLocked(e)
	s.lists[e.place].remove(e)
	e.place, e.queued = gone, false
	e.partition.queue.remove(e)
	s.entries.remove(e)
}
