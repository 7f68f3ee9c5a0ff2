package throughput

// This file relates the traffic to the tiers: which threshold makes the keys
// spread over the tiers as power-law traffic does, and how they did.

import (
	"time"

	"github.com/hanzoai/limiters/internal/level"
)

// mixShare of the keys are to reach mixPressure or more. Of a power law's keys
// the other nine tenths are idle, and how the tenth spreads is the law's affair.
const (
	mixShare    = 0.10
	mixPressure = 0.10
)

// weighingSpan is how much of a steady load, as a duration, weighs in the sliding
// window at end: the current epoch's part of it whole, the previous epoch's by
// what is left of the window.
func weighingSpan(start, end time.Time, window time.Duration) time.Duration {
	into := time.Duration(end.UnixNano() % int64(window))
	length := end.Sub(start)
	current := min(length, into)
	previous := min(length-current, window)
	return current + time.Duration(float64(previous)*(1-float64(into)/float64(window)))
}

// thresholdFor returns the threshold under which mixShare of the keys reach
// mixPressure when the window holds that many checks; at least 2, the smallest
// threshold that ever admits a unit.
func thresholdFor(p popularity, checks float64) uint64 {
	boundary := int(mixShare * float64(p.keys))
	return max(2, uint64(checks*p.share(boundary)/mixPressure))
}

// tierNames are the tiers in the order of ratelimit.Stats.Tiers.
var tierNames = [4]string{"idle", "low", "normal", "hot"}

// weightAt is what a unit of an epoch weighs in the sliding window at a time.
func weightAt(epoch int64, at time.Time, window time.Duration) float64 {
	now, into := at.UnixNano()/int64(window), at.UnixNano()%int64(window)
	switch epoch {
	case now:
		return 1
	case now - 1:
		return 1 - float64(into)/float64(window)
	default:
		return 0
	}
}

// tiersOf counts the keys by their pressure.
func tiersOf(levels []float64, threshold uint64) (tiers [4]int) {
	for _, reached := range levels {
		tiers[level.TierOf(level.Pressure(reached, threshold))]++
	}
	return tiers
}
