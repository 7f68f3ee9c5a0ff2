package ratelimit

// This file tells a program what its limiter is set to and which entities it holds
// are closest to their thresholds: what a status page shows.

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hanzoai/limiters/internal/level"
)

// Config returns the configuration that [New] was given, its derived fields filled
// in. CustomKeys is a copy of the overrides that New was given, whatever
// [Limiter.SetOverrides] changed since. Print it as text, or by [Config.Settings]:
// both mask what is secret.
func (l *Limiter) Config() Config {
	c := l.cfg
	c.CustomKeys = maps.Clone(c.CustomKeys)
	c.RedisURLs = slices.Clone(c.RedisURLs)
	return c
}

// Overrides returns a copy of the overrides in force.
func (l *Limiter) Overrides() map[string]uint64 {
	return maps.Clone(l.thresholds.current.Load().exact)
}

// An EntityStats is how one entity fares, as of one reading of the clock.
type EntityStats struct {
	Key       string        // the entity key; of a very long one its digest (Config.MaxKeyBytes)
	Level     float64       // units
	Threshold uint64        // units per window; at the last check
	Custom    bool          // Threshold is the key's own; at the last check
	Pressure  float64       // Level / Threshold; 0 if the threshold is 0
	Tier      Tier          // that of Pressure
	Basis     Basis         // BasisFleet or BasisLocal
	Synced    bool          // there was a sync
	SyncAge   time.Duration // since the last one
	Partition string        // its name
}

// TopByPressure returns the n entities of the highest pressure, the highest first,
// equals by key, and how many it looked at. Entities whose level is 0 are left
// out. n ≤ 0 is none.
//
// It walks the table, one entity's lock after the other, changes nothing, takes some
// tens of nanoseconds for each entity, and is meant for people who look, not for the
// path of a request.
func (l *Limiter) TopByPressure(n int) (top []EntityStats, seen int) {
	if n <= 0 {
		return nil, 0
	}
	r := l.read()
	least := 0.0 // pressure that can still get among the n
	for i := range l.table.shards {
		found, looked := l.table.shards[i].pressed(r, n, least)
		seen += looked
		if len(found) == 0 {
			continue
		}
		top = append(top, found...)
		slices.SortFunc(top, byPressure)
		if len(top) >= n {
			top = slices.Clip(top[:n])
			least = top[n-1].Pressure
		}
	}
	return top, seen
}

// Look returns how the entity named key fares, and whether this node knows it. Of one that
// it does not know, Threshold, Custom and Partition are what a check would find. It counts
// nothing and changes nothing; the resolver is asked.
func (l *Limiter) Look(key string) (st EntityStats, known bool) {
	r := l.read()
	name := l.KeyName(key)
	threshold, custom := l.thresholds.resolve(l.thresholds.current.Load(), key)
	hash := l.table.hash(name)
	if e := l.table.shardOf(hash).entries.find(hash, name); e != nil {
		e.lock()
		if known = e.inTableLocked() && !e.idleLocked(&r, l.idle); known {
			st = e.statsLocked(&r, e.levelLocked(&r, &l.constants), l.window)
		}
		e.unlock()
	}
	if !known {
		st = EntityStats{Key: name, Basis: BasisFirstContact, Partition: l.table.owner(name).name}
	}
	st.Threshold, st.Custom = threshold, custom
	st.Pressure = level.Pressure(st.Level, threshold)
	st.Tier = Tier(level.TierOf(st.Pressure))
	return st, known
}

// byPressure orders the highest pressure first, equals by key.
func byPressure(a, b EntityStats) int {
	return orderByPressure(a.Pressure, b.Pressure, a.Key, b.Key)
}

func orderByPressure(a, b float64, keyA, keyB string) int {
	if c := cmp.Compare(b, a); c != 0 {
		return c
	}
	return cmp.Compare(keyA, keyB)
}

// A candidate is an entry that may be among those of the highest pressure.
type candidate struct {
	entry             *entry
	reached, pressure float64
}

// pressed returns up to n of the shard's entities, those of the highest pressure, if
// it is least or above, and how many it looked at.
func (s *shard) pressed(r reading, n int, least float64) (found []EntityStats, seen int) {
	var candidates []candidate
	for e := range s.entries.each() {
		e.lock()
		if e.inTableLocked() {
			seen++
			reached := e.levelLocked(&r, &s.table.constants)
			if pressure := level.Pressure(reached, e.threshold); reached > 0 && pressure >= least {
				candidates = append(candidates, candidate{e, reached, pressure})
			}
		}
		e.unlock()
	}
	if len(candidates) > n {
		slices.SortFunc(candidates, func(a, b candidate) int {
			return orderByPressure(a.pressure, b.pressure, a.entry.key, b.entry.key)
		})
		candidates = candidates[:n]
	}
	for _, c := range candidates {
		c.entry.lock()
		if c.entry.inTableLocked() { // still; else its key may have another entry by now
			found = append(found, c.entry.statsLocked(&r, c.reached, s.table.window))
		}
		c.entry.unlock()
	}
	return found, seen
}

// statsLocked describes the entry at a level reached.
func (e *entry) statsLocked(r *reading, reached float64, window int64) EntityStats {
	st := EntityStats{
		Key: strings.Clone(e.key), Level: reached, Threshold: e.threshold, Custom: e.custom,
		Pressure: level.Pressure(reached, e.threshold), Basis: BasisLocal, Partition: e.partition.name,
	}
	st.Tier = Tier(level.TierOf(st.Pressure))
	if e.synced {
		age := level.Elapsed(r.mono, e.syncedAt)
		st.Synced, st.SyncAge = true, time.Duration(age)
		if age < 2*window {
			st.Basis = BasisFleet
		}
	}
	return st
}
