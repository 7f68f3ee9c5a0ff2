package ratelimit

// This file walks the whole table now and then, off the hot path and in bounded
// slices: it evicts idle entries, queues entities that a full queue turned away,
// and counts tiers.

// scanSlice is how many entries a tick looks at before it leaves the rest to the
// next one, to the granularity of a shard.
const scanSlice = 20_000

// A scan is how far the walk has come. The housekeeper alone uses it.
type scan struct {
	ticks int // since the walk before began
	next  int // the shard to go on with; 0 = none under way
	tiers [tiers]int
}

// scanStep begins a walk every Config.TierScanIntervalTicks, goes on with one under
// way, and publishes the tiers' sizes at its end. It requires house.
func (l *Limiter) scanStep(r reading) {
	sc := &l.scan
	sc.ticks++
	if sc.next == 0 {
		if sc.ticks < l.cfg.TierScanIntervalTicks {
			return
		}
		sc.ticks, sc.tiers = 0, [tiers]int{}
	}
	for seen := 0; seen < scanSlice; {
		seen += l.table.shards[sc.next].scan(r, &sc.tiers)
		if sc.next++; sc.next == len(l.table.shards) {
			sc.next = 0
			l.publishTiers(sc.tiers)
			break
		}
	}
	l.table.trim(l.partitions)
}

// scan walks one shard and returns how many entries it met. It goes along the
// shard's lists rather than its index, for the sake of a stable order. Entries set
// aside are not met: a queue never turns them away.
func (s *shard) scan(r reading, counts *[tiers]int) (seen int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range s.lists {
		var next *entry
		for e := s.lists[p].front; e != nil; e = next {
			next = e.next
			seen++
			s.advanceLocked(e, &r)
			if elapsed(r.mono, e.usedAt) >= s.table.idle {
				s.evictLocked(e, evictExpired)
				continue
			}
			var m model
			e.modelLocked(&m, &r, s.table.window)
			level := m.level(e.threshold, 0)
			counts[tierOf(pressureOf(level, e.threshold))]++
			if e.unsentLocked() && !s.closed {
				s.queueLocked(e, e.rankLocked(level))
			}
		}
	}
	return seen
}
