package ratelimit

// This file tells a program what its limiter is set to and which entities it holds
// are closest to their thresholds: what a status page shows.

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// topSlice is how many entries of a shard [Limiter.TopByPressure] looks at, so that
// no check waits long for the shard's lock. A table has to exceed some two million
// entries for any to be left out.
const topSlice = 2048

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
// It walks the table, one shard's lock after the other, each for at most 2,048
// entries; of a table too large for that the answer is about a sample of
// each shard. It changes nothing, takes some tens of nanoseconds for each entity,
// and is meant for people who look, not for the path of a request.
func (l *Limiter) TopByPressure(n int) (top []EntityStats, seen int) {
	if n <= 0 {
		return nil, 0
	}
	r := l.read()
	for i := range l.table.shards {
		found, looked := l.table.shards[i].pressed(r, n)
		seen += looked
		if len(found) == 0 {
			continue
		}
		top = append(top, found...)
		slices.SortFunc(top, byPressure)
		top = slices.Clip(top[:min(n, len(top))])
	}
	return top, seen
}

// byPressure orders the highest pressure first.
func byPressure(a, b EntityStats) int {
	if c := cmp.Compare(b.Pressure, a.Pressure); c != 0 {
		return c
	}
	return cmp.Compare(a.Key, b.Key)
}

// pressed returns up to n of the shard's entities, those of the highest pressure,
// in no order, and how many it looked at. It looks at the shard's lists from the
// newest entry on, those that were found limited first.
func (s *shard) pressed(r reading, n int) (found []EntityStats, seen int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lowest := 0 // index of the entity in found that goes next
	for p := len(s.lists) - 1; p >= 0; p-- {
		for e := s.lists[p].back; e != nil && seen < topSlice; e = e.prev {
			seen++
			level := s.levelLocked(e, r)
			if !(level > 0) {
				continue
			}
			switch pressure := pressureOf(level, e.threshold); {
			case len(found) < n:
				found = append(found, s.statsLocked(e, r, level))
			case pressure > found[lowest].Pressure ||
				pressure == found[lowest].Pressure && e.key < found[lowest].Key:
				found[lowest] = s.statsLocked(e, r, level)
			default:
				continue
			}
			if len(found) == n {
				lowest = last(found)
			}
		}
	}
	return found, seen
}

// last returns the index of the one that comes last in the order of [byPressure].
func last(found []EntityStats) (index int) {
	for i := range found {
		if byPressure(found[i], found[index]) > 0 {
			index = i
		}
	}
	return index
}

// levelLocked is the entity's level at a reading. Other than a check, it leaves the
// entry in the epoch it is in.
func (s *shard) levelLocked(e *entry, r reading) float64 {
	var m model
	e.modelLocked(&m, &r, s.table.window)
	switch r.epoch - e.epoch {
	case 0, -1:
	case 1:
		m.into = r.into + s.table.window
	default:
		return 0
	}
	return m.level(e.threshold, 0)
}

// statsLocked describes the entry at a level.
func (s *shard) statsLocked(e *entry, r reading, level float64) EntityStats {
	st := EntityStats{
		Key: e.key, Level: level, Threshold: e.threshold, Custom: e.custom,
		Pressure: pressureOf(level, e.threshold), Basis: BasisLocal, Partition: e.partition.name,
	}
	st.Tier = tierOf(st.Pressure)
	if e.synced {
		age := elapsed(r.mono, e.syncedAt)
		st.Synced, st.SyncAge = true, time.Duration(age)
		if age < 2*s.table.window {
			st.Basis = BasisFleet
		}
	}
	return st
}
