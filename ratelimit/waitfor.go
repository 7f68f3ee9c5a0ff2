package ratelimit

// This file answers when a request that nobody has made yet would pass.

import "time"

// WaitFor returns the smallest wait after which n units of the entity named key would
// pass in one request: 0 if they would now, and [Never] if no wait helps. It is what
// [Decision.RetryAfter] of such a request would answer, on the same conditions, but
// counts neither units nor a decision. n = 0 is answered as 1 is. What a first contact
// passes beyond its threshold does not count here. It costs what a check costs, and is
// safe for concurrent use.
func (l *Limiter) WaitFor(key string, n uint64) time.Duration {
	r := l.read()
	q := request{units: max(n, 1)}
	overrides := l.thresholds.current.Load()
	if l.thresholds.resolver != nil {
		q.threshold, q.custom = l.thresholds.resolve(overrides, key)
		q.resolved = true
	}
	name := key
	if !standsForItself(key, l.maxKeyBytes) {
		name = l.digest(key)
	}
	hash := l.table.hash(name)
	s := l.table.shardOf(hash)
	d := l.lookFor(q.units)
	if e := s.entries.find(hash, name); e != nil {
		e.lock()
		if e.inTableLocked() && !e.idleLocked(&r, l.idle) {
			e.advanceLocked(&r)
			l.setThresholdLocked(e, &q, overrides, key)
			fits := l.lookLocked(&d, e, &r, !s.closed.Load())
			e.unlock()
			if fits {
				return 0
			}
			return d.RetryAfter()
		}
		e.unlock()
	}
	if !q.resolved {
		q.threshold, _ = l.thresholds.lookup(overrides, key)
	}
	if d.threshold = q.threshold; d.passesAlone() {
		return 0
	}
	return Never
}

// lookFor is a decision about units that do not pass, to be completed by lookLocked.
func (l *Limiter) lookFor(units uint64) Decision {
	return Decision{verdict: VerdictLimited, units: units, kind: l.kind, inclusive: l.inclusive, tick: l.tick}
}

// lookLocked reports whether the units that d asks for fit now. If not, d can answer when
// they will. It requires the lock of e.
func (l *Limiter) lookLocked(d *Decision, e *entry, r *reading, open bool) (fits bool) {
	d.threshold = e.threshold
	e.timesLocked(&d.model, r, l.window)
	e.countsLocked(&d.model)
	reached := 0.0
	if l.kind == leaky {
		reached = d.model.Level(e.threshold, 0)
	} else {
		reached = e.reachedLocked(&d.model, r, &l.constants)
	}
	fits = l.fits(reached, d.asked(), e.threshold) || r.into == 0 && l.turnLocked(e, &d.model, r, d.asked())
	if l.bursts {
		d.burst = l.burst
		d.held = e.bucketLocked(&l.constants, r, reached)
		fits = fits && l.burst.Fits(d.held, d.asked(), e.threshold)
	}
	if fits {
		return true
	}
	if l.kind != leaky {
		l.answerLocked(d, e, r, open)
	}
	return false
}
