package ratelimit

// This file holds the configuration in the form that the hot path and the tick
// compute with.

import (
	"time"

	"github.com/hanzoai/limiters/internal/level"
)

// constants are what decisions compute with. Durations are in nanoseconds.
type constants struct {
	window, sync, tick int64
	ttl, idle          int64 // of entries

	kind      windowKind
	inclusive bool
	byUnits   bool          // entities are synced between ticks by the units they hold
	bursts    bool          // are bounded
	sliding   level.Sliding // if kind is that
	burst     level.Burst   // if bursts are bounded
}

func constantsOf(cfg Config) constants {
	c := constants{
		window: int64(cfg.WindowInterval),
		sync:   int64(cfg.SyncInterval),
		tick:   int64(cfg.TickInterval),
		ttl:    int64(cfg.LocalCacheTTL),
		idle:   int64(cfg.LocalCacheIdleTimeout),

		kind: kindOf(cfg.Window), inclusive: cfg.Inclusive, byUnits: cfg.SyncByUnits, bursts: cfg.BurstInterval > 0,
		burst: level.Burst{Interval: int64(cfg.BurstInterval), Window: int64(cfg.WindowInterval)},
	}
	if c.kind == sliding {
		c.sliding = level.NewSliding(c.window, cfg.WindowSlices, cfg.WindowStrict)
	}
	return c
}

// Expiry in the store: margins on top of global_cache_ttl.
const (
	minExpiryMargin = 5 * time.Second // for clocks that differ
	minSequenceTTL  = time.Hour
)

// expiry returns how long a counter lives at least after the write that creates it:
// global_cache_ttl and a margin for clocks that differ and ticks that are late, in
// whole milliseconds; and the tenth of it over which expiries are spread, so that
// an epoch's counters do not end in one instant.
func expiry(cfg Config) (ttl, spread time.Duration) {
	ttl = (cfg.GlobalCacheTTL + expiryMargin(cfg)).Truncate(time.Millisecond)
	return ttl, ttl / 10
}

// expiryMargin is how much longer than it counts a counter lives.
func expiryMargin(cfg Config) time.Duration { return max(2*cfg.TickInterval, minExpiryMargin) }

// sequenceTTL is how long a limiter may be silent before its sequence key expires.
func sequenceTTL(cfg Config) time.Duration {
	ttl, _ := expiry(cfg)
	return max(4*ttl, minSequenceTTL)
}
