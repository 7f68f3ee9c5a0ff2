package ratelimit

// This file finds where units that were counted are given back: in the entry that counted
// them, or, if that is gone, in one made for it.

import "math"

// A holding says where units of one request were counted, so that they can be given back.
// The zero value is of no units.
type holding struct {
	entry *entry // that counted them; it may be gone
	epoch int64
	mono  int64 // when, and so in which slice
	units uint64
	fleet bool // for the fleet, not for this node alone
}

// giveBack takes units of a holding back (docs/design.md, conservation). It may be
// called at any time, after Close too, and takes no longer than a check. It must not be
// given more units than the holding has, over all calls. No lock may be held.
func (l *Limiter) giveBack(h *holding, units uint64) {
	if units == 0 || h.entry == nil {
		return
	}
	r := l.read()
	e := h.entry
	s := l.table.shardOf(e.hash)
	if h.fleet {
		l.ledger.asked.add(units)
	}
	e.lock()
	if e.place == gone {
		e.unlock()
		if h.fleet {
			l.giveBackGone(h, units, &r)
		}
		return
	}
	e.advanceLocked(&r)
	if h.fleet {
		l.giveBackLocked(e, h.epoch, units, h.mono, &r, !s.closed.Load())
	} else {
		l.uncountLocked(e, h.epoch, units, h.mono, &r)
	}
	e.unlock()
	l.waits.wakeUp(e.key)
}

// uncountLocked takes back units that were counted for this node alone, after Close.
func (l *Limiter) uncountLocked(e *entry, epoch int64, units uint64, at int64, r *reading) {
	l.lowerLocked(e, units, at, r)
	if slot := e.slotLocked(epoch); slot != nil {
		slot.pending -= min(units, slot.pending-min(slot.unsent, slot.pending))
	}
}

// giveBackGone takes back units whose entry is gone: as many of them as it had delivered
// when it went. The rest was dropped. The key gets an entry if it has none, which goes as
// soon as the store has answered.
func (l *Limiter) giveBackGone(h *holding, units uint64, r *reading) {
	old := h.entry
	old.lock()
	owed := uint64(0)
	if slot := old.slotLocked(h.epoch); slot != nil {
		d := &old.debtsLocked(&l.constants, r)[h.epoch-old.epoch+1]
		owed = min(units, d.delivered)
		d.delivered -= owed
	}
	l.ledger.clamp(old, h.epoch, units-owed)
	old.unlock()
	if owed == 0 {
		return
	}
	s := l.table.shardOf(old.hash)
	s.mu.Lock()
	if s.closed.Load() || h.epoch < r.epoch-1 {
		s.mu.Unlock()
		l.ledger.clamp(old, h.epoch, owed)
		return
	}
	e := s.entries.find(old.hash, old.key)
	created := e == nil
	if created {
		e = s.createLocked(&check{name: old.key, hash: old.hash, at: *r})
		e.wantRead, e.usedAt = false, unused
		e.threshold, e.custom = old.threshold, old.custom
	} else {
		e.lock()
		e.advanceLocked(r)
	}
	l.oweLocked(e, h, owed, r)
	e.unlock()
	s.mu.Unlock()
	if created {
		l.table.makeRoom(old.hash, e, r)
	}
	l.waits.wakeUp(old.key)
}

// unused is when an entry was used last that no check asked for: it is idle from the start.
const unused = math.MinInt64 + 1
