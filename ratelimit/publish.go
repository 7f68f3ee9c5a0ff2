package ratelimit

// This file publishes what the limiter counted: at each tick, so that the hot path
// pays nothing for metrics but a plain addition under a lock that it holds anyway.

import (
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"github.com/hanzoai/limiters/internal/exposition"
	"github.com/hanzoai/limiters/internal/level"
)

// A publisher keeps house: one housekeeper at a time.
type publisher struct {
	mu sync.Mutex // taken before a partition's mu and the table's locks
}

// housekeep does what a tick does beside syncing: the scan, the table's bound, and the metrics.
func (l *Limiter) housekeep() {
	l.publisher.mu.Lock()
	defer l.publisher.mu.Unlock()
	r := l.read()
	l.scanStep(r)
	l.table.shrink(&r)
	l.publish(r)
}

// publish brings the metrics up to date.
func (l *Limiter) publish(r reading) {
	m := l.metrics
	settled := l.ledger.settledUnits() // before the counts, so that the difference is never negative
	c := l.table.counts()
	m.evalAllowed.Set(c.allowed)
	m.evalLimited.Set(c.limited)
	if l.dryRun {
		m.dryRunLimited.Set(c.limited)
	}
	m.cacheHit.Set(c.allowed + c.limited - c.misses)
	m.cacheMiss.Set(c.misses)
	m.cacheSize.Set(float64(l.table.live.Load()))
	for i, counter := range [evictCauses]*metrics.Counter{m.evictionSize, m.evictionExpired, m.evictionExplicit} {
		counter.Set(c.evicted[i])
	}
	counted := plus(c.units, l.ledger.discarded.load())
	m.undeliveredUnits.Set(float64(counted - min(counted, settled)))
	for i, counter := range [dropCauses]*metrics.Counter{
		m.droppedStale, m.droppedPoisoned, m.droppedOverflow, m.droppedClosed, m.droppedUnknown,
	} {
		counter.Set(l.ledger.dropped[i].load())
	}
	m.returnedTaken.Set(plus(l.ledger.vanished.load(), l.ledger.taken.load()))
	m.returnedClamped.Set(l.ledger.clamped.load())
	m.returnedUnknown.Set(l.ledger.doubtful.load())
	fleet := l.fleetStats()
	m.fleetAllowed.Set(fleet.Allowed)
	m.fleetLimited.Set(fleet.Limited)
	m.fleetLocal.Set(fleet.Local)
	m.fleetCanceled.Set(fleet.Canceled)
	m.waitingCalls.Set(float64(l.waits.resting.Load()))
	m.windowSeconds.Set(l.cfg.WindowInterval.Seconds())
	overrides := l.thresholds.current.Load()
	m.overridesLoaded.Set(float64(len(overrides.exact)))
	m.overridesChecksum.Set(float64(overrides.checksum))
	m.threshold.Set(float64(l.cfg.GlobalThreshold))
	m.buildInfo.Set(1)

	var queued, entered, deferred, mismatches, lost uint64
	var transitions [level.Tiers][level.Tiers]uint64
	for _, p := range l.partitions {
		queued += uint64(p.queue.len())
		entered += p.queue.entered.Load()
		h := p.snapshot()
		deferred += uint64(h.deferred)
		mismatches += h.mismatches
		lost += h.lost
		m.forgottenBatches[p.index].Set(h.forgotten)
		for from := range h.transitions {
			for to, n := range h.transitions[from] {
				transitions[from][to] += n
			}
		}
		m.recordsWrite[p.index].Set(h.writes)
		m.recordsRead[p.index].Set(h.reads)
		m.batchRetries[p.index].Set(h.retries)
		m.clockSkewMS[p.index].Set(float64(h.skew) / float64(time.Millisecond))
		up := 0.0
		if h.up {
			up = 1
		}
		m.partitionUp[p.index].Set(up)
	}
	m.cacheSyncQueued.Set(entered)
	m.pendingSyncSize.Set(float64(queued))
	m.deferredSize.Set(float64(deferred))
	m.windowMismatch.Set(mismatches)
	m.lostTotals.Set(lost)
	for from := range transitions {
		for to, n := range transitions[from] {
			if counter := m.tierTransitions[from][to]; counter != nil {
				counter.Set(n)
			}
		}
	}
}

// publishTiers publishes what a whole scan counted.
func (l *Limiter) publishTiers(counts [level.Tiers]int) {
	for tier, n := range counts {
		l.metrics.syncTier[tier].Set(float64(n))
	}
}

// snapshot returns the partition's health as it is now.
func (p *partition) snapshot() health {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.health
}

// WritePrometheus writes the limiter's metrics, as of the last tick, in the text
// format that Prometheus reads, with help and type. docs/metrics.md lists them. With
// [WithMetricsSet] it writes all of that set.
func (l *Limiter) WritePrometheus(w io.Writer) {
	exposition.Write(w, l.metrics.set)
}

// openMetrics registers a limiter's metrics: with the caller's set, or with one of
// its own, which package metrics then exposes with its others. unregister undoes it.
func openMetrics(set *metrics.Set, scope string, partitions []string, logger *slog.Logger) (m *limiterMetrics, unregister func(), err error) {
	if set != nil {
		if m, err = newMetrics(set, scope, partitions); err != nil {
			return nil, nil, err
		}
		return m, m.unregister, nil
	}
	set = metrics.NewSet()
	if m, err = newMetrics(set, scope, partitions); err != nil {
		return nil, nil, err
	}
	withdraw, first := exposition.Expose("limiter "+scope, set)
	if !first {
		logger.Warn("ratelimit: another limiter of this process has the same scope; "+
			"this one's metrics are exposed with those of package metrics once that one is closed", "scope", scope)
	}
	return m, func() {
		withdraw()
		m.unregister()
	}, nil
}
