package ratelimit

// This file is what one node knows of one entity, and the arithmetic on it.

import "github.com/hanzoai/limiters/ratelimit/store"

// A reading is one reading of the clock, and where it lies in the windows.
type reading struct {
	wall, mono  int64 // ns
	epoch, into int64 // epochAt(wall)
}

// A slot is what an entry holds for one epoch, in units.
type slot struct {
	pending uint64 // recorded here, not yet part of total
	unsent  uint64 // recorded here, not yet given to a batch
	total   uint64 // the fleet's count as the store last answered it
}

// A place says where an entry is kept.
type place uint8

const (
	gone    place = iota // nowhere: a batch or a queue may still point to it
	fresh                // in the table, new
	main                 // in the table, looked up again after it was new
	guarded              // in the table, found limited when room was needed
	aside                // evicted, kept until its units are delivered
)

// An entry is what one node knows of one entity. The table creates it; it outlives
// its eviction until its unsent units are delivered. A key has at most one entry
// that is not gone. Every field is immutable, or guarded by the lock of the key's
// shard, or by the lock of the partition's queue; the shard's is taken first.
type entry struct {
	key string // immutable; the representation of the entity key

	// Guarded by the shard's lock, in the order of use: a check touches the first two
	// cache lines.

	epoch      int64  // that of slots[1]; slots[0] is the one before
	usedAt     int64  // mono; the last check
	readAt     int64  // mono; valid if read: the last sync that read counters
	threshold  uint64 // at the last check
	generation uint32 // of the overrides that threshold came from; 0 = ask again

	place     place
	rank      rank       // at which it was queued
	hits      uint8      // look-ups since eviction last passed by, at most maxHits
	tier      Tier       // at the last sync
	custom    bool       // threshold is the key's own
	queued    bool       // in the partition's queue, or taken from it and not yet encoded
	inFlight  bool       // part of the partition's batch without an answer
	synced    bool       // a reply was applied
	read      bool       // a reply with both counters was applied
	wantRead  bool       // the next sync shall read the counters
	prevFinal bool       // slots[0].total was read when nobody could add to it any more
	others    proportion // units of others for each of this node's between syncs

	slots        [2]slot // previous epoch, current epoch
	estimate     float64 // fleet count at syncedAt, in units
	syncedAt     int64   // mono; valid if synced
	limitedUntil int64   // mono; valid in guarded: when one unit would pass, but for other events

	hash      uint64     // immutable; of key
	partition *partition // immutable

	// Links of the shard's list that place names, guarded by the shard's lock; of
	// the list of evicted entries while setAside, guarded by the queue's lock.
	prev, next *entry

	// Guarded by the queue's lock.

	queuePrev, queueNext *entry
	inQueue              bool // linked by queuePrev and queueNext in the list of queueRank
	queueRank            rank
	setAside             bool // in the queue's list of evicted entries
}

// advanceLocked brings the slots to an epoch and returns the unsent units that fell
// out: no read can see them any more. One epoch ahead shifts the slots. One epoch
// back changes nothing: the clock stepped back across a boundary, and slots[0] is
// where it counts now. A longer way, either direction, starts afresh.
func (e *entry) advanceLocked(epoch int64) (stale [2]uint64) {
	switch epoch - e.epoch {
	case 0, -1:
		return stale
	case 1:
		stale[0] = e.slots[0].unsent
		e.slots[0], e.slots[1] = e.slots[1], slot{}
	default:
		stale[0], stale[1] = e.slots[0].unsent, e.slots[1].unsent
		e.slots = [2]slot{}
		e.estimate, e.others = 0, 0
		e.read = e.read && epoch > e.epoch
	}
	e.epoch = epoch
	e.prevFinal = false
	return stale
}

// slotLocked returns the slot of an epoch, nil if the entry has none.
func (e *entry) slotLocked(epoch int64) *slot {
	switch epoch {
	case e.epoch:
		return &e.slots[1]
	case e.epoch - 1:
		return &e.slots[0]
	default:
		return nil
	}
}

// modelLocked makes m the entry's model as of a reading to whose epoch it has been
// advanced. A reading before the entry's epoch counts as its start.
func (e *entry) modelLocked(m *model, r *reading, window int64) {
	m.window, m.into = window, r.into
	if e.epoch != r.epoch {
		m.into -= window // the clock stepped back: see advanceLocked
	}
	m.elapsed = elapsed(r.mono, e.syncedAt)
	m.estimate, m.others = e.estimate, e.others
	m.fleet = [2]float64{float64(e.slots[0].total), float64(e.slots[1].total)}
	m.local = [2]float64{float64(e.slots[0].pending), float64(e.slots[1].pending)}
}

// recordLocked adds units to a slot, as pending and as unsent, and returns those
// that saturation discards. After Close nothing is unsent (counted is false).
func (s *slot) recordLocked(units uint64, counted bool) (discarded uint64) {
	s.pending = min(s.pending+min(units, store.MaxUnits), store.MaxUnits)
	if !counted {
		return 0
	}
	taken := min(units, store.MaxUnits-s.unsent)
	s.unsent += taken
	return units - taken
}

// acknowledgeLocked takes units that the store's total now contains out of pending.
// What is unsent stays pending, even if the entry started afresh while the units were
// in flight and so had forgotten them.
func (s *slot) acknowledgeLocked(units uint64) {
	s.pending = max(s.pending-min(units, s.pending), s.unsent)
}

// unsentLocked reports whether the entry has units that no batch carries.
func (e *entry) unsentLocked() bool { return e.slots[0].unsent|e.slots[1].unsent != 0 }

// useLocked notes that a check found the entry. Readings may come here out of order.
func (e *entry) useLocked(r *reading) {
	e.usedAt = max(e.usedAt, r.mono)
	if e.hits < maxHits {
		e.hits++
	}
}

// needsReadLocked reports whether a check at this level makes the entity's counters
// worth a read: it was never read, its tier's interval is over (the tier being
// that of this level or of the last sync, whichever is higher), or the last read is
// as old as an entry may become. Every read is one from scratch: it replaces all
// that is known of the fleet.
func (e *entry) needsReadLocked(level float64, mono int64, c *constants) bool {
	if e.read && mono-e.readAt < c.sync/2 {
		return false // not due in any tier
	}
	return e.dueLocked(level, mono, c)
}

// dueLocked is needsReadLocked without its shortcut.
func (e *entry) dueLocked(level float64, mono int64, c *constants) bool {
	if !e.read {
		return true
	}
	since := elapsed(mono, e.readAt)
	if since >= c.ttl {
		return true
	}
	tier := max(tierOf(pressureOf(level, e.threshold)), e.tier)
	interval, ok := tier.readInterval(c.sync)
	return ok && since >= interval
}

// rankLocked is the rank in the queue that a level deserves: that of its tier, or
// of the tier at the last sync, whichever is higher. It asks in which tier a
// pressure would be without dividing.
func (e *entry) rankLocked(level float64) rank {
	threshold := float64(e.threshold)
	switch {
	case 10*level < threshold && e.tier == Idle || e.threshold == 0:
		return rankIdle
	case 10*level < 8*threshold && e.tier < Hot:
		return rankWarm
	default:
		return rankHot
	}
}
