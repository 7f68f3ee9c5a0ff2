package ratelimit

// This file is a part of the table: the entries whose keys hash to it, their lock,
// and the counts of the checks made there.

import (
	"strings"
	"sync"
)

// maxHits bounds an entry's credit with eviction: so many times it is passed over
// without another look-up.
const maxHits = 3

// A shard holds a share of the entries. Its lock guards them and all its fields;
// a check takes it once, decides, records, and lets it go, so that checks of one
// entity happen one after the other. It is taken before a queue's lock.
type shard struct {
	// A check touches the first cache line.

	mu      sync.Mutex
	entries index       // in the table and set aside
	counts  shardCounts // allowed and limited first
	closed  bool        // nothing is counted for the fleet any more

	lists [aside]entryList // by place: fresh, main, guarded; oldest first

	guardedUntil int64 // mono; the least limitedUntil of guarded; valid if there are any

	table *table // immutable

	_ [32]byte // makes it 256 bytes, so that no two shards share a cache line
}

// shardCounts count what happened in a shard since the start.
type shardCounts struct {
	allowed, limited uint64 // decisions, first contacts included
	misses, queued   uint64 // look-ups that found no entry; pushes to a queue
	units            uint64 // recorded for the fleet
	evicted          [evictCauses]uint64
}

// An evictCause says why an entry left the table.
type evictCause uint8

const (
	evictSize     evictCause = iota // to make room
	evictExpired                    // idle for local_cache_idle_timeout
	evictExplicit                   // Forget
	evictCauses
)

// currentLocked reports whether an entry is in the table, in the epoch of a reading,
// and not idle: most are, and need no more than [entry.useLocked].
func (s *shard) currentLocked(e *entry, r *reading) bool {
	return e.epoch == r.epoch && e.place != aside && r.mono-e.usedAt < s.table.idle
}

// findLocked returns the table's entry for a key at a reading, advanced to its
// epoch, nil if there is none. An entry set aside is revived; an entry idle for
// too long is evicted first: then the table may be beyond its bounds (changed).
func (s *shard) findLocked(hash uint64, key string, r *reading) (e *entry, changed bool) {
	e = s.entries.find(hash, key)
	if e == nil {
		s.counts.misses++
		return nil, false
	}
	if e.epoch != r.epoch {
		s.advanceLocked(e, r)
	}
	if e.place != aside {
		if elapsed(r.mono, e.usedAt) < s.table.idle {
			e.useLocked(r)
			return e, false
		}
		s.evictLocked(e, evictExpired)
	}
	s.counts.misses++
	if e.place != aside {
		return nil, true
	}
	e.partition.queue.unkeep(e)
	e.usedAt = r.mono
	s.placeLocked(e, main)
	return e, true
}

// createLocked adds an entry for a key that has none. It copies the key, which may be
// a part of a text much longer than what an entity may take.
func (s *shard) createLocked(hash uint64, key string, r *reading) *entry {
	e := &entry{
		key: strings.Clone(key), hash: hash, partition: s.table.owner(key), epoch: r.epoch,
		usedAt: r.mono, wantRead: true,
	}
	s.entries.insert(e)
	s.placeLocked(e, fresh)
	return e
}

// placeLocked puts an entry that is in no list into one of the shard's.
func (s *shard) placeLocked(e *entry, p place) {
	e.place = p
	e.hits = 0
	s.lists[p].pushBack(e)
	s.table.live.Add(1)
}

// moveLocked moves an entry to the back of one of the shard's lists.
func (s *shard) moveLocked(e *entry, p place) {
	s.lists[e.place].remove(e)
	e.place = p
	s.lists[p].pushBack(e)
}

// evictLocked takes an entry out of the table. One with units that are not
// delivered is set aside; the caller must then let [table.trim] see to its bound
// once the shard's lock is free.
func (s *shard) evictLocked(e *entry, cause evictCause) {
	s.lists[e.place].remove(e)
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
		s.queueLocked(e, rankIdle)
	}
}

// forgetLocked ends an entry that is in none of the shard's lists.
func (s *shard) forgetLocked(e *entry) {
	e.place = gone
	e.queued = false
	e.partition.queue.unkeep(e)
	e.partition.queue.remove(e)
	s.entries.remove(e)
}

// queueLocked queues the entry for its partition's next tick, unless the queue is
// full.
func (s *shard) queueLocked(e *entry, r rank) {
	if e.queued && r <= e.rank {
		return
	}
	if !e.partition.queue.push(e, r) {
		return
	}
	if !e.queued {
		s.counts.queued++
	}
	e.queued, e.rank = true, r
}

// advanceLocked brings the entry to the epoch of a reading and drops what became
// stale. A reading that was made before the entry's last check and took its time to
// get here is not a clock that stepped back: it changes nothing.
func (s *shard) advanceLocked(e *entry, r *reading) {
	if r.epoch < e.epoch && r.mono < e.usedAt {
		return
	}
	was := e.epoch
	stale := e.advanceLocked(r.epoch)
	s.table.ledger.drop(e, was-1, stale[0], dropStale)
	s.table.ledger.drop(e, was, stale[1], dropStale)
}

// recordLocked counts units of an entity in an epoch. Units of an epoch that the
// entry does not hold are stale at once.
func (s *shard) recordLocked(e *entry, epoch int64, units uint64) {
	if !s.closed {
		s.counts.units += units
	}
	slot := e.slotLocked(epoch)
	switch {
	case slot != nil:
		if discarded := slot.recordLocked(units, !s.closed); discarded > 0 {
			s.table.ledger.drop(e, epoch, discarded, dropOverflow)
		}
	case !s.closed:
		s.table.ledger.drop(e, epoch, units, dropStale)
	}
}

// dropUnsentLocked gives up all units that no batch carries and returns how many.
func (s *shard) dropUnsentLocked(e *entry, cause dropCause) (units uint64) {
	for i := range e.slots {
		n := e.slots[i].unsent
		e.slots[i].unsent = 0
		s.table.ledger.drop(e, e.epoch-1+int64(i), n, cause)
		units += n
	}
	return units
}
