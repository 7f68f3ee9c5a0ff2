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
	jitterSteps     = 64              // how finely the tenth is divided that spreads expiries
	minSequenceTTL  = time.Hour
)

// expiryBase returns how long a counter lives at least after the write that
// creates it: global_cache_ttl and a margin for clocks that differ and ticks that
// are late, in whole milliseconds.
func expiryBase(cfg Config) time.Duration {
	ttl := cfg.GlobalCacheTTL + max(2*cfg.TickInterval, minExpiryMargin)
	return ttl.Truncate(time.Millisecond)
}

// expiryOf spreads the expiries of an epoch's counters over a tenth of their life,
// so that they do not end in one instant. The hash (FNV-1a) is not the ring's, so
// that each partition gets the whole spread.
func expiryOf(key string, base time.Duration) time.Duration {
	hash := uint32(2166136261)
	for i := range len(key) {
		hash = (hash ^ uint32(key[i])) * 16777619
	}
	hash ^= hash >> 15
	return base + (base/10/jitterSteps).Truncate(time.Millisecond)*time.Duration(hash%jitterSteps)
}

// sequenceTTL is how long a limiter may be silent before its sequence key expires.
func sequenceTTL(cfg Config) time.Duration {
	return max(4*expiryBase(cfg), minSequenceTTL)
}
