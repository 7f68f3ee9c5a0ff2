package ratelimit

// This file tells a program how its limiter fares.

import "time"

// Stats is a snapshot of a limiter. Its parts are read one after the other while
// work goes on; after Close they agree.
type Stats struct {
	Allowed, Limited uint64 // decisions; in a dry run what enforcement would have said

	// Counted − Returned.Taken = Delivered + Undelivered + all of Dropped, in units. Each
	// stops at 2^64 − 1.
	Counted     uint64   // recorded for the fleet
	Delivered   uint64   // acknowledged by a store, less what it took back
	Undelivered uint64   // unsent or in flight
	Dropped     Dropped  // given up
	Returned    Returned // given back

	Waiting    int              // calls of [Limiter.Wait] that wait
	Fleet      FleetStats       // calls that asked the fleet
	Entities   int              // in the local table
	Tiers      [4]int           // entities by [Tier], counted at the last scan
	LostTotals uint64           // totals that were below what this node had delivered: the store lost counts
	Overrides  int              // in force
	Queued     int              // entities that wait for a sync
	Deferred   int              // those of them that the last tick had to leave
	Partitions []PartitionStats // in the order in which New was given them
}

// Dropped counts units given up, by cause.
type Dropped struct {
	Stale    uint64 // of an epoch that no read can see any more
	Poisoned uint64 // for a counter in the store that holds no valid count
	Overflow uint64 // above 2^53 − 1, or of entries evicted beyond Config.ChannelCapacity
	Closed   uint64 // left when Close ended
	Unknown  uint64 // sent, and never known to be applied or not
}

// Total returns the sum over all causes.
func (d Dropped) Total() uint64 {
	return plus(plus(plus(d.Stale, d.Poisoned), plus(d.Overflow, d.Closed)), d.Unknown)
}

// Returned counts units given back, by what became of them.
type Returned struct {
	Taken   uint64 // no longer counted: never sent, or taken from the fleet's counter
	Clamped uint64 // the counter no longer held them: lost, dropped, or of an epoch that no read can see
	Unknown uint64 // asked of a store, and never known to be taken or not
	Waiting uint64 // wait for a store's answer
}

// PartitionStats is how one partition fares.
type PartitionStats struct {
	Name       string        // as metrics show it
	Up         bool          // false before the first answer, and after three failed attempts in a row over a second or more
	LastSync   time.Time     // of the last answer; zero if there was none
	Queued     int           // entities that wait for a sync
	InFlight   uint64        // units of the batch without an answer
	Asked      uint64        // units that calls ask for in it, which are not counted unless granted
	Scripts    uint64        // batches answered
	RoundTrips uint64        // attempts, answered or not
	Retries    uint64        // attempts at a batch that an earlier one may have applied
	Forgotten  uint64        // batches that met a store without what it had acknowledged before
	Writes     uint64        // counters written by answered batches
	Reads      uint64        // counters read by answered batches
	Failure    *Failure      // why attempts fail, and since when; nil if the last one was answered or there was none
	ClockSkew  time.Duration // how far the store's clock is ahead of this node's, at the last answer
}

// Stats returns a snapshot. It takes the locks of all shards, and of all entities
// checked since the last tick, one after the other.
func (l *Limiter) Stats() Stats {
	d := &l.ledger.dropped
	s := Stats{Dropped: Dropped{
		Stale: d[dropStale].load(), Poisoned: d[dropPoisoned].load(), Overflow: d[dropOverflow].load(),
		Closed: d[dropClosed].load(), Unknown: d[dropUnknown].load(),
	}}
	g := &l.ledger
	taken, vanished := g.taken.load(), g.vanished.load() // before what was delivered, so that the difference is never negative
	s.Returned = Returned{Taken: plus(taken, vanished), Clamped: g.clamped.load(), Unknown: g.doubtful.load()}
	settled := plus(s.Returned.Taken, plus(s.Returned.Clamped, s.Returned.Unknown))
	s.Returned.Waiting = max(settled, g.asked.load()) - settled
	s.Delivered = g.delivered.load() - taken
	c := l.table.counts() // after what became of the units, so that the rest is never negative
	s.Allowed, s.Limited, s.Counted = c.allowed, c.limited, plus(c.units, g.discarded.load())
	s.Undelivered = s.Counted - min(s.Counted, plus(plus(s.Delivered, s.Returned.Taken), s.Dropped.Total()))
	s.Waiting = int(l.waits.resting.Load())
	s.Fleet = l.fleetStats()
	s.Entities = int(l.table.live.Load())
	for i := range s.Tiers {
		s.Tiers[i] = int(l.metrics.syncTier[i].Get())
	}
	s.Overrides = len(l.thresholds.current.Load().exact)
	for _, p := range l.partitions {
		h := p.snapshot()
		ps := PartitionStats{
			Name: p.name, Up: h.up, Queued: p.queue.len(),
			Scripts: h.replies, RoundTrips: h.attempts, Retries: h.retries,
			Forgotten: h.forgotten, Writes: h.writes, Reads: h.reads, ClockSkew: h.skew,
		}
		ps.InFlight, ps.Asked = p.inFlight()
		ps.Failure = h.down.failure()
		if h.lastSync != 0 {
			ps.LastSync = time.Unix(0, h.lastSync).UTC()
		}
		s.Queued += ps.Queued
		s.Deferred += h.deferred
		s.LostTotals += h.lost
		s.Partitions = append(s.Partitions, ps)
	}
	return s
}

// inFlight returns how many units the batch without an answer carries, and how many it asks
// for.
func (p *partition) inFlight() (units, asked uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.carrying {
		return 0, 0
	}
	return p.batch.units(), p.batch.asked()
}
