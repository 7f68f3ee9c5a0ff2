package accuracy

// This file lists what the accuracy run simulates: the traffic, and the fleet it
// meets.

import (
	"fmt"
	"time"

	"github.com/hanzoai/limiters/testing/ratelimittest"
)

// windowsPerRun is how many windows a run lasts; a mean is over the last eight.
const windowsPerRun = 10

// usualThreshold is that of all scenarios but those about thresholds, in units per
// window.
const usualThreshold = 6000

// requestsPerLimit is how many requests per window a load of 1 × is made of at
// least; above a million units a request asks for several.
const requestsPerLimit = 20_000

// A scenario is one line of the table. Immutable.
type scenario struct {
	name      string
	nodes     int
	threshold uint64
	window    time.Duration
	tick      time.Duration

	load   func(limit float64) ratelimittest.Load // of units per second that are exactly the limit
	factor float64                                // the load's highest, in limits
	steady bool                                   // the load is the same all the time
	skew   float64                                // share of the first node
	clocks time.Duration                          // nodes' walls differ from the store's by up to this, either way
	cutOff bool                                   // the first node is cut off from the third window on, for two
}

// scenarios returns all, in the order of the table.
func scenarios() []scenario {
	var all []scenario
	add := func(s scenario) { all = append(all, s) }
	for _, load := range []float64{0.5, 0.8, 0.95, 1.05, 1.5, 3, 10} {
		add(steady(load, 10))
	}
	for _, nodes := range []int{1, 50, 100} {
		add(steady(3, nodes))
	}
	add(steady(10, 100))
	for _, load := range []float64{3, 0.9} {
		s := steady(load, 10)
		s.name = fmt.Sprintf("skew %gx 10 nodes, 80%% on one", load)
		s.skew = 0.8
		add(s)
	}
	add(varying("step 0.3x to 5x 10 nodes", 5, func(limit float64, window time.Duration) ratelimittest.Load {
		return ratelimittest.Jump(0.3*limit, 5*limit, 2*window)
	}))
	for _, load := range []float64{3, 1.8} {
		add(varying(fmt.Sprintf("on/off 30s %gx 10 nodes", load), load, func(limit float64, window time.Duration) ratelimittest.Load {
			return ratelimittest.OnOff(load*limit, window/2, window/2)
		}))
	}
	add(varying("spikes 40s 5x over 0.5x 10 nodes", 5, func(limit float64, window time.Duration) ratelimittest.Load {
		return ratelimittest.Spikes(0.5*limit, 5*limit, 2*window, 2*window/3)
	}))

	clocks := steady(3, 10)
	clocks.name, clocks.clocks = "clocks 2s apart 3x 10 nodes", 2*time.Second
	add(clocks)
	cut := steady(3, 10)
	cut.name, cut.cutOff = "cut off 3x 1 of 10 nodes", true
	add(cut)
	for _, threshold := range []uint64{10, 1_000_000} {
		s := steady(3, 10)
		s.name, s.threshold = fmt.Sprintf("threshold %d 3x 10 nodes", threshold), threshold
		add(s)
	}
	short := steady(3, 10)
	short.name, short.window, short.tick = "window 1s tick 100ms 3x 10 nodes", time.Second, 100*time.Millisecond
	add(short)
	return all
}

// steady is a steady load at the usual threshold.
func steady(load float64, nodes int) scenario {
	plural := "s"
	if nodes == 1 {
		plural = ""
	}
	return scenario{
		name:  fmt.Sprintf("steady %gx %d node%s", load, nodes, plural),
		nodes: nodes, threshold: usualThreshold, window: time.Minute, tick: time.Second,
		load:   func(limit float64) ratelimittest.Load { return ratelimittest.Steady(load * limit) },
		factor: load, steady: true,
	}
}

// varying is a load that changes, on ten nodes at the usual threshold.
func varying(name string, highest float64, load func(limit float64, window time.Duration) ratelimittest.Load) scenario {
	s := steady(highest, 10)
	s.name, s.steady = name, false
	s.load = func(limit float64) ratelimittest.Load { return load(limit, s.window) }
	return s
}

// offered names what is offered in all, whichever nodes it reaches.
func (s *scenario) offered() string {
	if s.steady {
		return fmt.Sprint(s.factor, s.threshold, s.window, s.tick)
	}
	return s.name
}

// traffic is what the scenario offers.
func (s *scenario) traffic(seed uint64) ratelimittest.Traffic {
	return ratelimittest.Traffic{
		Load: s.load(float64(s.threshold) / s.window.Seconds()), Skew: s.skew,
		Units: max(1, s.threshold/requestsPerLimit), Step: s.window / 6000, Seed: seed,
	}
}
