package ratelimit

// This file counts what has happened already, and so cannot be refused.

import "github.com/hanzoai/limiters/internal/level"

// Record counts n units of the entity named key, whatever its level: what happened, such
// as a failed log-in or the bytes of an answer. It never refuses, not even at a threshold
// of 0, and is no decision: [Stats] counts its units alone. Checks that follow find them
// counted, on this node at once and elsewhere as those of [Limiter.Check]. A key that this
// node does not know becomes known. n = 0 does nothing; n is taken as at most 2^53 − 1.
//
// After Close the units count for this process alone. Record costs what a check costs, and
// is safe for concurrent use. (docs/design.md, conservation)
func (l *Limiter) Record(key string, n uint64) {
	if n == 0 {
		return
	}
	r := l.read()
	c := l.checkOf(key, n, &r)
	wake := false
	e := c.shard.entries.find(c.hash, c.name)
	if e != nil {
		e.lock()
		if e.inTableLocked() && !e.idleLocked(&r, l.idle) {
			e.advanceLocked(&r)
			e.useLocked(&r)
			wake = l.chargeLocked(e, &c, !c.shard.closed.Load())
			e.unlock()
		} else {
			e.unlock()
			e = nil
		}
	}
	if e == nil {
		e, wake = l.chargeAnew(&c)
	}
	if wake {
		e.partition.wakeUp()
	}
}

// checkOf returns a check about key at a reading. It asks the resolver.
func (l *Limiter) checkOf(key string, n uint64, r *reading) check {
	name := l.KeyName(key)
	hash := l.table.hash(name)
	c := check{
		request: request{units: units(n), epoch: r.epoch}, at: *r, overrides: l.thresholds.current.Load(),
		key: key, name: name, hash: hash, shard: l.table.shardOf(hash),
	}
	if l.thresholds.resolver != nil {
		c.threshold, c.custom = l.thresholds.resolve(c.overrides, key)
		c.resolved = true
	}
	return c
}

// chargeAnew is chargeLocked under the shard's lock, for a key that the look-up without it
// did not find. It adds an entry if there is none.
func (l *Limiter) chargeAnew(c *check) (e *entry, wake bool) {
	s := c.shard
	s.mu.Lock()
	e = s.usedLocked(&c.request, c.hash, c.name, &c.at)
	created := e == nil
	if created {
		e = s.createLocked(c)
	}
	wake = l.chargeLocked(e, c, !s.closed.Load())
	e.unlock()
	s.mu.Unlock()
	if created {
		l.table.makeRoom(c.hash, e, &c.at)
	}
	return e, wake
}

// chargeLocked counts the check's units, for the fleet if open, and queues the entity. It
// reports whether its partition should be woken once all locks are free.
func (l *Limiter) chargeLocked(e *entry, c *check, open bool) (wake bool) {
	l.setThresholdLocked(e, &c.request, c.overrides, c.key)
	e.recordLocked(c.epoch, c.units, open)
	if e.toldAt.Load() == 0 {
		e.tellLocked(c.shard)
	}
	if l.kind == sliding {
		e.slideLocked(&l.constants, c.units, 0, c.at.mono)
	} else if c.at.into == 0 {
		e.turnedLocked(&l.constants, &c.at)
	}
	reached := e.levelLocked(&c.at, &l.constants)
	if l.kind == sliding && !e.ringed {
		e.pressLocked(max(0, reached-level.Float(c.units)), reached)
	}
	if l.bursts {
		e.bucketLocked(&l.constants, &c.at, reached)
		e.extra.bucket.Fill(level.Float(c.units))
	}
	if !open {
		return false
	}
	e.wantRead = e.wantRead || e.needsReadLocked(reached, c.at.mono, &l.constants)
	return e.queueUnitsLocked(&l.constants, e.rankLocked(reached))
}
