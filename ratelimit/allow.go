package ratelimit

// This file decides for those who need no more than yes or no.

import "github.com/hanzoai/limiters/internal/level"

// Allow reports whether one unit of the entity may pass, and counts it if so: it answers
// and counts as Check(key, 1).Allowed() does, and costs about half of that while the entity
// is far from its threshold. It allocates nothing for a key that this node knows, and is
// safe for concurrent use, during and after Close too. (docs/design.md, allowances)
func (l *Limiter) Allow(key string) bool {
	if !l.grants {
		var d Decision
		l.check(&d, key, 1)
		return d.verdict != VerdictLimited || d.dryRun
	}
	var r reading
	coarse := false
	if l.system != nil {
		r.wall, r.mono, coarse = l.system.Glance()
	}
	if !coarse {
		r.wall, r.mono = l.clock.Now()
	}
	overrides := l.thresholds.current.Load()
	name := key
	if !standsForItself(key, l.maxKeyBytes) {
		name = digest(key)
	}
	hash := l.table.hash(name)
	s := l.table.shardOf(hash)
	e := s.entries.find(hash, name)
	if e != nil && overrides.keeps(r.wall, r.mono, l.jitter) && e.allowance.take(r.mono, overrides.generation) {
		return true
	}
	return l.allow(&check{at: r, overrides: overrides, key: key, name: name, hash: hash, shard: s}, e)
}

// allow is Allow where it has to decide. c lacks the request, and e may be nil.
func (l *Limiter) allow(c *check, e *entry) bool {
	r := &c.at
	if !c.overrides.keeps(r.wall, r.mono, l.jitter) {
		if l.system != nil { // its two readings may be of two moments
			r.wall, r.mono = l.system.Precise()
		}
		c.overrides = l.thresholds.steer(r.wall, r.mono, l.jitter)
	}
	if l.calendar == nil {
		r.epoch, r.into = level.EpochAt(r.wall, l.window)
	} else {
		r.epoch, r.into = l.epochAt(r.wall)
	}
	c.request = request{units: 1, epoch: r.epoch, grants: true}
	var d Decision
	if e == nil || !l.decideFound(&d, c.shard, e, &c.request, r, c.overrides, c.key, c.hash) {
		l.decideAnew(&d, c)
	}
	return d.verdict != VerdictLimited
}
