package ratelimit

// This file is what an entry learns from the totals in a reply.

import "github.com/hanzoai/limiters/internal/level"

// learnLocked makes what the entry knows of the fleet that of its totals, as of the time
// the answered attempt was sent. It requires the entry's lock.
func (p *partition) learnLocked(e *entry, it *item, grown *[2]growth, sent, now reading) {
	l := p.l
	own, whole := grown[0].own+grown[1].own, grown[0].whole+grown[1].whole
	if e.synced { // what was there before the first reply came at any time
		e.share = e.share.Learn(uint64(own), uint64(max(0, whole)))
	}
	first := !e.synced || !e.read
	last := e.syncedAt
	e.syncedAt = sent.mono
	switch {
	case l.kind == leaky:
		var m level.Leaky
		e.modelLocked(&m, &sent, l.window)
		e.slide.Aging = m.Weighed()
	case e.ringed:
		l.learnSlicesLocked(e, grown, first, last, &sent, &now)
	case l.kind == sliding && e.slide.End != 0 && e.slide.Aging == 0 && grown[1].known:
		// The first reply since this node's first unit: what is learned from now on came since.
		if began := sent.mono - sent.into + (e.epoch-sent.epoch)*l.window; e.slide.End >= began {
			e.slide.Aging = max(1, float64(e.slots[1].total))
		}
	}
	e.synced = true
	if l.kind == sliding {
		l.sliceLocked(e, &now)
	}
	if l.bursts {
		l.learnBurstLocked(e, whole-own, first, &now)
	}
	if !it.read {
		return
	}
	e.read, e.readAt, e.wantRead = true, sent.mono, false
	e.prevFinal = e.epoch == sent.epoch && sent.into >= 2*l.constants.tick
}

// learnSlicesLocked puts what the others counted since the reply before, which was sent at
// last, into the slices of the entry.
func (l *Limiter) learnSlicesLocked(e *entry, grown *[2]growth, first bool, last int64, sent, now *reading) {
	s, ring := &l.sliding, &e.extra.ring
	ring.Roll(s, &e.slide, now.mono)
	began := sent.mono - sent.into + (e.epoch-sent.epoch)*l.window // the current epoch, on the monotonic clock
	begin := level.Beginning{Mono: now.mono, EpochAt: began, Window: l.window, ReadAt: sent.mono}
	if !e.synced { // all that this node counted is in its slices
		for i, slot := range e.slots {
			begin.Others[i] = uint64(max(0, int64(slot.total)-grown[i].own))
		}
		ring.BeginOthers(s, &e.slide, &begin)
		return
	}
	lost := first || grown[0].lost || grown[1].lost
	for i, g := range grown {
		from := began + int64(i-1)*l.window
		to := min(from+l.window, sent.mono)
		if g.known && !lost {
			if i == 1 && g.whole < g.own {
				to = e.slide.End // all that is there
			}
			missing := ring.Others(s, &e.slide, min(max(from, last), to), to, g.whole-g.own)
			lost = missing > 0 && i == 1 // what is missing of the epoch before has left the window
		}
	}
	if !lost {
		return
	}
	begin.Others = [2]uint64{e.slots[0].total, e.slots[1].total}
	ring.Clear(s, &e.slide, now.mono)
	ring.BeginOthers(s, &e.slide, &begin)
	ring.Spread(s, &e.slide, now.mono, now.mono, e.slots[0].pending+e.slots[1].pending, true)
}

// learnBurstLocked fills the entry's bucket with what the others counted.
func (l *Limiter) learnBurstLocked(e *entry, others int64, first bool, now *reading) {
	reached := e.levelLocked(now, &l.constants)
	e.bucketLocked(&l.constants, now, reached)
	if first && others != 0 {
		e.extra.bucket.Learn(&l.burst, reached, e.threshold)
		return
	}
	e.extra.bucket.Others(float64(others))
}
