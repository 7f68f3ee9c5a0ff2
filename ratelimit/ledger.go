package ratelimit

// This file accounts for units: each one counted is unsent, in flight, delivered,
// or dropped for a named cause (docs/design.md, conservation).

import (
	"math"
	"sync/atomic"
)

// A dropCause says why units were given up.
type dropCause uint8

const (
	dropStale    dropCause = iota // of an epoch that no read can see any more
	dropPoisoned                  // for a counter that is none
	dropOverflow                  // above 2^53 − 1, or evicted beyond the bound
	dropClosed                    // left when Close ended
	dropUnknown                   // sent, and never known to be applied or not
	dropCauses
)

// A ledger holds what became of the units that the entries counted. It is safe for
// concurrent use.
type ledger struct {
	delivered total
	dropped   [dropCauses]total
	discarded total // of dropped, those that no entry counted

	// Of units asked back, what became of them; see debt.go.
	asked    total
	vanished total // were unsent, and are no longer counted
	taken    total // the store took them from a counter
	clamped  total // there was nothing to take them from
	doubtful total // asked of the store, and never known to be taken or not

	// settled, if not nil, is told of every change: cause is dropCauses for
	// delivered units. Tests set it before the first check. It is called under
	// locks and must not call back.
	settled func(key string, epoch int64, units uint64, cause dropCause)
	// granted is told of units that a store granted, or may have granted, before settled is.
	granted func(key string, epoch int64, units uint64)
	// returned is the same for units asked back: to is where they were added.
	returned func(key string, epoch int64, units uint64, to *total)
}

// A total is a sum of units that stops at 2^64 − 1 rather than wrap.
type total struct{ units atomic.Uint64 }

func (t *total) add(units uint64) {
	for {
		sum := t.units.Load()
		if t.units.CompareAndSwap(sum, plus(sum, units)) {
			return
		}
	}
}

func (t *total) load() uint64 { return t.units.Load() }

// plus is a + b, or 2^64 − 1 if that is more.
func plus(a, b uint64) uint64 { return a + min(b, math.MaxUint64-a) }

func (g *ledger) deliver(e *entry, epoch int64, units uint64) {
	g.delivered.add(units)
	g.tell(e, epoch, units, dropCauses)
}

// doubtGrant accounts for units that a store may have granted, to nobody who was told.
func (g *ledger) doubtGrant(e *entry, epoch int64, units uint64) {
	if g.granted != nil {
		g.granted(e.key, epoch, units)
	}
	g.discard(e, epoch, units, dropUnknown)
}

// grant accounts for units that a store granted: counted there and then.
func (g *ledger) grant(e *entry, epoch int64, units uint64) {
	if g.granted != nil {
		g.granted(e.key, epoch, units)
	}
	g.deliver(e, epoch, units)
}

func (g *ledger) drop(e *entry, epoch int64, units uint64, cause dropCause) {
	if units == 0 {
		return
	}
	g.dropped[cause].add(units)
	if cause == dropStale || cause == dropOverflow || cause == dropUnknown {
		e.partition.dropped.add(units)
	}
	g.tell(e, epoch, units, cause)
}

// discard drops units that were counted in no entry.
func (g *ledger) discard(e *entry, epoch int64, units uint64, cause dropCause) {
	g.discarded.add(units)
	g.drop(e, epoch, units, cause)
}

func (g *ledger) tell(e *entry, epoch int64, units uint64, cause dropCause) {
	if g.settled != nil {
		g.settled(e.key, epoch, units, cause)
	}
}

func (g *ledger) vanish(e *entry, epoch int64, units uint64)   { g.back(&g.vanished, e, epoch, units) }
func (g *ledger) takeBack(e *entry, epoch int64, units uint64) { g.back(&g.taken, e, epoch, units) }
func (g *ledger) clamp(e *entry, epoch int64, units uint64)    { g.back(&g.clamped, e, epoch, units) }

func (g *ledger) doubt(e *entry, epoch int64, units uint64) { g.back(&g.doubtful, e, epoch, units) }

func (g *ledger) back(to *total, e *entry, epoch int64, units uint64) {
	if units == 0 {
		return
	}
	to.add(units)
	if g.returned != nil {
		g.returned(e.key, epoch, units, to)
	}
}

// settledUnits returns all units that are neither unsent nor in flight.
func (g *ledger) settledUnits() uint64 {
	n := plus(g.delivered.load(), g.vanished.load())
	for i := range g.dropped {
		n = plus(n, g.dropped[i].load())
	}
	return n
}
