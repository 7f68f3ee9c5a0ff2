package ratelimit

// This file lets Allow pass units without a lock, while they change nothing but counts
// (docs/design.md, allowances).

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/hanzoai/limiters/internal/level"
	"github.com/hanzoai/limiters/ratelimit/store"
)

// An allowance is units that Allow may take from an entry without its lock. It is granted
// under that lock, and whoever takes the lock takes the allowance back first. While it is
// out every unit of it would be allowed by a check, and would change nothing but counts:
// neither the entity's place in the queue, nor what its next sync asks, nor its slices.
//
// It may be taken from by any goroutine. The zero value is none.
type allowance struct {
	// word is the units left in its lowest byte; above them when the last was taken, or
	// the time of the grant, on the monotonic clock. 0 = none.
	word atomic.Uint64

	until      atomic.Uint32 // mono in untilUnits, its lowest bits; when it ends; set before word
	generation atomic.Uint32 // of the overrides that the entry's threshold came from; 0 = ask again; written under the entry's lock
}

const (
	takenShift = 8                 // of the time in a word
	unitsMask  = 1<<takenShift - 1 // of the units in a word
	untilShift = 10                // 2^untilShift ns are one of until
	lastTime   = math.MaxInt64 >> (takenShift - 1)

	leastGranted = 8   // units: fewer are not worth it
	mostGranted  = 255 // units
	longestGrant = 1e9 // ns

	// ancient is an age at which no grant holds; until is unambiguous within it.
	ancient = 1 << 30 // ns
)

// take takes a unit at a time, if the allowance holds for these overrides.
//
// A word that was given back and granted again between the two looks at it can be the same
// only if it says the same: then the unit is one of the later grant's.
func (a *allowance) take(mono int64, generation uint32) bool {
	for {
		word := a.word.Load()
		if word&unitsMask == 0 || a.generation.Load() != generation {
			return false
		}
		taken := int64(word >> takenShift)
		if mono-taken >= ancient || int32(a.until.Load()-uint32(mono>>untilShift)) <= 0 {
			return false
		}
		if a.word.CompareAndSwap(word, uint64(max(taken, mono))<<takenShift|(word&unitsMask-1)) {
			return true
		}
	}
}

// An entryMutex can be locked by entry.lock alone.
type entryMutex struct{ mutex sync.Mutex }

// lock locks the entry. Whoever decides, counts, gives back, encodes, evicts, forgets, looks
// or closes does that, and so finds everything counted.
func (e *entry) lock() {
	e.mu.mutex.Lock()
	if e.granted != 0 {
		e.settleLocked()
	}
}

func (e *entry) unlock() { e.mu.mutex.Unlock() }

// settleLocked takes the allowance back and counts what was taken of it: in the epoch and
// the slice in which it was granted, for the entry has not left them.
func (e *entry) settleLocked() {
	word := e.allowance.word.Swap(0)
	taken := e.granted - uint8(word&unitsMask)
	e.granted = 0
	if taken == 0 {
		return
	}
	units, mono := uint64(taken), int64(word>>takenShift)
	slot := &e.slots[1]
	slot.pending += units
	slot.unsent += units
	e.units += units
	e.allowed += uint32(taken)
	e.usedAt = max(e.usedAt, mono)
	e.hits = min(e.hits+min(taken, maxHits), maxHits)
	if e.partition.l.kind != sliding {
		return
	}
	if e.ringed {
		e.slide.Add(units)
	} else {
		e.slide.Note(mono)
	}
}

// grantLocked grants an allowance after a check of one unit, if enough units are as far
// from everything that matters. The entity is open.
func (l *Limiter) grantLocked(e *entry, d *Decision, r *reading, hash uint64) {
	if d.verdict == VerdictLimited || !e.queued || e.epoch != r.epoch {
		return
	}
	units := l.grantableLocked(e, d.level)
	if units = min(units, mostGranted, round-1-e.roundLocked(hash)); units < leastGranted {
		return
	}
	until := l.grantEndLocked(e, d.level, r)
	if until>>untilShift <= r.mono>>untilShift || r.mono <= 0 || r.mono > lastTime {
		return
	}
	e.granted = uint8(units)
	e.allowance.until.Store(uint32(until >> untilShift))
	e.allowance.word.Store(uint64(r.mono)<<takenShift | units)
}

// grantableLocked is how many single units after a level would be allowed, neither change
// the entity's tier or rank, nor be the one that asks for a sync by units.
func (l *Limiter) grantableLocked(e *entry, reached float64) uint64 {
	limit := float64(e.threshold)
	switch {
	case 10*reached < limit:
		limit *= 0.1
	case 2*reached < limit:
		limit *= 0.5
	case 10*reached < 8*limit:
		limit *= 0.8
	}
	if limit -= reached; limit < leastGranted {
		return 0
	}
	units := uint64(min(limit, mostGranted+2)) - 2 // one to stay below, one for what is rounded
	if slot := &e.slots[1]; slot.pending > store.MaxUnits-mostGranted || e.allowed >= manyCounted-mostGranted {
		return 0
	}
	if l.byUnits && !e.ready {
		part := max(e.threshold/4096, level.Part(e.threshold, e.share)) - 1
		units = min(units, part-min(part, e.slots[0].unsent+e.slots[1].unsent))
	}
	return units
}

// grantEndLocked is when a grant at a reading ends: with the slice, the epoch, when a read
// becomes due, or after longestGrant.
func (l *Limiter) grantEndLocked(e *entry, reached float64, r *reading) int64 {
	longest := min(int64(longestGrant), l.idle/4)
	left := l.window - r.into
	if l.kind == fixed {
		left = l.stretch(r).To - r.wall
	}
	if r.into <= l.jitter {
		return 0 // see turn.go, and course.go
	}
	longest = min(longest, left-l.jitter)
	if !e.wantRead {
		age := level.Elapsed(r.mono, e.readAt)
		longest = min(longest, l.ttl-age)
		tier := max(level.TierOf(level.Pressure(reached, e.threshold)), e.tier)
		if interval, ok := tier.ReadInterval(l.sync); ok {
			longest = min(longest, interval-age)
		}
	}
	until := r.mono + longest
	if e.ringed {
		until = min(until, e.slide.End)
	}
	return until
}
