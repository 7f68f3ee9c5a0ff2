package ratelimit

// This file holds the arithmetic of time: epochs, and the weight that a count
// has in the sliding window.

import "math"

// epochAt returns the epoch of a wall reading, floor(wall / window), and how far
// into that epoch the reading is, 0 ≤ into < window, all in nanoseconds. Readings
// before 1970 have negative epochs.
func epochAt(wall, window int64) (epoch, into int64) {
	epoch, into = wall/window, wall%window
	if into < 0 {
		epoch--
		into += window
	}
	return epoch, into
}

// elapsed returns now − since, but never less than 0 and never an overflow.
func elapsed(now, since int64) int64 {
	if now <= since {
		return 0
	}
	if d := now - since; d > 0 {
		return d
	}
	return math.MaxInt64
}

// float converts a count of at most store.MaxUnits, which is exact. As a signed one it
// takes an instruction, and as an unsigned one six and a branch.
func float(units uint64) float64 { return float64(int64(units)) }

// A model is all that a decision knows of one entity, as of one reading. It is a
// value: a [Decision] keeps one, to say later when the level will have fallen.
//
// Its counts belong to a reference epoch and to the one before. The reading is
// normally inside the reference epoch; after the wall clock stepped back across
// a boundary it is up to one window before it (into < 0), and is then treated
// as the start of the reference epoch.
type model struct {
	window   int64   // ns
	into     int64   // ns from the start of the reference epoch to the reading
	elapsed  int64   // ns from the last sync to the reading
	estimate float64 // fleet count at the last sync, in units; 0 if never synced

	fleetBefore, fleet float64 // the totals the estimate came from: previous epoch, reference epoch
	localBefore, local float64 // pending units: previous epoch, reference epoch

	others proportion // units of others for each pending unit here
}

// level is the entity's level after a wait of wait nanoseconds without further
// traffic: what the fleet's estimate has not leaked yet, bounded by what its
// totals still weigh, plus the weighted pending units, plus what the other nodes are
// taken to have counted meanwhile. It never grows with wait.
func (m *model) level(threshold uint64, wait int64) float64 {
	fleetBefore, fleet, localBefore, local := m.fleetBefore, m.fleet, m.localBefore, m.local
	into := m.into + wait
	if into >= m.window {
		into -= m.window
		fleetBefore, fleet, localBefore, local = fleet, 0, local, 0
		if into >= m.window {
			return 0
		}
	}
	weight := 1.0
	if into > 0 {
		weight = 1 - float64(into)/float64(m.window)
	}
	level := localBefore*weight + local
	if m.others > 0 {
		level += m.anticipated(threshold, level, wait)
	}
	if m.estimate > 0 {
		left := m.estimate - float64(threshold)*(float64(m.elapsed+wait)/float64(m.window))
		if bound := fleetBefore*weight + fleet; left > bound {
			left = bound
		}
		if left > 0 {
			level += left
		}
	}
	return level
}

// emptyAfter is the wait after which level is 0 whatever the counts.
func (m *model) emptyAfter() int64 { return 2*m.window - m.into }

// wait returns the smallest wait in nanoseconds after which ok holds, given that
// it holds at emptyAfter and, once true, stays true.
func (m *model) wait(ok func(wait int64) bool) int64 {
	low, high := int64(-1), m.emptyAfter() // !ok(low) && ok(high)
	for high-low > 1 {
		middle := low + (high-low)/2
		if ok(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}
