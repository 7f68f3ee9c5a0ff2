package ratelimit

// This file chooses what leaves a full table: first what was looked up only when it was
// new, then what was not looked up lately, and a limited entity only when nothing else
// is at hand (in the manner of S3-FIFO, with a bounded number of looks). An entry with
// units that are not delivered stays until they are.

import "github.com/hanzoai/limiters/internal/level"

// An evictCause says why an entry left the table.
type evictCause uint8

const (
	evictSize     evictCause = iota // to make room
	evictExpired                    // idle for local_cache_idle_timeout
	evictExplicit                   // Forget
	evictCauses
)

// maxHits bounds an entry's credit with eviction: so many times it is passed over
// without another look-up.
const maxHits = 3

// looks is how many entries of a list an eviction looks at, at most.
const looks = 8

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

// A mercy says which entries an eviction spares.
type mercy uint8

const (
	spareLimited mercy = iota // limited ones, and those with undelivered units
	spareHeld                 // those with undelivered units
	spareFlying               // those in flight alone; unsent units are dropped
)

// makeRoom evicts an entry other than keep if the table holds more than it may. It spares
// limited entries and such with undelivered units, unless the latter are too many: until
// they are delivered, or the next tick, the table may grow. No lock of the table may be
// held.
func (t *table) makeRoom(home uint64, keep *entry, r *reading) {
	over := t.live.Load() - t.limit
	if over > 0 && over <= t.spare {
		t.evictOne(home, keep, spareLimited, r)
	}
	// Entries in flight may fill all that an eviction looks at: the next one makes up for it.
	for n := 0; n < 2 && over > t.spare; n++ {
		t.evictOne(home, keep, spareFlying, r)
		over = t.live.Load() - t.limit
	}
}

// shrinkPerTick is how many entries a tick evicts, at most, because the table had to grow.
const shrinkPerTick = 20_000

// shrink brings the table back within its bound, as far as undelivered units and
// shrinkPerTick allow. No lock of the table may be held.
func (t *table) shrink(r *reading) {
	for n := range uint64(shrinkPerTick) {
		if t.live.Load() <= t.limit || !t.evictOne(n, nil, spareLimited, r) && !t.evictOne(n, nil, spareHeld, r) {
			return
		}
	}
}

// evictOne evicts an entry of the home shard or else of the next that has one to spare,
// and reports whether it did. It looks at a few shards only.
func (t *table) evictOne(home uint64, keep *entry, m mercy, r *reading) (evicted bool) {
	for i, seen := 0, 0; i < len(t.shards) && seen < 4*looks; i++ {
		s := t.shardOf(home + uint64(i))
		s.mu.Lock()
		evicted, looked := s.evictOneLocked(keep, m, r)
		s.mu.Unlock()
		if evicted {
			return true
		}
		seen += looked
	}
	return false
}

// An eviction is the search for one entry that leaves a shard.
type eviction struct {
	keep  *entry // stays
	mercy mercy
	held  bool // an entry was passed over for its undelivered units

	// The best of those passed over for another reason: it goes if nothing better is
	// found.
	last     *entry
	limited  bool
	hits     uint8
	pressure float64
}

// evictOneLocked evicts one entry other than keep and reports whether there was one to
// evict, and how many it looked at. New entries leave first, if they are more than a
// tenth of all: if those it looks at wait to be delivered, so does the eviction. Then it
// looks at the others, the oldest first, and if all those are limited at the newest of
// all. It locks entries, one at a time.
func (s *shard) evictOneLocked(keep *entry, m mercy, r *reading) (evicted bool, looked int) {
	ev := eviction{keep: keep, mercy: m}
	if isNew := s.lists[fresh].len; 10*isNew > isNew+s.lists[main].len {
		for range min(looks, isNew) {
			looked++
			if s.passLocked(&ev, s.lists[fresh].front, r) {
				return true, looked
			}
		}
		if ev.held && m != spareFlying {
			return false, looked
		}
	}
	for range min(looks, s.lists[main].len) {
		looked++
		if s.passLocked(&ev, s.lists[main].front, r) {
			return true, looked
		}
	}
	if ev.last == nil || ev.limited {
		for e, n := s.lists[fresh].back, 0; e != nil && n < looks; n++ {
			older := e.prev
			looked++
			if s.passLocked(&ev, e, r) {
				return true, looked
			}
			e = older
		}
	}
	if ev.last == nil || ev.limited && m == spareLimited {
		return false, looked
	}
	ev.last.lock()
	defer ev.last.unlock()
	if ev.sparesLocked(ev.last) { // it was checked meanwhile
		return false, looked
	}
	s.evictLocked(ev.last, evictSize)
	return true, looked
}

// sparesLocked reports whether an entry's undelivered units keep it.
func (ev *eviction) sparesLocked(e *entry) bool {
	return e.inFlight || ev.mercy != spareFlying && e.unsentLocked()
}

// passLocked evicts an entry that is neither limited nor looked up lately and reports
// that, or moves it to the back of a list.
func (s *shard) passLocked(ev *eviction, e *entry, r *reading) (evicted bool) {
	e.lock()
	defer e.unlock()
	e.advanceLocked(r)
	if held := ev.sparesLocked(e); held || e == ev.keep {
		ev.held = ev.held || held
		s.moveLocked(e, e.place)
		return false
	}
	reached := e.levelLocked(r, &s.table.constants)
	limited := reached > 0 && !s.table.fits(reached, 1, e.threshold)
	if !limited && e.hits == 0 {
		s.evictLocked(e, evictSize)
		return true
	}
	ev.consider(e, limited, level.Pressure(reached, e.threshold))
	if e.place == fresh {
		e.hits = 0
	} else if !limited {
		e.hits--
	}
	s.moveLocked(e, main)
	return false
}

// consider notes an entry that is passed over: rather one that is not limited, then one
// that was looked up less often, then one with less pressure.
func (ev *eviction) consider(e *entry, limited bool, pressure float64) {
	better := ev.last == nil
	switch {
	case better:
	case limited != ev.limited:
		better = !limited
	case e.hits != ev.hits && !limited:
		better = e.hits < ev.hits
	default:
		better = pressure < ev.pressure
	}
	if better {
		ev.last, ev.limited, ev.hits, ev.pressure = e, limited, e.hits, pressure
	}
}
