package ratelimit

// This file holds the configuration in the form that the hot path and the tick
// compute with.

import "time"

// constants are durations of the configuration, in nanoseconds.
type constants struct {
	window, sync, tick int64
	ttl, idle          int64 // of entries
}

func constantsOf(cfg Config) constants {
	return constants{
		window: int64(cfg.WindowInterval),
		sync:   int64(cfg.SyncInterval),
		tick:   int64(cfg.TickInterval),
		ttl:    int64(cfg.LocalCacheTTL),
		idle:   int64(cfg.LocalCacheIdleTimeout),
	}
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
	ttl = (cfg.GlobalCacheTTL + max(2*cfg.TickInterval, minExpiryMargin)).Truncate(time.Millisecond)
	return ttl, ttl / 10
}

// sequenceTTL is how long a limiter may be silent before its sequence key expires.
func sequenceTTL(cfg Config) time.Duration {
	ttl, _ := expiry(cfg)
	return max(4*ttl, minSequenceTTL)
}
