package tick

// This file is the steady load of a tick run: every entity is active in every
// tick, and a quarter of the entities is in each tier.

// threshold is every entity's, in units per window.
const threshold = 1_000_000

// pressures are where the entities of a run settle, one in each tier. With the
// units of one tick on top, a tenth of a window's at most, none is limited.
var pressures = [4]float64{0.02, 0.30, 0.65, 0.85}

// unitsOf returns what an entity counts between two ticks: its share of the
// threshold, and a tenth more or less, differently each time.
func unitsOf(entity, tick, ticksPerWindow int) uint64 {
	mean := pressures[entity%len(pressures)] * threshold / float64(ticksPerWindow)
	// A fraction of 2^64 that depends on both: a multiplicative hash.
	x := uint64(entity)*0x9e3779b97f4a7c15 ^ uint64(tick)*0xbf58476d1ce4e5b9
	x = (x ^ x>>31) * 0x94d049bb133111eb
	spread := float64(x>>11)/(1<<53)*0.2 - 0.1
	return max(1, uint64(mean*(1+spread)))
}
