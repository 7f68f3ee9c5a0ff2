package level

// This file is the leaky window: the fleet's count as of the last sync, leaking, plus
// what this node counted since (SEED: leaky bucket local decay).

// A Leaky is all that a decision knows of one entity, as of one reading.
//
// Its counts belong to a reference epoch and to the one before. The reading is
// normally inside the reference epoch; after the wall clock stepped back across a
// boundary it is up to one window before it (Into < 0), and then counts as the start of
// the reference epoch.
type Leaky struct {
	Window   int64   // > 0
	Into     int64   // from the start of the reference epoch to the reading; −Window < Into < Window
	Elapsed  int64   // from the last sync to the reading
	Estimate float64 // fleet count at the last sync; 0 if there was none

	FleetBefore, Fleet float64 // the totals that the estimate came from: previous epoch, reference epoch
	LocalBefore, Local float64 // pending units: previous epoch, reference epoch
}

// Level is the level after a wait without further traffic: what the estimate has not
// leaked yet, bounded by what its totals still weigh, plus the weighted pending units.
// It is finite, never negative, and never grows with wait.
func (m *Leaky) Level(threshold uint64, wait int64) float64 {
	fleetBefore, fleet, localBefore, local := m.FleetBefore, m.Fleet, m.LocalBefore, m.Local
	into := m.Into + wait
	if into >= m.Window {
		into -= m.Window
		fleetBefore, fleet, localBefore, local = fleet, 0, local, 0
		if into >= m.Window {
			return 0
		}
	}
	weight := Weight(into, m.Window)
	level := localBefore*weight + local
	if m.Estimate > 0 {
		left := m.Estimate - float64(threshold)*(float64(m.Elapsed+wait)/float64(m.Window))
		if bound := fleetBefore*weight + fleet; left > bound {
			left = bound
		}
		if left > 0 {
			level += left
		}
	}
	return level
}

// Weighed is the fleet's count that the totals give at the reading: the estimate of a
// sync at that time.
func (m *Leaky) Weighed() float64 { return m.FleetBefore*Weight(m.Into, m.Window) + m.Fleet }

// EmptyAfter is the wait after which the level is 0 whatever the counts.
func (m *Leaky) EmptyAfter() int64 { return 2*m.Window - m.Into }

// Reset is the least wait after which the level is 0 without further traffic, and if the
// counters may be read, whether that happens by the next tick or not.
func (m *Leaky) Reset(threshold uint64, reads bool, tick int64) int64 {
	empty := m.EmptyAfter()
	if m.Local > 0 {
		return empty // it weighs until then
	}
	return LeastWait(empty, func(wait int64) bool {
		return m.Level(threshold, wait) <= 0 && (!reads || m.Highest(threshold, tick, wait) <= 0)
	})
}

// Highest is the highest level that the entity may have after a wait without further
// traffic, whether its counters are read meanwhile or not: a read replaces the leaking
// estimate by what the totals weigh at that moment, and may come at any time until
// tick has passed. It is finite, never negative, and never grows with wait.
func (m *Leaky) Highest(threshold uint64, tick, wait int64) float64 {
	highest := max(m.Level(threshold, wait), m.afterRead(threshold, 0, wait))
	// A read in between brings no more: as long as what it would bring rises, later is higher, and
	// once that falls faster than it leaks, all that it brings is what the totals weigh by then.
	return max(highest, m.afterRead(threshold, min(tick, wait), wait))
}

// slack is added to what falls in time, as a part of it: a level that is computed from
// another reading may differ in its last digits.
const slack = 1e-14

// afterRead is the level after a wait if the counters are read after the wait read, by
// which all pending units are part of them.
func (m *Leaky) afterRead(threshold uint64, read, wait int64) float64 {
	level := m.allWeighed(wait)
	if read == wait {
		return level
	}
	estimate := m.allWeighed(read)
	left := estimate - float64(threshold)*(float64(wait-read)/float64(m.Window))
	if left += estimate * slack; left < level {
		return max(0, left)
	}
	return level
}

// allWeighed is what all units weigh after a wait, as totals.
func (m *Leaky) allWeighed(wait int64) float64 {
	before, current := m.FleetBefore+m.LocalBefore, m.Fleet+m.Local
	into := m.Into + wait
	if into >= m.Window {
		into -= m.Window
		before, current = current, 0
		if into >= m.Window {
			return 0
		}
	}
	weight := Weight(into, m.Window)
	return before*min(1, weight+slack) + current
}
