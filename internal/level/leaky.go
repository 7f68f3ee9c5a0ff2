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

// Wait returns the smallest wait after which ok holds, given that it holds at
// EmptyAfter and, once true, stays true.
func (m *Leaky) Wait(ok func(wait int64) bool) int64 {
	low, high := int64(-1), m.EmptyAfter() // !ok(low) && ok(high)
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
