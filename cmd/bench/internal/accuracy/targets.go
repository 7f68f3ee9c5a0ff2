package accuracy

// This file says what the rows have to be.

import "fmt"

// The targets. The floor is the one-node row of the same scenario.
const (
	tickFactor   = 1.55 // of load × tick / window: what the plain tick may add to the floor
	hotFactor    = 1.10 // of the floor: what the schedule hot may admit under a steady load
	lowestMean   = 0.97
	highestMean  = 1.08
	countedLimit = 1000 // the lowest threshold at which means and false limits are judged
)

// bound is how much the plain tick may admit in the worst window, in thresholds.
func (s *scenario) bound(floor float64) float64 {
	b := floor + tickFactor*s.factor*s.tick.Seconds()/s.window.Seconds() + float64(s.nodes)/float64(s.threshold)
	if s.cutOff {
		b += min(s.factor/float64(s.nodes), 1) * floor
	}
	return b
}

// meanCounts reports whether the scenario's mean is judged.
func (s *scenario) meanCounts() bool {
	return s.steady && s.factor >= 1.5 && s.factor <= 3 && s.threshold >= countedLimit && !s.cutOff && s.tick*60 <= s.window
}

// missed returns a line for each target that a row misses.
func missed(rows []row) (lines []string) {
	for i := range rows {
		r := &rows[i]
		if r.Schedule != ours && r.Schedule != hot {
			continue
		}
		floor := find(rows, r.spec, oneNode)
		miss := func(what string, got, want any) {
			lines = append(lines, fmt.Sprintf("%s, %s: %s %v, want %v", r.Scenario, r.Schedule, what, got, want))
		}
		if bound := r.spec.bound(floor.Worst); r.Schedule == ours && r.Worst > bound {
			miss("worst window", r.Worst, fmt.Sprintf("at most %.3f", bound))
		}
		if bound := hotFactor * floor.Worst; r.Schedule == hot && r.spec.steady && r.spec.threshold == usualThreshold && r.Worst > bound {
			miss("worst window", r.Worst, fmt.Sprintf("at most %.3f", bound))
		}
		if r.spec.meanCounts() && (r.Mean < lowestMean || r.Mean > highestMean) {
			miss("mean window", r.Mean, fmt.Sprintf("%v to %v", lowestMean, highestMean))
		}
		allowed := floor.FalseLimits
		if r.spec.steady && r.spec.factor <= 0.95 && r.spec.threshold >= countedLimit {
			allowed = 0
		}
		if r.FalseLimits > allowed {
			miss("false limits", r.FalseLimits, fmt.Sprintf("at most %d", allowed))
		}
	}
	return lines
}

// find returns the row of a scenario and a schedule.
func find(rows []row, spec *scenario, by schedule) *row {
	for i := range rows {
		if rows[i].spec == spec && rows[i].Schedule == by {
			return &rows[i]
		}
	}
	panic("accuracy: no row of " + spec.name + " by " + string(by))
}
