package ratelimit

// This file gives units back (docs/design.md, conservation): under an entry's lock, of
// the epoch that they were counted in. Unsent ones vanish. Those in flight wait for their
// fate. Delivered ones are owed: the partition's next batch takes them from the counter.

import "github.com/hanzoai/limiters/internal/level"

// A debt is what one epoch of an entity has to do with units asked back. Each of its
// numbers counts other units.
type debt struct {
	delivered uint64 // by this node, and not asked back; entry.delivered stops at 2^32 − 1
	owed      uint64 // delivered and asked back, and in no batch
	flown     uint64 // in flight and asked back: owed once they are delivered
}

// debts are those of an entry's previous and current epoch.
type debts [2]debt

// owedLocked is how many units the store owes this node, and no batch asks it for.
func (e *entry) owedLocked() uint64 {
	if x := e.extra; x != nil && x.debts != nil {
		return x.debts[0].owed + x.debts[1].owed
	}
	return 0
}

// debtsLocked returns the entry's debts, which it makes if there are none.
func (e *entry) debtsLocked(c *constants, r *reading) *debts {
	if e.extra == nil {
		e.extra = newExtra(c, r)
	}
	if e.extra.debts == nil {
		e.extra.debts = new(debts)
		for i, units := range e.delivered {
			e.extra.debts[i].delivered = widened(units)
		}
	}
	return e.extra.debts
}

// widened is what a narrow count of delivered units stands for: one at its end for any
// number beyond.
func widened(units uint32) uint64 {
	if units == 1<<32-1 {
		return 1<<53 - 1
	}
	return uint64(units)
}

// newExtra returns what an entry needs to have an extra at all.
func newExtra(c *constants, r *reading) *extra {
	if c.bursts {
		return newBucketed(r.mono)
	}
	return new(extra)
}

// shiftDebtsLocked follows the entry from an epoch to its present one. What is owed of an
// epoch that no read can see any more is nothing.
func (e *entry) shiftDebtsLocked(was int64) {
	if e.extra == nil || e.extra.debts == nil {
		return
	}
	d := e.extra.debts
	switch e.epoch - was {
	case 0, -1:
		return
	case 1:
		e.ledger().clamp(e, was-1, d[0].owed+d[0].flown)
		d[0], d[1] = d[1], debt{}
	default:
		for i := range d {
			e.ledger().clamp(e, was-1+int64(i), d[i].owed+d[i].flown)
		}
		*d = debts{}
	}
	if *d == (debts{}) {
		e.extra.debts = nil
	}
}

// giveBackLocked takes back units that this entry counted for the fleet in an epoch, at a
// time on the monotonic clock: as many as that epoch still holds of this node's. What it
// does not hold is clamped: it was dropped, lost, or is of an epoch that no read can see.
// If not open, nothing is asked of the store. The entry must have been advanced to the
// reading.
func (l *Limiter) giveBackLocked(e *entry, epoch int64, units uint64, at int64, r *reading, open bool) {
	l.lowerLocked(e, units, at, r)
	slot := e.slotLocked(epoch)
	if slot == nil {
		e.ledger().clamp(e, epoch, units)
		return
	}
	d := &e.debtsLocked(&l.constants, r)[epoch-e.epoch+1]

	vanish := min(units, slot.unsent)
	slot.unsent -= vanish
	slot.pending -= min(vanish, slot.pending)
	e.ledger().vanish(e, epoch, vanish)
	units -= vanish

	owed := min(units, d.delivered)
	d.delivered -= owed
	e.payLocked(slot, owed, r, l.window)
	if units -= owed; open {
		d.owed += owed
	} else {
		e.ledger().clamp(e, epoch, owed)
	}

	waiting := slot.pending - min(slot.unsent, slot.pending) // in flight, or dropped and still pending
	flown := min(units, waiting)
	slot.pending -= flown
	if !e.inFlight {
		e.ledger().clamp(e, epoch, units)
	} else {
		d.flown += flown
		e.ledger().clamp(e, epoch, units-flown)
	}
	if d.owed > 0 && open {
		e.queueLocked(e.rankLocked(e.levelLocked(r, &l.constants)))
	}
}

// oweLocked has the entry ask the store for units that were counted by one that is gone,
// and delivered. The entry must have been advanced to the reading.
func (l *Limiter) oweLocked(e *entry, h *holding, units uint64, r *reading) {
	slot := e.slotLocked(h.epoch)
	if slot == nil {
		e.ledger().clamp(e, h.epoch, units)
		return
	}
	l.lowerLocked(e, units, h.mono, r)
	e.lowerTotalLocked(slot, units, r, l.window)
	e.debtsLocked(&l.constants, r)[h.epoch-e.epoch+1].owed += units
	e.queueLocked(e.rankLocked(e.levelLocked(r, &l.constants)))
}

// lowerLocked takes units off what is not a count: the slice and the bucket that they were
// counted in.
func (l *Limiter) lowerLocked(e *entry, units uint64, at int64, r *reading) {
	if e.ringed {
		e.extra.ring.Roll(&l.sliding, &e.slide, r.mono)
		e.extra.ring.Take(&l.sliding, &e.slide, at, units)
	}
	if l.bursts && e.extra != nil {
		e.extra.bucket.Leak(&l.burst, e.threshold, r.mono)
		e.extra.bucket.Return(&l.burst, e.threshold, level.Float(units), level.Elapsed(r.mono, at))
	}
}

// payLocked takes delivered units of this node off what a slot knows of the fleet.
func (e *entry) payLocked(slot *slot, units uint64, r *reading, window int64) {
	e.lowerTotalLocked(slot, units, r, window)
	d := e.deliveredOf(slot)
	*d -= uint32(min(units, uint64(*d)))
}

// lowerTotalLocked takes units off a slot's total, and off the estimate that came from it.
func (e *entry) lowerTotalLocked(slot *slot, units uint64, r *reading, window int64) {
	units = min(units, slot.total)
	slot.total -= units
	if e.partition.l.kind == leaky {
		e.slide.Aging = max(0, e.slide.Aging-level.Float(units)*e.weightAtSyncLocked(slot, r, window))
	}
}

// weightAtSyncLocked is what a unit of a slot weighed when the estimate was made.
func (e *entry) weightAtSyncLocked(slot *slot, r *reading, window int64) float64 {
	if slot == &e.slots[1] {
		return 1
	}
	into := r.into + (r.epoch-e.epoch)*window
	return max(0, level.Weight(into-level.Elapsed(r.mono, e.syncedAt), window))
}

// netLocked settles what is owed with what is unsent, before a batch is made: a unit that
// is not sent stands for one that is taken back.
func (e *entry) netLocked(r *reading, window int64) {
	if e.owedLocked() == 0 {
		return
	}
	for i := range e.slots {
		slot, d := &e.slots[i], &e.extra.debts[i]
		units := min(slot.unsent, d.owed)
		if units == 0 {
			continue
		}
		slot.unsent -= units
		slot.pending -= min(units, slot.pending)
		slot.total += units
		if e.partition.l.kind == leaky {
			e.slide.Aging += level.Float(units) * e.weightAtSyncLocked(slot, r, window)
		}
		d.owed -= units
		d.delivered += units
		e.deliveredLocked(slot, units)
		e.ledger().vanish(e, e.epoch-1+int64(i), units)
	}
}

// takeOwedLocked moves what is owed of a slot into a batch.
func (e *entry) takeOwedLocked(i int) (units uint64) {
	if e.extra == nil || e.extra.debts == nil {
		return 0
	}
	d := &e.extra.debts[i]
	units, d.owed = d.owed, 0
	return units
}

// debtLocked returns the debt of an epoch, nil if there is none.
func (e *entry) debtLocked(epoch int64) *debt {
	if e.extra == nil || e.extra.debts == nil || e.slotLocked(epoch) == nil {
		return nil
	}
	return &e.extra.debts[epoch-e.epoch+1]
}

// landLocked is told that units of an epoch that were in flight are delivered, and returns
// how many of them were asked back meanwhile: those are owed now.
func (e *entry) landLocked(epoch int64, units uint64) (asked uint64) {
	asked = e.askedLocked(epoch, units)
	if d := e.debtLocked(epoch); d != nil {
		d.owed += asked
		d.delivered += units - asked
	}
	return asked
}

// askedLocked returns how many of an epoch's units that were in flight were asked back
// meanwhile. They wait for their fate no more.
func (e *entry) askedLocked(epoch int64, units uint64) (asked uint64) {
	if d := e.debtLocked(epoch); d != nil {
		asked = min(d.flown, units)
		d.flown -= asked
	}
	return asked
}

// groundLocked ends the waiting of units that were taken to be in flight and were not:
// dropped before, they were pending still.
func (e *entry) groundLocked() {
	if e.extra == nil || e.extra.debts == nil {
		return
	}
	for i := range e.slots {
		d := &e.extra.debts[i]
		e.ledger().clamp(e, e.epoch-1+int64(i), d.flown)
		d.flown = 0
	}
}

// knowTotalLocked bounds what may be asked back of a slot by a total that the store
// answered: it holds no more of this node's units. It returns the total less what is owed.
func (e *entry) knowTotalLocked(slot *slot, total uint64) uint64 {
	epoch := e.epoch
	if slot == &e.slots[0] {
		epoch--
	}
	if d := e.debtLocked(epoch); d != nil {
		total -= min(d.owed, total)
		d.delivered = min(d.delivered, total)
	}
	return total
}

// dropOwedLocked gives up all units that are owed, and returns how many.
func (e *entry) dropOwedLocked() (units uint64) {
	for i := range e.slots {
		n := e.takeOwedLocked(i)
		e.ledger().clamp(e, e.epoch-1+int64(i), n)
		units += n
	}
	return units
}
