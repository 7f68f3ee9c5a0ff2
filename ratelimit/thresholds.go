package ratelimit

// This file answers which threshold a key has: its exact override, else what the
// resolver says, else the global threshold.

import (
	"encoding/binary"
	"maps"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"
)

// A Resolver answers for keys without an exact override, for example by what
// stands before the first colon: a threshold in units per window, 0 to block the
// entity; ok is false for keys that it does not know. It is
// called on every check of such a key, from the goroutine that checks and outside
// all locks, so it should be quick, and must be safe for concurrent use.
type Resolver func(key string) (threshold uint64, ok bool)

// An OverridesResolver is a [Resolver] that may ask for the overrides in force:
// override answers the exact override of any key, from the same set of overrides as
// the decision. A policy by a part of the key (team_42:GET by that of team_42, say)
// so needs no copy of them. override must not be kept after the call.
type OverridesResolver func(key string, override func(key string) (threshold uint64, ok bool)) (threshold uint64, ok bool)

// thresholds holds the overrides of the moment. It is safe for concurrent use.
type thresholds struct {
	global   uint64            // immutable
	resolver OverridesResolver // immutable; may be nil
	current  atomic.Pointer[snapshot]
}

// A snapshot is one set of overrides. It is immutable.
type snapshot struct {
	generation uint32 // never 0
	exact      map[string]uint64
	override   func(key string) (threshold uint64, ok bool) // looks up in exact, for a resolver
	checksum   uint64                                       // of exact; at most 2^53 − 1, 0 if it is empty

	course int64 // see course.go
}

func newThresholds(global uint64, exact map[string]uint64, resolver OverridesResolver) *thresholds {
	t := &thresholds{global: global, resolver: resolver}
	t.swap(exact)
	return t
}

// swap puts a copy of the overrides in place of those before.
func (t *thresholds) swap(exact map[string]uint64) {
	next := &snapshot{generation: 1, exact: maps.Clone(exact), checksum: checksum(exact)}
	next.override = func(key string) (threshold uint64, ok bool) {
		threshold, ok = next.exact[key]
		return threshold, ok
	}
	for {
		before := t.current.Load()
		if before != nil {
			next.generation, next.course = before.following(), before.course
		}
		if t.current.CompareAndSwap(before, next) {
			return
		}
	}
}

// checksum is a number that sets of overrides share only if they are equal, but for one
// chance in 2^53: a float64 holds it exactly. Every process computes the same.
func checksum(exact map[string]uint64) (sum uint64) {
	var limit [8]byte
	for key, threshold := range exact {
		d := xxhash.NewWithSeed(uint64(len(key)))
		_, _ = d.WriteString(key)
		binary.LittleEndian.PutUint64(limit[:], threshold)
		_, _ = d.Write(limit[:])
		sum += d.Sum64()
	}
	return sum & (1<<53 - 1)
}

// following is the generation after the snapshot's.
func (s *snapshot) following() uint32 { return max(1, s.generation+1) }

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
	if own, ok := t.resolver(key, s.override); ok {
		return own, true
	}
	return threshold, false
}
