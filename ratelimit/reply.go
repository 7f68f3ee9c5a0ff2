package ratelimit

// This file applies replies: it moves units from in flight to where they belong,
// and makes the fleet's counts the entries' estimates.

import (
	"math"

	"github.com/hanzoai/limiters/internal/level"
	"github.com/hanzoai/limiters/ratelimit/store"
)

// acknowledgeLocked applies the reply to the batch, which was sent at sent. It
// requires p.mu and the turn.
func (p *partition) acknowledgeLocked(sent, now reading) {
	b := &p.batch
	for i := range b.items {
		it := &b.items[i]
		it.entry.lock()
		it.entry.inFlight = false
		it.entry.advanceLocked(&now)
		p.settleItemLocked(it, sent, now)
		if it.ask != 0 {
			p.again = p.answerFleetLocked(it, &now, p.again)
		}
		it.entry.unlock()
	}
	p.adoptLocked()
	p.makeRoomLocked(&now)
	p.carrying = false
	p.health.writes += uint64(len(b.Writes))
	p.health.reads += uint64(len(b.Reads))
	p.health.lastSync, p.ackedAt = now.wall, now.mono
}

// A growth is what a reply tells of one epoch's counter.
type growth struct {
	known bool  // the reply holds the total
	lost  bool  // the total lacks units of this node
	own   int64 // units of this node that the total contains for the first time, those asked back apart
	whole int64 // by how much the total, less what is owed, is above what was known of it
}

// settleItemLocked accounts for an item's units and learns its totals. It requires the
// entry's lock.
func (p *partition) settleItemLocked(it *item, sent, now reading) {
	e := it.entry
	before := e.levelLocked(&now, &p.l.constants)
	var grown [2]growth // of the entry's previous epoch and its current one
	for i, units := range it.units {
		epoch := it.epoch - 1 + int64(i)
		slot := e.slotLocked(epoch)
		total, own := store.Invalid, uint64(0)
		if units|it.back[i] != 0 {
			result := &p.reply.Writes[it.at[i]]
			if total = result.Total; units > 0 {
				own = p.settleUnitsLocked(e, slot, epoch, units, result.Status)
			} else {
				own = p.settleBackLocked(e, slot, epoch, it.back[i], result, &now)
			}
		} else if i == 1 && it.ask != 0 && len(p.batch.asks[it.ask-1].amounts) > 0 {
			total = p.reply.Writes[it.at[i]].Total
		} else if it.read {
			total = p.reply.Reads[it.at[i]]
		}
		if i == 1 && it.ask != 0 {
			own += p.grantLocked(it, slot, &now)
		}
		if slot != nil && total >= 0 {
			expires := p.l.calendar != nil && epoch < e.epoch // a counter lives until its period ends
			if e.missesLocked(slot, total) && !expires {
				p.health.lost++
				grown[epoch-e.epoch+1].lost = true
			}
			g := &grown[epoch-e.epoch+1]
			known := e.knowTotalLocked(slot, uint64(total))
			g.known, g.own, g.whole = true, int64(own), int64(known)-int64(slot.total)
			slot.total = known
		}
	}
	e.groundLocked()
	known := e.synced
	p.learnLocked(e, it, &grown, sent, now)
	reached := e.levelLocked(&now, &p.l.constants)
	if it.read && known && e.threshold > 0 {
		p.l.metrics.estimateDrift.Update(math.Abs(before-reached) / float64(e.threshold))
	}
	if tier := level.TierOf(level.Pressure(reached, e.threshold)); tier != e.tier {
		p.health.transitions[e.tier][tier]++
		e.tier = tier
	}
	if e.unsentLocked() {
		e.queueLocked(e.rankLocked(reached))
	}
}

// settleUnitsLocked accounts for the units that an item carried for one epoch, by
// what became of the write, and returns how many the total contains now that nobody asked
// back meanwhile. Delivered units leave pending, for the total contains
// them; poisoned ones stay there until they age.
func (p *partition) settleUnitsLocked(e *entry, slot *slot, epoch int64, units uint64, status store.Status) (own uint64) {
	if status == store.Written || status == store.Unexpiring {
		p.l.ledger.deliver(e, epoch, units)
		own = units - e.landLocked(epoch, units)
		if slot != nil {
			slot.acknowledge(own)
			e.deliveredLocked(slot, own)
		}
		if status == store.Unexpiring {
			p.health.unexpiring++
		}
		return own
	}
	asked := e.askedLocked(epoch, units)
	if status == store.Refused && slot != nil {
		p.l.ledger.vanish(e, epoch, asked)
		units -= asked
	} else {
		p.l.ledger.clamp(e, epoch, asked)
	}
	switch status {
	case store.Poisoned:
		p.health.poisoned++
		p.l.ledger.drop(e, epoch, units, dropPoisoned)
	case store.Saturated:
		p.l.ledger.drop(e, epoch, units, dropOverflow)
	default: // refused
		p.health.refused++
		if slot == nil {
			p.l.ledger.drop(e, epoch, units, dropStale)
			return 0
		}
		taken := min(units, store.MaxUnits-slot.unsent)
		slot.unsent += taken
		slot.pending = max(slot.pending, slot.unsent) // the entry may have started afresh meanwhile
		p.l.ledger.drop(e, epoch, units-taken, dropOverflow)
	}
	return 0
}

// settleBackLocked accounts for units that an item asked back of one epoch, and returns how
// many of them the counter did not hold: what was known of the total lacks them.
func (p *partition) settleBackLocked(e *entry, slot *slot, epoch int64, units uint64, result *store.WriteResult, now *reading) (missing uint64) {
	switch result.Status {
	case store.Written, store.Unexpiring:
		p.l.ledger.takeBack(e, epoch, result.Taken)
		p.l.ledger.clamp(e, epoch, units-result.Taken)
		return units - result.Taken
	case store.Refused:
		p.health.refused++
		if slot != nil {
			e.debtsLocked(&p.l.constants, now)[epoch-e.epoch+1].owed += units
			return 0
		}
	case store.Poisoned:
		p.health.poisoned++
	}
	p.l.ledger.clamp(e, epoch, units)
	return 0
}

// abandonLocked gives the batch up: as unknown if any attempt may have been
// applied, else for the cause. It requires p.mu.
func (p *partition) abandonLocked(cause dropCause, r *reading) {
	if p.batch.Retry || p.trying {
		cause = dropUnknown
	}
	for i := range p.batch.items {
		it := &p.batch.items[i]
		e := it.entry
		e.lock()
		e.inFlight = false
		for i, units := range it.units {
			epoch := it.epoch - 1 + int64(i)
			p.l.ledger.clamp(e, epoch, e.askedLocked(epoch, units))
			p.l.ledger.drop(e, epoch, units, cause)
			if cause == dropUnknown {
				p.l.ledger.doubt(e, epoch, it.back[i])
			} else {
				p.l.ledger.clamp(e, epoch, it.back[i])
			}
		}
		e.groundLocked()
		if e.wantRead && e.place != asked || e.unsentLocked() {
			e.queueLocked(e.rankLocked(0)) // as pressed as at its last sync
		}
		e.unlock()
	}
	if cause == dropUnknown {
		p.doubtFleetLocked()
	}
	p.makeRoomLocked(r)
	p.carrying = false
}

// makeRoomLocked makes room in the table now that the batch's entries are not in flight
// any more.
func (p *partition) makeRoomLocked(r *reading) {
	for i := range p.batch.items {
		p.l.table.makeRoom(p.batch.items[i].entry.hash, nil, r)
	}
}
