package ratelimit

// This file walks the whole table now and then, off the hot path and in slices: it
// evicts idle entries and counts tiers.

import "github.com/hanzoai/limiters/internal/level"

// scanSlice is after how many entries a tick leaves the rest to the next one. It ends
// with a whole shard, which may be several times as many.
const scanSlice = 20_000

// A scan is how far the walk has come. The housekeeper alone uses it.
type scan struct {
	ticks int // since the walk before began
	next  int // the shard to go on with; 0 = none under way
	tiers [level.Tiers]int
}

// scanStep begins a walk every Config.TierScanIntervalTicks, goes on with one under
// way, and publishes the tiers' sizes at its end. It requires the publisher's mu.
func (l *Limiter) scanStep(r reading) {
	sc := &l.scan
	sc.ticks++
	if sc.next == 0 {
		if sc.ticks < l.cfg.TierScanIntervalTicks {
			return
		}
		sc.ticks, sc.tiers = 0, [level.Tiers]int{}
	}
	for seen := 0; seen < scanSlice; {
		seen += l.table.shards[sc.next].scan(r, &sc.tiers)
		if sc.next++; sc.next == len(l.table.shards) {
			sc.next = 0
			l.publishTiers(sc.tiers)
			break
		}
	}
}

// scan walks one shard and returns how many entries it met. It takes their locks one
// after the other, and that of the shard only to evict.
func (s *shard) scan(r reading, counts *[level.Tiers]int) (seen int) {
	for e := range s.entries.each() {
		seen++
		e.lock()
		idle := s.scanOneLocked(e, &r, counts)
		e.unlock()
		if idle {
			s.evictIdle(e, &r)
		}
	}
	return seen
}

// evictIdle evicts an entry that was found idle, unless it has been used since.
func (s *shard) evictIdle(e *entry, r *reading) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.lock()
	defer e.unlock()
	if e.inTableLocked() && e.idleLocked(r, s.table.idle) && !e.heldLocked() {
		s.evictLocked(e, e.idleCauseLocked())
	}
}

// scanOneLocked counts the entry's tier, or reports that it is idle and may go.
func (s *shard) scanOneLocked(e *entry, r *reading, counts *[level.Tiers]int) (idle bool) {
	if !e.inTableLocked() {
		return false
	}
	e.advanceLocked(r)
	if e.idleLocked(r, s.table.idle) && !e.heldLocked() {
		return true
	}
	reached := e.levelLocked(r, &s.table.constants)
	if e.ringed && e.slots == [2]slot{} && e.extra.ring.Empty(&e.slide) { // else its counts would weigh again
		e.unsliceLocked()
	}
	counts[level.TierOf(level.Pressure(reached, e.threshold))]++
	return false
}
