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
// that would bring the level to the threshold or above (Config.Inclusive: above it) is limited, and counted
// only with Config.CountLimited. Check does no I/O, allocates nothing for a key it
// knows (of up to Config.MaxKeyBytes), and is safe for concurrent use, during and
// after Close too.
func (l *Limiter) Check(key string, n uint64) (d Decision) {
	l.check(&d, key, n) // so that this is inlined, and the decision not copied
	return d
}

// Peek decides about a request of no units: it tells the entity's level and whether one
// unit would be limited now, and records nothing. A key that this node does not know is
// allowed (unless its threshold is 0); it becomes known at the next tick if the fleet
// counted it.
func (l *Limiter) Peek(key string) Decision {
	return l.Check(key, 0)
}

// CheckAt decides now, as [Limiter.Check] does, about units that occurred at t,
// and counts them in the epoch of t. Units of an epoch before the previous one are
// counted and at once dropped as stale; a t ahead of the clock counts as now.
func (l *Limiter) CheckAt(key string, n uint64, t time.Time) (d Decision) {
	r := l.read()
	l.decide(&d, key, &request{units: units(n), epoch: l.epochOf(t, &r), ago: ago(t, &r)}, &r)
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
	ago       int64  // how long ago the units came, in ns
	look      bool   // decide, and count nothing
	resolved  bool   // threshold and custom are known
	custom    bool
	threshold uint64
	grants    bool // an allowance may be granted: Allow asks
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
	if l.calendar == nil {
		r.epoch, r.into = level.EpochAt(r.wall, l.window)
	} else {
		r.epoch, r.into = l.epochAt(r.wall)
	}
	return r
}

// readNow is read, of the clock itself and not of a copy that is some milliseconds old.
func (l *Limiter) readNow() (r reading) {
	r.wall, r.mono = l.precise()
	if l.calendar == nil {
		r.epoch, r.into = level.EpochAt(r.wall, l.window)
	} else {
		r.epoch, r.into = l.epochAt(r.wall)
	}
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
	epoch, _ := l.epochAt(t.UnixNano())
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
		name = l.digest(key)
	}
	hash := l.table.hash(name)
	s := l.table.shardOf(hash)
	if e := s.entries.find(hash, name); e == nil || !l.decideFound(d, s, e, q, r, overrides, key, hash) {
		l.decideAnew(d, &check{*q, *r, overrides, key, name, hash, s})
	}
}

// decideFound is decide for an entity that the look-up found. It reports false, and does
// nothing, if it is evicted or idle by now.
func (l *Limiter) decideFound(d *Decision, s *shard, e *entry, q *request, r *reading, overrides *snapshot, key string, hash uint64) bool {
	e.lock()
	if !e.inTableLocked() || e.idleLocked(r, l.idle) {
		e.unlock()
		return false
	}
	e.advanceLocked(r)
	e.useLocked(r)
	l.setThresholdLocked(e, q, overrides, key)
	open := !s.closed.Load()
	wake := l.decideLocked(d, s, e, q, r, open)
	if q.grants && open {
		l.grantLocked(e, d, r, hash)
	}
	roundEnds := e.roundEndsLocked(hash)
	e.unlock()
	if wake {
		e.partition.wakeUp()
	}
	if roundEnds {
		l.renewClock()
	}
	return true
}

// renewClock reads the system's clock for all, in case every core is too busy to do
// that in time.
func (l *Limiter) renewClock() {
	if l.system != nil {
		l.system.Precise()
	}
}

// decideAnew is decide under the shard's lock: for a key that the look-up without it did
// not find, or found evicted or idle. It returns the entry, which it has let go of and is
// nil if the table holds none, and whether what it counted was for the fleet.
func (l *Limiter) decideAnew(d *Decision, c *check) (e *entry, open bool) {
	s := c.shard
	s.mu.Lock()
	open = !s.closed.Load()
	e = s.findLocked(&c.request, c.hash, c.name, &c.at)
	created, wake := false, false
	if e != nil {
		l.setThresholdLocked(e, &c.request, c.overrides, c.key)
		wake = l.decideLocked(d, s, e, &c.request, &c.at, open)
	} else {
		e = l.firstContactLocked(d, c, open)
		created = e != nil
	}
	if e != nil {
		e.unlock()
	}
	roundEnds := s.missesEndRoundLocked()
	s.mu.Unlock()

	if wake {
		e.partition.wakeUp()
	}
	if created {
		l.table.makeRoom(c.hash, e, &c.at)
	}
	if roundEnds {
		l.renewClock()
	}
	return e, open
}

// setThresholdLocked makes the entry's threshold that of the request, or else one that
// comes from these overrides. It requires the lock of e.
func (l *Limiter) setThresholdLocked(e *entry, q *request, overrides *snapshot, key string) {
	before := e.threshold
	switch {
	case q.resolved:
		e.threshold, e.custom = q.threshold, q.custom
		if e.allowance.generation.Load() != 0 {
			e.allowance.generation.Store(0)
		}
	case e.allowance.generation.Load() != overrides.generation:
		e.threshold, e.custom = l.thresholds.lookup(overrides, key)
		e.allowance.generation.Store(overrides.generation)
	}
	if e.threshold != before {
		e.rethresholdLocked(&l.constants, before)
	}
}

// decideLocked answers about an entity that the table holds, and counts for the fleet
// if open. It requires the lock of e; of the shard it needs none. It
// reports whether the entity's partition should be woken once all locks are free.
func (l *Limiter) decideLocked(d *Decision, s *shard, e *entry, q *request, r *reading, open bool) (wake bool) {
	d.dryRun, d.custom, d.threshold, d.units = l.dryRun, e.custom, e.threshold, q.units
	d.kind, d.inclusive = l.kind, l.inclusive
	m := &d.model
	e.timesLocked(m, r, l.window)
	e.countsLocked(m)
	var reached float64
	if l.kind == leaky {
		reached = m.Level(e.threshold, 0)
	} else {
		reached = e.reachedLocked(m, r, &l.constants)
	}
	units := level.Float(q.units)
	d.level = reached + units
	d.basis = BasisLocal
	if e.synced && m.Elapsed < 2*l.window {
		d.basis = BasisFleet
	}
	speaks := q.units > 0 && !q.look
	fits := l.fits(reached, max(units, 1), e.threshold)
	if !fits && r.into == 0 {
		fits = l.turnLocked(e, m, r, max(units, 1))
	}
	if l.bursts {
		d.burst = l.burst
		d.held = e.bucketLocked(&l.constants, r, reached)
		fits = fits && l.burst.Fits(d.held, max(units, 1), e.threshold)
	}
	if !fits {
		d.verdict = VerdictLimited
		speaks = speaks && l.countLimited
	}
	e.countLocked(s, d.verdict, q.units)
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
		if l.kind == sliding {
			e.slideLocked(&l.constants, q.units, q.ago, r.mono)
		} else if r.into == 0 {
			e.turnedLocked(&l.constants, r)
		}
		if l.bursts && q.epoch >= e.epoch-1 {
			e.extra.bucket.Fill(units)
			d.held += units
		}
	}
	asks := d.level
	if q.look {
		asks = reached
	}
	if e.wantRead || e.needsReadLocked(asks, r.mono, &l.constants) {
		e.wantRead, speaks, d.reads = true, true, open
	}
	if speaks && open {
		wake = e.queueUnitsLocked(&l.constants, e.rankLocked(d.level))
	}
	if l.kind != leaky {
		l.answerLocked(d, e, r, open)
	}
	if d.verdict == VerdictLimited || d.reads {
		d.tick = l.tick
	}
	return wake
}

// firstContactLocked answers about a key that the table does not hold. It adds an
// entry for it, which it returns locked, if there is something to count; for the fleet if
// open. It requires the shard's lock.
func (l *Limiter) firstContactLocked(d *Decision, c *check, open bool) *entry {
	if !c.resolved {
		c.threshold, c.custom = l.thresholds.lookup(c.overrides, c.key)
	}
	units := level.Float(c.units)
	d.dryRun, d.custom, d.threshold, d.units = l.dryRun, c.custom, c.threshold, c.units
	d.kind, d.inclusive = l.kind, l.inclusive
	d.basis, d.level = BasisFirstContact, units
	d.model = level.Leaky{Window: l.window, Into: c.at.into}
	if l.refusesUnknown(&c.request) {
		d.verdict = VerdictLimited
		c.shard.counts.limited++
		l.table.refusals.add(c.name, c.units)
	} else {
		c.shard.counts.allowed++
	}
	if c.units == 0 && !c.look && open && c.threshold > 0 {
		l.ask(c)
	}
	if c.look || c.units == 0 || d.verdict == VerdictLimited && !l.countLimited {
		return nil
	}
	e := c.shard.createLocked(c)
	e.threshold, e.custom = c.threshold, c.custom
	e.recordLocked(c.epoch, c.units, open)
	if l.kind == sliding {
		e.slideLocked(&l.constants, c.units, c.ago, c.at.mono)
	} else if c.at.into == 0 {
		e.turnedLocked(&l.constants, &c.at)
	}
	if l.bursts {
		d.burst, e.extra = l.burst, newBucketed(c.at.mono)
		if c.epoch >= e.epoch-1 {
			e.extra.bucket.Fill(units)
			d.held = units
		}
	}
	c.shard.takeLocked(e)
	d.model.LocalBefore, d.model.Local = float64(e.slots[0].pending), float64(e.slots[1].pending)
	if open {
		e.queueLocked(e.rankLocked(d.level))
	}
	if l.kind != leaky {
		l.answerLocked(d, e, &c.at, open)
	}
	return e
}

// refusesUnknown reports whether a first contact is limited.
func (l *Limiter) refusesUnknown(q *request) bool {
	if q.threshold == 0 {
		return true
	}
	return l.strict && !l.fits(0, max(1, level.Float(q.units)), q.threshold)
}

// ago is how long before a reading a time is, at most two epochs; 0 for times ahead.
func ago(t time.Time, r *reading) int64 {
	if since := time.Unix(0, r.wall).Sub(t); since > 0 {
		return int64(since)
	}
	return 0
}
