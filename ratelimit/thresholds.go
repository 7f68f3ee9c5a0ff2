package ratelimit

// This file answers which threshold a key has: its exact override, else what the
// resolver says, else the global threshold.

import (
	"maps"
	"sync/atomic"
)

// A Resolver answers for keys without an exact override, for example by what
// stands before the first colon: a threshold in units per window, 0 to block the
// entity; ok is false for keys that it does not know. It is
// called on every check of such a key, from the goroutine that checks and outside
// all locks, so it should be quick, and must be safe for concurrent use.
type Resolver func(key string) (threshold uint64, ok bool)

// thresholds holds the overrides of the moment. It is safe for concurrent use.
type thresholds struct {
	global   uint64   // immutable
	resolver Resolver // immutable; may be nil
	current  atomic.Pointer[snapshot]
}

// A snapshot is one set of overrides. It is immutable.
type snapshot struct {
	generation uint32 // never 0
	exact      map[string]uint64
}

func newThresholds(global uint64, exact map[string]uint64, resolver Resolver) *thresholds {
	t := &thresholds{global: global, resolver: resolver}
	t.swap(exact)
	return t
}

// swap puts a copy of the overrides in place of those before.
func (t *thresholds) swap(exact map[string]uint64) {
	next := &snapshot{generation: 1, exact: maps.Clone(exact)}
	for {
		before := t.current.Load()
		if before != nil {
			if next.generation = before.generation + 1; next.generation == 0 {
				next.generation = 1
			}
		}
		if t.current.CompareAndSwap(before, next) {
			return
		}
	}
}

// lookup answers from the exact overrides and the global threshold alone.
func (t *thresholds) lookup(s *snapshot, key string) (threshold uint64, custom bool) {
	if threshold, custom = s.exact[key]; custom {
		return threshold, true
	}
	return t.global, false
}

// resolve answers from the exact overrides, the resolver and the global threshold.
// No lock may be held.
func (t *thresholds) resolve(s *snapshot, key string) (threshold uint64, custom bool) {
	threshold, custom = t.lookup(s, key)
	if custom || t.resolver == nil {
		return threshold, custom
	}
	if own, ok := t.resolver(key); ok {
		return own, true
	}
	return threshold, false
}
