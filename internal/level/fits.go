package level

// This file compares levels with thresholds.

// Fits reports whether an entity may be at a level, the request that is decided about
// included. The threshold itself is too much, so that a threshold of 0 blocks
// everything, and one of T lets T − 1 single units into an empty window. A threshold
// above the largest count is no limit: counts end there, and levels tell nothing.
func Fits(level float64, threshold uint64) bool {
	return level < float64(threshold) || threshold > mostUnits
}

// mostUnits is the largest count: store.MaxUnits.
const mostUnits = 1<<53 - 1

// Pressure is level / threshold. An entity whose threshold is 0 has none: all that it
// is asked is refused, and no reading of counters would change that.
func Pressure(level float64, threshold uint64) float64 {
	if threshold == 0 {
		return 0
	}
	return level / float64(threshold)
}
