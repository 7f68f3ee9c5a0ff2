package accuracy

// This file says what a scenario is made of.

import (
	"fmt"
	"time"

	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/testing/ratelimittest"
)

// phases is over how many phases of the window a run is repeated, unless the scenario
// says.
const phases = 5

// windowsPerRun is how many windows a run lasts, unless the scenario says; a mean is over
// all but the first two.
const windowsPerRun = 10

// usualThreshold is that of all scenarios but those about thresholds, in units per
// window.
const usualThreshold = 6000

// requestsPerLimit is how many requests per window a load of 1 × is made of at
// least; above a million units a request asks for several.
const requestsPerLimit = 20_000

// stepsPerWindow is how finely traffic is divided, unless the scenario says.
const stepsPerWindow = 6000

// A scenario is one line of the table. Immutable.
type scenario struct {
	name      string
	by        []schedule // in the order of the table
	nodes     int
	threshold uint64
	window    time.Duration
	tick      time.Duration // 0: what follows from the window
	windows   int           // 0: windowsPerRun
	phases    int           // 0: phases
	steps     int           // per window; 0: stepsPerWindow

	load      func(limit float64) ratelimittest.Load // of units per second that are exactly the limit of all keys
	factor    float64                                // the load's highest, in limits
	steady    bool                                   // the load is the same all the time
	offers    string                                 // names what is offered in all, whichever nodes it reaches
	skew      float64                                // share of the first node
	route     ratelimittest.Route                    // nil: any node
	keys      []string                               // nil: one
	overrides ratelimit.Overrides                    // thresholds of single keys
	polite    *ratelimittest.Clients                 // instead of the load: clients that obey
	spike     float64                                // thresholds in each burst; 0: no burst
	inclusive bool                                   // the threshold itself passes

	clocks time.Duration // nodes' walls differ from the store's by up to this, either way
	cutOff bool          // the first node is cut off from the third window on, for two
	trip   time.Duration // round trip to the store

	kind  ratelimit.WindowKind // of the schedule custom
	burst time.Duration        // of the schedule custom
}

// runs is over how many phases the scenario is run.
func (s *scenario) runs() int {
	if s.phases > 0 {
		return s.phases
	}
	return phases
}

// lasts is how long a run takes.
func (s *scenario) lasts() time.Duration {
	if s.windows > 0 {
		return time.Duration(s.windows) * s.window
	}
	return windowsPerRun * s.window
}

// names are the keys.
func (s *scenario) names() []string {
	if len(s.keys) > 0 {
		return s.keys
	}
	return []string{"key"}
}

// thresholdOf is a key's threshold.
func (s *scenario) thresholdOf(key string) float64 {
	if own, ok := s.overrides[key]; ok {
		return float64(own)
	}
	return float64(s.threshold)
}

// steady is a steady load at the usual threshold.
func steady(load float64, nodes int) scenario {
	s := scenario{
		name:  fmt.Sprintf("steady %gx %s", load, nodesText(nodes)),
		by:    schedules,
		nodes: nodes, threshold: usualThreshold, window: time.Minute, tick: time.Second,
		factor: load, steady: true,
	}
	s.load = func(limit float64) ratelimittest.Load { return ratelimittest.Steady(s.factor * limit) }
	return s
}

// varying is a load that changes, on ten nodes at the usual threshold.
func varying(name string, highest float64, load func(limit float64, window time.Duration) ratelimittest.Load) scenario {
	s := steady(highest, 10)
	window := s.window
	s.name, s.offers, s.steady = name, name, false
	s.load = func(limit float64) ratelimittest.Load { return load(limit, window) }
	return s
}

// spiked is so many thresholds within a second, every two windows of ten seconds.
func spiked(thresholds float64, nodes int) scenario {
	s := steady(thresholds*10, nodes)
	s.name = fmt.Sprintf("burst %gx in 1s %s", thresholds, nodesText(nodes))
	s.offers = fmt.Sprintf("burst %g", thresholds)
	s.by, s.steady, s.spike = forBursts, false, thresholds
	s.threshold, s.window, s.tick = 600, 10*time.Second, 0
	s.load = func(limit float64) ratelimittest.Load {
		return ratelimittest.Spikes(0, s.factor*limit, 2*s.window, time.Second)
	}
	return s
}

// hosts is so many keys that are offered a load each, on three nodes.
func hosts(keys int, load float64, threshold uint64) scenario {
	s := steady(load, 3)
	s.by, s.threshold, s.phases, s.windows, s.steps = forCosts, threshold, 1, 4, 600
	for i := range keys {
		s.keys = append(s.keys, fmt.Sprintf("entity-%05d", i))
	}
	return s
}

func nodesText(n int) string {
	if n == 1 {
		return "1 node"
	}
	return fmt.Sprintf("%d nodes", n)
}

// offered names what is offered in all, whichever nodes it reaches, at which limit.
func (s *scenario) offered() string {
	name := s.offers
	if name == "" {
		name = fmt.Sprint(s.factor)
	}
	return fmt.Sprint(name, s.threshold, s.window, s.tick, s.windows, s.phases, s.kind, s.burst, len(s.keys))
}

// traffic is what the scenario offers.
func (s *scenario) traffic(seed uint64) ratelimittest.Traffic {
	steps := stepsPerWindow
	if s.steps > 0 {
		steps = s.steps
	}
	limit := float64(s.threshold) / s.window.Seconds() * float64(len(s.names()))
	return ratelimittest.Traffic{
		Load: s.load(limit), Skew: s.skew, Route: s.route, Keys: s.keys,
		Units: max(1, s.threshold/requestsPerLimit), Step: s.window / time.Duration(steps), Seed: seed,
	}
}

// offset is how far node i's wall is ahead of the store's.
func (s *scenario) offset(i int) time.Duration {
	if s.nodes == 1 {
		return 0
	}
	return -s.clocks + 2*s.clocks*time.Duration(i)/time.Duration(s.nodes-1)
}
