package ratelimit

// This file is the decision that a reply makes about one call.

import (
	"github.com/hanzoai/limiters/internal/level"
	"github.com/hanzoai/limiters/ratelimit/store"
)

// answerLocked decides about a call whose caller waits, after those before it. The pair
// holds what had been counted then. It requires the lock of the entry.
func (p *partition) answerLocked(it *item, a *ask, c *fleetCall, now *reading, open bool) {
	l, e := p.l, it.entry
	verdict := VerdictLimited
	switch asked := max(1, c.units); {
	case c.granted:
		verdict = VerdictAllowed
		a.pair.Count = min(a.pair.Count+c.units, store.MaxUnits)
		c.held = holding{entry: e, epoch: it.epoch, mono: now.mono, units: c.units, fleet: true}
	case e.threshold > store.MaxUnits: // which limits nothing
		verdict = VerdictAllowed
		p.countAskedLocked(c, e, now, open)
	case c.units == 0 && plus(a.pair.Sum(0), asked) <= l.limitOf(e.threshold):
		verdict = VerdictAllowed
	case l.countLimited:
		p.countAskedLocked(c, e, now, open)
	}
	c.decision = l.fleetDecision(e, c, verdict, l.limitOf(e.threshold), &a.pair)
}

// countAskedLocked counts a call's units that the store did not, as a check does.
func (p *partition) countAskedLocked(c *fleetCall, e *entry, now *reading, open bool) {
	if c.units == 0 || !e.inTableLocked() {
		return
	}
	q := c.check
	q.at, q.epoch = *now, now.epoch
	p.l.chargeLocked(e, &q, open)
	c.held = holding{entry: e, epoch: now.epoch, mono: now.mono, units: c.units, fleet: open}
}

// fleetDecision is the decision of a verdict by the fleet's counters. The pair holds what is
// counted after it.
func (l *Limiter) fleetDecision(e *entry, c *fleetCall, v Verdict, limit uint64, pair *level.Pair) Decision {
	after := pair.Sum(0)
	d := Decision{
		verdict: v, basis: BasisFleet, dryRun: l.dryRun, custom: e.custom, kind: fixed, inclusive: l.inclusive,
		threshold: e.threshold, units: c.units, level: float64(after), after: float64(after), reset: pair.Wait(0),
	}
	if !c.granted {
		d.level += level.Float(c.units)
	}
	if v == VerdictLimited {
		d.tick = l.tick
		if asked := max(1, c.units); asked <= limit {
			d.wait = pair.Wait(limit - asked)
		}
	}
	return d
}
