package accuracy

// This file holds the formulas of docs/accuracy.md: what bounds the worst window.

import "time"

// The factors of the formulas. A unit is hidden for longer than the time between two
// syncs on average: it waits for its own node's, and then for the other's.
const (
	plainFactor = 1.55 // of load × tick / window, by the plain tick
	unitsFactor = 1.6  // of load × delay / window, by units
	hiddenPart  = 1.0 / 32
)

// plainBound is what the plain tick may admit in the worst window, in thresholds.
func (s *scenario) plainBound(floor float64) float64 {
	b := floor + plainFactor*s.factor*s.ticks().Seconds()/s.window.Seconds() + float64(s.nodes)/float64(s.threshold)
	return b + s.cutOffPart(floor)
}

// unitsBound is what syncs by units may admit in the worst window, in thresholds.
func (s *scenario) unitsBound(floor float64) float64 {
	b := floor + unitsFactor*s.factor*s.delay().Seconds()/s.window.Seconds() + hiddenPart + 2*float64(s.nodes)/float64(s.threshold)
	return b + s.cutOffPart(floor)
}

// cutOffPart is what a node that is cut off may add.
func (s *scenario) cutOffPart(floor float64) float64 {
	if !s.cutOff {
		return 0
	}
	return min(s.factor/float64(s.nodes), 1) * floor
}

// timeToPart is how long a node takes to count its part of what the fleet may hide, where
// all nodes see the same share of the traffic.
func (s *scenario) timeToPart() time.Duration {
	threshold, share := float64(s.threshold), 1/float64(s.nodes)
	part := max(2, threshold/4096, min(threshold*share/32, threshold/64))
	if s.nodes == 1 {
		part = max(2, threshold/32)
	}
	return time.Duration(part / (s.factor * threshold * share) * float64(s.window))
}

// delay is for how long a unit is hidden from the fleet, by units.
func (s *scenario) delay() time.Duration {
	return min(s.ticks(), max(s.timeToPart(), s.ticks()/50)+s.trip)
}

// mean is about what is admitted on average at a steady load above the limit, in thresholds,
// if a unit is hidden from the other nodes for so long: half of what they see meanwhile.
func (s *scenario) mean(delay time.Duration) float64 {
	nodes := float64(s.nodes)
	return 1 + (1-1/nodes)*s.factor*delay.Seconds()/s.window.Seconds()/2 + nodes/float64(s.threshold)/2
}
