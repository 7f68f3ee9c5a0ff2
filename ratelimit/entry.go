package ratelimit

// This file is what one node knows of one entity, and the arithmetic on it.

import (
	"math"
	"strings"
	"sync/atomic"
	"unsafe"

	"github.com/hanzoai/limiters/internal/level"
	"github.com/hanzoai/limiters/ratelimit/store"
)

// A reading is one reading of the clock, and where it lies in the windows.
type reading struct {
	wall, mono  int64 // ns
	epoch, into int64 // level.EpochAt(wall)
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
	gone  place = iota // nowhere: a queue taken from may still point to it
	fresh              // in the table, new
	main               // in the table, looked up again after it was new, or limited
	places
)

// asked is the place of an entry that is in no list, and known to its batch alone.
const asked = places

// An entry is what one node knows of one entity. The table creates it, and keeps it at
// least until its units are delivered or dropped. A key has at most one entry that is not
// gone.
//
// A check of an entity in the table takes its lock and not the shard's, and checks of
// one entity happen one after the other. Whoever takes several locks takes the
// shard's first, an entry's then, and that of the told set or of the queue last.
//
// [entry.lock] takes the lock, and the allowance back. A method of an entry whose name ends in Locked requires it. A method of a
// shard whose name does requires the shard's; if it works on an entry that it is
// given, both. An entry named keep must not be locked.
//
// A check touches its first three cache lines, in nearly every case no more, and what
// slides another one. Allow, while there is an allowance, touches the first alone.
type entry struct {
	mu        entryMutex
	key       string    // immutable; the representation of the entity key
	short     [24]byte  // immutable; the text of key if it fits, so that comparing it costs no other cache miss
	allowance allowance // what Allow may take without the lock

	// Guarded by mu.

	epoch     int64  // that of slots[1]; slots[0] is the one before
	usedAt    int64  // mono; the last check
	readAt    int64  // mono; valid if read: the last sync that read counters
	threshold uint64 // at the last check
	units     uint64 // recorded for the fleet, since they were collected
	allowed   uint32 // decisions, since they were collected
	limited   uint32 // decisions, since they were collected

	// Where in the told set, from 1 on; written under its lock. 0: nothing is to be
	// collected; it becomes so, and ends to be, under the entry's lock.
	toldAt atomic.Uint32

	// Guarded by mu.

	place    place      // changed under the shard's lock, too
	rank     rank       // at which it was queued
	hits     uint8      // look-ups since eviction last passed by, at most maxHits
	tier     level.Tier // at the last sync
	granted  uint8      // units of the allowance that is out; 0 = none is
	custom   bool       // threshold is the key's own
	queued   bool       // in the partition's queue, or taken from it and not yet encoded
	synced   bool       // a reply was applied
	read     bool       // a reply with both counters was applied
	wantRead bool       // the next sync shall read the counters
	ready    bool       // queued for a sync between ticks, too
	ringed   bool       // slide and extra.ring hold the slices of a sliding window

	slots    [2]slot     // previous epoch, current epoch
	syncedAt int64       // mono; valid if synced
	slide    level.Slide // of a sliding window, without slices Aging is Beginning.Base; of a leaky one the fleet's count at syncedAt

	// What a check seldom needs. Guarded by mu, unless it says otherwise.

	hash      uint64     // immutable; of key
	partition *partition // immutable
	extra     *extra     // nil if there is none
	refused   uint64     // units, since they were collected

	// What slots' totals contain of this node's own units at least; it stops at 2^32 − 1,
	// which is as good a bound for telling that counts are gone.
	delivered [2]uint32

	share     level.Share // this node's part of what the fleet counts
	inFlight  bool        // part of the partition's batch without an answer
	prevFinal bool        // slots[0].total was read when nobody could add to it any more
	inQueue   bool        // guarded by the queue's lock; linked by queuePrev and queueNext in the list of queueRank
	queueRank rank        // guarded by the queue's lock

	prev, next *entry // guarded by the shard's lock; in the list that place names

	queuePrev, queueNext *entry // guarded by the queue's lock
}

// newEntry returns an entry of a key. It copies the key, which may be a part of a
// text much longer than what an entity may take.
func newEntry(key string) *entry {
	e := new(entry)
	if n := copy(e.short[:], key); n < len(key) || n == 0 {
		e.key = strings.Clone(key)
	} else {
		e.key = unsafe.String(&e.short[0], n) // which is not written again
	}
	return e
}

// inTableLocked reports whether checks find the entry.
func (e *entry) inTableLocked() bool { return e.place-1 < places-1 }

// heldLocked reports whether the entry has units that are not delivered or not taken
// back, and so must stay.
func (e *entry) heldLocked() bool { return e.inFlight || e.unsentLocked() }

// advanceLocked brings the entry to the epoch of a reading and drops what became
// stale. A reading that was made before the entry's last check and took its time to
// get here is not a clock that stepped back: it changes nothing.
func (e *entry) advanceLocked(r *reading) {
	if e.epoch != r.epoch {
		e.leaveLocked(r)
	}
}

// leaveLocked is advanceLocked to another epoch than the entry's.
func (e *entry) leaveLocked(r *reading) {
	if r.epoch < e.epoch && r.mono < e.usedAt {
		return
	}
	was := e.epoch
	stale := e.shiftLocked(r.epoch)
	e.ledger().drop(e, was-1, stale[0], dropStale)
	e.ledger().drop(e, was, stale[1], dropStale)
	e.shiftDebtsLocked(was)
}

// ledger is the limiter's.
func (e *entry) ledger() *ledger { return &e.partition.l.ledger }

// shiftLocked brings the slots to an epoch and returns the unsent units that fell
// out: no read can see them any more. One epoch ahead shifts the slots. One epoch
// back changes nothing: the clock stepped back across a boundary, and slots[0] is
// where it counts now. A longer way, either direction, starts afresh.
func (e *entry) shiftLocked(epoch int64) (stale [2]uint64) {
	switch epoch - e.epoch {
	case 0, -1:
		return stale
	case 1:
		stale[0] = e.slots[0].unsent
		e.slots[0], e.slots[1] = e.slots[1], slot{}
		e.delivered[0], e.delivered[1] = e.delivered[1], 0
		if !e.ringed && e.slots[0] == (slot{}) {
			e.slide.End = 0 // the next unit is the first
		}
	default:
		stale[0], stale[1] = e.slots[0].unsent, e.slots[1].unsent
		e.slots, e.delivered = [2]slot{}, [2]uint32{}
		e.share = 0
		if !e.ringed {
			e.slide = level.Slide{}
		}
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

// deliveredLocked notes units that the store acknowledged for one of the slots.
func (e *entry) deliveredLocked(s *slot, units uint64) {
	d := e.deliveredOf(s)
	*d += uint32(min(units, math.MaxUint32-uint64(*d)))
}

// missesLocked reports whether a total that the store answers for one of the slots is
// below what this node delivered: the counter was lost. It says so once for each loss.
func (e *entry) missesLocked(s *slot, total int64) bool {
	d := e.deliveredOf(s)
	if total >= int64(*d) {
		return false
	}
	*d = uint32(total)
	return true
}

// deliveredOf is what was delivered of one of the slots.
func (e *entry) deliveredOf(s *slot) *uint32 {
	if s == &e.slots[0] {
		return &e.delivered[0]
	}
	return &e.delivered[1]
}

// modelLocked makes m the entry's model as of a reading to whose epoch it has been
// advanced. A reading before the entry's epoch counts as its start.
func (e *entry) modelLocked(m *level.Leaky, r *reading, window int64) {
	e.timesLocked(m, r, window)
	e.countsLocked(m)
}

// timesLocked and countsLocked are the parts of modelLocked, small enough to be inlined:
// a check calls them itself.
func (e *entry) timesLocked(m *level.Leaky, r *reading, window int64) {
	m.Window, m.Into = window, r.into
	if e.epoch != r.epoch {
		m.Into -= window // the clock stepped back: see advanceLocked
	}
	m.Elapsed = level.Elapsed(r.mono, e.syncedAt)
	m.Estimate = e.slide.Aging
}

func (e *entry) countsLocked(m *level.Leaky) {
	m.FleetBefore, m.Fleet = level.Float(e.slots[0].total), level.Float(e.slots[1].total)
	m.LocalBefore, m.Local = level.Float(e.slots[0].pending), level.Float(e.slots[1].pending)
}

// recordLocked counts units in an epoch, for the fleet too if open, as they are until
// Close. Units of an epoch that the entry does not hold are stale at once.
func (e *entry) recordLocked(epoch int64, units uint64, open bool) {
	slot := e.slotLocked(epoch)
	switch {
	case slot != nil:
		discarded := slot.record(units, open)
		if open {
			e.units += units - discarded
		}
		e.ledger().discard(e, epoch, discarded, dropOverflow)
	case open:
		e.ledger().discard(e, epoch, units, dropStale)
	}
}

// record adds units to a slot, as pending and, if open, as unsent, and returns those
// that saturation discards.
func (s *slot) record(units uint64, open bool) (discarded uint64) {
	s.pending = min(s.pending+units, store.MaxUnits)
	if !open {
		return 0
	}
	taken := min(units, store.MaxUnits-s.unsent)
	s.unsent += taken
	return units - taken
}

// acknowledge takes units that the store's total now contains out of pending.
// What is unsent stays pending, even if the entry started afresh while the units were
// in flight and so had forgotten them.
func (s *slot) acknowledge(units uint64) {
	s.pending = max(s.pending-min(units, s.pending), s.unsent)
}

// unsentLocked reports whether the entry has units that no batch carries, to be added or
// taken back.
func (e *entry) unsentLocked() bool {
	return e.slots[0].unsent|e.slots[1].unsent != 0 || e.extra != nil && e.owedLocked() != 0
}

// dropUnsentLocked gives up all units that no batch carries and returns how many of them
// were to be added.
func (e *entry) dropUnsentLocked(cause dropCause) (units uint64) {
	for i := range e.slots {
		n := e.slots[i].unsent
		e.slots[i].unsent = 0
		e.ledger().drop(e, e.epoch-1+int64(i), n, cause)
		units += n
	}
	e.dropOwedLocked()
	return units
}

// queueLocked queues the entry for its partition's next tick.
func (e *entry) queueLocked(r rank) { e.queueReadyLocked(r, e.ready) }

// queueReadyLocked is queueLocked, for a sync between ticks, too, if ready.
func (e *entry) queueReadyLocked(r rank, ready bool) {
	if e.queued && r <= e.rank && (!ready || e.ready) {
		return
	}
	if !e.queued {
		e.partition.queue.entered.Add(1)
		e.rank = r
	}
	e.queued, e.rank, e.ready = true, max(r, e.rank), ready
	e.partition.queue.push(e, e.rank, ready)
}

// forgotten is when an entry was used last that Forget could not evict: never.
const forgotten = math.MinInt64

// idleCauseLocked is why an idle entry is evicted.
func (e *entry) idleCauseLocked() evictCause {
	if e.usedAt == forgotten {
		return evictExplicit
	}
	return evictExpired
}

// idleLocked reports whether the entry was not used for as long as an entry may be.
func (e *entry) idleLocked(r *reading, idle int64) bool {
	return level.Elapsed(r.mono, e.usedAt) >= idle
}

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
func (e *entry) needsReadLocked(reached float64, mono int64, c *constants) bool {
	if e.read && mono-e.readAt < c.sync/2 {
		return false // not due in any tier
	}
	return e.dueLocked(reached, mono, c)
}

// dueLocked is needsReadLocked without its shortcut.
func (e *entry) dueLocked(reached float64, mono int64, c *constants) bool {
	if !e.read {
		return true
	}
	since := level.Elapsed(mono, e.readAt)
	if since >= c.ttl {
		return true
	}
	tier := max(level.TierOf(level.Pressure(reached, e.threshold)), e.tier)
	interval, ok := tier.ReadInterval(c.sync)
	return ok && since >= interval
}

// rankLocked is the rank in the queue that a level deserves: that of its tier, or
// of the tier at the last sync, whichever is higher. It asks in which tier a
// pressure would be without dividing.
func (e *entry) rankLocked(reached float64) rank {
	threshold := float64(e.threshold)
	switch {
	case 10*reached < threshold && e.tier == level.Idle || e.threshold == 0:
		return rankIdle
	case 10*reached < 8*threshold && e.tier < level.Hot:
		return rankWarm
	default:
		return rankHot
	}
}
