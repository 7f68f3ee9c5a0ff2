package level

// This file compares levels with thresholds.

// Fits reports whether an entity may be at a level, the request that is decided about
// included. The threshold itself is too much, so that one of T lets T − 1 single units
// into an empty window, unless it is inclusive. A threshold of 0 blocks everything. One
// above the largest count is no limit: counts end there, and levels tell nothing.
func Fits(level float64, threshold uint64, inclusive bool) bool {
	limit := float64(threshold)
	return level < limit || threshold > mostUnits || inclusive && level == limit && threshold > 0
}

// mostUnits is the largest count: store.MaxUnits.
const mostUnits = 1<<53 - 1

// Remaining is how far a level is below the threshold, in whole units rounded down,
// from 0 to the threshold. Levels are far below 2^63.
func Remaining(level float64, threshold uint64) uint64 {
	used := uint64(level)
	if float64(used) < level {
		used++
	}
	return threshold - min(used, threshold)
}

// Pressure is level / threshold. An entity whose threshold is 0 has none: all that it
// is asked is refused, and no reading of counters would change that.
func Pressure(level float64, threshold uint64) float64 {
	if threshold == 0 {
		return 0
	}
	return level / float64(threshold)
}
