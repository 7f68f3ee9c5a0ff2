// Package level computes what the level of an entity is: epochs, the weight of their
// counts, what has leaked, tiers, and the waits that follow from them.
//
// It is arithmetic on values. It holds no lock, reads no clock, does no I/O and
// allocates nothing; whoever calls it brings the counts and the reading. Times are in
// nanoseconds, counts in units.
package level

// This file holds the arithmetic of time.

import "math"

// EpochAt returns the epoch of a wall reading, floor(wall / window), and how far into
// that epoch the reading is, 0 ≤ into < window. Readings before 1970 have negative
// epochs.
func EpochAt(wall, window int64) (epoch, into int64) {
	epoch, into = wall/window, wall%window
	if into < 0 {
		epoch--
		into += window
	}
	return epoch, into
}

// Elapsed returns now − since, but never less than 0 and never an overflow.
func Elapsed(now, since int64) int64 {
	if now <= since {
		return 0
	}
	if d := now - since; d > 0 {
		return d
	}
	return math.MaxInt64
}

// Weight is what a unit of the previous epoch counts for, into nanoseconds after the
// current one began: 1 at its start and before it, falling evenly to 0 at its end.
func Weight(into, window int64) float64 {
	if into <= 0 {
		return 1
	}
	return 1 - float64(into)/float64(window)
}

// Float converts a count of at most 2^53 − 1, which is exact. As a signed one it takes
// an instruction, and as an unsigned one six and a branch.
func Float(units uint64) float64 { return float64(int64(units)) }
