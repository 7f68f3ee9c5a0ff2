package ratelimit

// This file is the decision (docs/design.md, the decision): what Check does, from
// the key to the answer, without leaving this process.

import (
	"math"
	"time"

	"github.com/hanzoai/limiters/internal/level"
	"github.com/hanzoai/limiters/ratelimit/store"
)

// Check decides whether n units of the entity named key may pass now, and counts
// them if so. With n = 0 it only looks, as [Limiter.Peek] does. Any key is a key,
// the empty one included; n is taken as at most 2^53 − 1.
//
// The first request for a key that this node does not know is allowed, whatever n
// is, unless the threshold is 0 or Config.StrictFirstContact is set. A request
// that would bring the level to the threshold or above is limited, and counted
// only with Config.CountLimited. Check does no I/O, allocates nothing for a key it
// knows (of up to Config.MaxKeyBytes), and is safe for concurrent use, during and
// after Close too.
func (l *Limiter) Check(key string, n uint64) (d Decision) {
	l.check(&d, key, n) // so that this is inlined, and the decision not copied
	return d
}

// Allow reports whether one unit of the entity may pass: Check(key, 1).Allowed().
func (l *Limiter) Allow(key string) bool {
	var d Decision
	l.check(&d, key, 1)
	return d.verdict != VerdictLimited || d.dryRun
}

// Peek decides about a request of no units: it tells the entity's level and
// whether it is limited now, and records nothing. A key that this node does not
// know is allowed (unless its threshold is 0) and stays unknown.
func (l *Limiter) Peek(key string) Decision {
	return l.Check(key, 0)
}

// CheckAt decides now, as [Limiter.Check] does, about units that occurred at t,
// and counts them in the epoch of t. Units of an epoch before the previous one are
// counted and at once dropped as stale; a t ahead of the clock counts as now.
func (l *Limiter) CheckAt(key string, n uint64, t time.Time) (d Decision) {
	r := l.read()
	l.decide(&d, key, &request{units: units(n), epoch: l.epochOf(t, &r)}, &r)
	return d
}

// CheckCustom is [Limiter.Check] for keys that have a threshold of their own, from
// an override or the resolver. For any other key it answers not applicable, and
// leaves no trace.
func (l *Limiter) CheckCustom(key string, n uint64) (d Decision) {
	threshold, custom := l.thresholds.resolve(l.thresholds.current.Load(), key)
	if !custom {
		return Decision{verdict: VerdictNotApplicable, dryRun: l.dryRun, threshold: threshold, units: units(n)}
	}
	r := l.read()
	l.decide(&d, key, &request{units: units(n), epoch: r.epoch, resolved: true, threshold: threshold, custom: true}, &r)
	return d
}

// IsCustomKey reports whether the key has a threshold of its own, from an override
// or the resolver.
func (l *Limiter) IsCustomKey(key string) bool {
	_, custom := l.thresholds.resolve(l.thresholds.current.Load(), key)
	return custom
}

// check puts the decision into d, which is zero.
func (l *Limiter) check(d *Decision, key string, n uint64) {
	r := l.read()
	l.decide(d, key, &request{units: units(n), epoch: r.epoch}, &r)
}

// A request is what a check is asked.
type request struct {
	units     uint64 // at most store.MaxUnits
	epoch     int64  // to count in
	resolved  bool   // threshold and custom are known
	custom    bool
	threshold uint64
}

// units is what n counts as. It is asked once, at the door: behind it sums of a few
// counts are exact, in integers and in floats.
func units(n uint64) uint64 { return min(n, store.MaxUnits) }

// A check is a request about an entity, and where the table keeps that.
type check struct {
	request
	at        reading   // the one reading of the clock
	overrides *snapshot // of the moment; a threshold that is not resolved comes from them
	key       string    // the entity key
	name      string    // its representation
	hash      uint64    // of name
	shard     *shard    // of hash
}

// read makes the one reading of the clock that a decision needs.
func (l *Limiter) read() reading {
	var r reading
	coarse := false
	if l.system != nil {
		r.wall, r.mono, coarse = l.system.Glance()
	}
	if !coarse {
		r.wall, r.mono = l.clock.Now()
	}
	r.epoch, r.into = level.EpochAt(r.wall, l.window)
	return r
}

// epochOf returns the epoch to count in for a time: that of the reading for times
// ahead of it, and some epoch no entry holds for times that int64 cannot.
func (l *Limiter) epochOf(t time.Time, r *reading) int64 {
	if !t.Before(time.Unix(0, r.wall)) {
		return r.epoch
	}
	if t.Before(time.Unix(0, math.MinInt64)) {
		return math.MinInt64
	}
	epoch, _ := level.EpochAt(t.UnixNano(), l.window)
	return epoch
}

// decide answers q about key into d, which is zero. It counts what it allows and queues
// the entity if there is something to say or to ask. For an entity in the table it takes
// that one's lock, and inside it now and then the told set's or the queue's.
func (l *Limiter) decide(d *Decision, key string, q *request, r *reading) {
	overrides := l.thresholds.current.Load()
	if !q.resolved && l.thresholds.resolver != nil {
		q.threshold, q.custom = l.thresholds.resolve(overrides, key)
		q.resolved = true
	}
	name := key
	if !standsForItself(key, l.maxKeyBytes) {
		name = digest(key)
	}
	hash := l.table.hash(name)
	s := l.table.shardOf(hash)
	e := s.entries.find(hash, name)
	if e == nil {
		l.decideAnew(d, &check{*q, *r, overrides, key, name, hash, s})
		return
	}
	e.mu.Lock()
	if !e.inTableLocked() || e.idleLocked(r, l.idle) {
		e.mu.Unlock()
		l.decideAnew(d, &check{*q, *r, overrides, key, name, hash, s})
		return
	}
	e.advanceLocked(r)
	e.useLocked(r)
	l.setThresholdLocked(e, q, overrides, key)
	l.decideLocked(d, s, e, q, r, !s.closed.Load())
	roundEnds := e.roundEndsLocked(hash)
	e.mu.Unlock()
	if roundEnds {
		l.renewClock()
	}
}

// renewClock reads the system's clock for all, in case every core is too busy to do
// that in time.
func (l *Limiter) renewClock() {
	if l.system != nil {
		l.system.Precise()
	}
}

// decideAnew is decide under the shard's lock: for a key that the look-up without it did
// not find, or found evicted or idle.
func (l *Limiter) decideAnew(d *Decision, c *check) {
	s := c.shard
	s.mu.Lock()
	open := !s.closed.Load()
	e := s.findLocked(c.hash, c.name, &c.at)
	created := false
	if e != nil {
		l.setThresholdLocked(e, &c.request, c.overrides, c.key)
		l.decideLocked(d, s, e, &c.request, &c.at, open)
	} else {
		e = l.firstContactLocked(d, c, open)
		created = e != nil
	}
	if e != nil {
		e.mu.Unlock()
	}
	roundEnds := s.missesEndRoundLocked()
	s.mu.Unlock()

	if created {
		l.table.makeRoom(c.hash, e, &c.at)
	}
	if roundEnds {
		l.renewClock()
	}
}

// setThresholdLocked makes the entry's threshold that of the request, or else one that
// comes from these overrides. It requires the lock of e.
func (l *Limiter) setThresholdLocked(e *entry, q *request, overrides *snapshot, key string) {
	switch {
	case q.resolved:
		e.threshold, e.custom, e.generation = q.threshold, q.custom, 0
	case e.generation != overrides.generation:
		e.threshold, e.custom = l.thresholds.lookup(overrides, key)
		e.generation = overrides.generation
	}
}

// decideLocked answers about an entity that the table holds, and counts for the fleet
// if open. It requires the lock of e; of the shard it needs none.
func (l *Limiter) decideLocked(d *Decision, s *shard, e *entry, q *request, r *reading, open bool) {
	d.dryRun, d.custom, d.threshold, d.units = l.dryRun, e.custom, e.threshold, q.units
	m := &d.model
	e.timesLocked(m, r, l.window)
	e.countsLocked(m)
	d.level = m.Level(e.threshold, 0) + level.Float(q.units)
	d.basis = BasisLocal
	if e.synced && m.Elapsed < 2*l.window {
		d.basis = BasisFleet
	}
	speaks := q.units > 0
	if !level.Fits(d.level, e.threshold) {
		d.verdict = VerdictLimited
		speaks = speaks && l.countLimited
	}
	e.countLocked(s, d.verdict)
	if speaks {
		if slot := &e.slots[1]; q.epoch == e.epoch && open && q.units <= store.MaxUnits-slot.pending {
			slot.pending += q.units // as recordLocked does, in nearly every case; unsent is within pending
			slot.unsent += q.units
			e.units += q.units
			m.Local = level.Float(slot.pending)
		} else {
			e.recordLocked(q.epoch, q.units, open)
			e.countsLocked(m)
		}
	}
	if e.wantRead || e.needsReadLocked(d.level, r.mono, &l.constants) {
		e.wantRead, speaks = true, true
	}
	if speaks && open {
		if rank := e.rankLocked(d.level); !e.queued || rank > e.rank {
			e.queueLocked(rank)
		}
	}
}

// firstContactLocked answers about a key that the table does not hold. It adds an
// entry for it, which it returns locked, if there is something to count; for the
// fleet if open. It requires the shard's lock.
func (l *Limiter) firstContactLocked(d *Decision, c *check, open bool) *entry {
	if !c.resolved {
		c.threshold, c.custom = l.thresholds.lookup(c.overrides, c.key)
	}
	d.dryRun, d.custom, d.threshold, d.units = l.dryRun, c.custom, c.threshold, c.units
	d.basis = BasisFirstContact
	d.level = level.Float(c.units)
	d.model = level.Leaky{Window: l.window, Into: c.at.into}
	if c.threshold == 0 || l.strict && !level.Fits(d.level, c.threshold) {
		d.verdict = VerdictLimited
		c.shard.counts.limited++
	} else {
		c.shard.counts.allowed++
	}
	if c.units == 0 || d.verdict == VerdictLimited && !l.countLimited {
		return nil
	}
	e := c.shard.createLocked(c)
	e.threshold, e.custom = c.threshold, c.custom
	e.recordLocked(c.epoch, c.units, open)
	c.shard.takeLocked(e)
	d.model.LocalBefore, d.model.Local = float64(e.slots[0].pending), float64(e.slots[1].pending)
	if open {
		e.queueLocked(e.rankLocked(d.level))
	}
	return e
}
