package accuracy

// This file lists what the accuracy run simulates: the traffic, and the fleet it
// meets.

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/testing/ratelimittest"
)

// scenarios returns all, in the order of the table.
func scenarios() []scenario {
	all := steadyLoads()
	all = append(all, changingLoads()...)
	all = append(all, odds()...)
	all = append(all, bursts()...)
	all = append(all, manners()...)
	return append(all, costs()...)
}

// steadyLoads are the same all the time, evenly over the nodes or not.
func steadyLoads() (all []scenario) {
	for _, load := range []float64{0.5, 0.8, 0.95, 0.97, 0.99, 1.05, 1.5, 3, 10} {
		s := steady(load, 10)
		if load == 0.97 || load == 0.99 {
			s.by = withoutHot
		}
		all = append(all, s)
	}
	for _, nodes := range []int{1, 50, 100} {
		all = append(all, steady(3, nodes))
	}
	all = append(all, steady(10, 1), steady(10, 100))
	for i := range all {
		if all[i].nodes >= 50 { // they take long
			all[i].phases, all[i].by = 3, withoutSlidingHot
		}
	}
	for _, load := range []float64{3, 0.9} {
		s := steady(load, 10)
		s.name = fmt.Sprintf("skew %gx 10 nodes, 80%% on one", load)
		s.skew = 0.8
		all = append(all, s)
	}
	hop := steady(0.95, 10)
	hop.by, hop.name, hop.route = withoutHot, "hopping 0.95x 10 nodes", ratelimittest.Hop(7*time.Second)
	down := steady(0.95, 100)
	down.by, down.phases = withoutHot, 2
	down.name, down.route = "scale-down 100 to 1", ratelimittest.Shrink(1, 3*down.window+down.window/3)
	return append(all, hop, down)
}

// changingLoads change with time.
func changingLoads() (all []scenario) {
	all = append(all, varying("step 0.3x to 5x 10 nodes", 5, func(limit float64, window time.Duration) ratelimittest.Load {
		return ratelimittest.Jump(0.3*limit, 5*limit, 2*window)
	}))
	for _, load := range []float64{3, 1.8} {
		all = append(all, varying(fmt.Sprintf("on/off 30s %gx 10 nodes", load), load, func(limit float64, window time.Duration) ratelimittest.Load {
			return ratelimittest.OnOff(load*limit, window/2, window/2)
		}))
	}
	return append(all, varying("spikes 40s 5x over 0.5x 10 nodes", 5, func(limit float64, window time.Duration) ratelimittest.Load {
		return ratelimittest.Spikes(0.5*limit, 5*limit, 2*window, 2*window/3)
	}))
}

// odds are a steady load under conditions of their own.
func odds() (all []scenario) {
	clocks := steady(3, 10)
	clocks.name, clocks.clocks = "clocks 2s apart 3x 10 nodes", 2*time.Second
	cut := steady(3, 10)
	cut.name, cut.cutOff = "cut off 3x 1 of 10 nodes", true
	all = append(all, clocks, cut)
	for _, threshold := range []uint64{10, 1_000_000} {
		s := steady(3, 10)
		s.name, s.threshold = fmt.Sprintf("threshold %d 3x 10 nodes", threshold), threshold
		all = append(all, s)
	}
	sparse := steady(30, 10)
	sparse.name, sparse.window, sparse.tick = "sparse 1 per hour 10 nodes", time.Hour, 0
	sparse.threshold, sparse.inclusive, sparse.windows, sparse.steps = 1, true, 5, 720
	sparse.by, sparse.phases = withoutHot, 2
	short := steady(3, 10)
	short.name, short.window, short.tick = "window 1s tick 100ms 3x 10 nodes", time.Second, 100*time.Millisecond
	ten := steady(3, 10)
	ten.name, ten.window, ten.tick = "window 10s 3x 10 nodes", 10*time.Second, 0
	return append(all, sparse, short, ten)
}

// bursts are far more than the limit within a second.
func bursts() (all []scenario) {
	for _, nodes := range []int{3, 10, 50} {
		all = append(all, spiked(4.5, nodes))
	}
	all = append(all, spiked(60, 50))
	for _, trip := range []time.Duration{10 * time.Millisecond, 40 * time.Millisecond} {
		for _, nodes := range []int{3, 10, 50} {
			s := spiked(4.5, nodes)
			s.name, s.trip, s.by = fmt.Sprintf("%s rtt %v", s.name, trip), trip, forTrips
			all = append(all, s)
		}
	}
	return append(all, anyTraffic())
}

// anyTraffic is calm, busy and at once by turns, without any pattern, on one node.
func anyTraffic() scenario {
	s := varying("any traffic 1 node", 600, func(limit float64, window time.Duration) ratelimittest.Load {
		return func(at time.Duration) float64 {
			random := rand.New(rand.NewPCG(uint64(at/(window/97)), 7)) // the same for the same moment
			switch random.IntN(8) {
			case 0:
				return limit * 600 * random.Float64() // up to six limits within a hundredth of the window
			case 1, 2, 3:
				return limit * 4 * random.Float64()
			default:
				return limit * random.Float64()
			}
		}
	})
	s.by, s.nodes, s.threshold, s.windows = forAny, 1, 1000, 30
	return s
}

// manners are clients that wait as long as they are told, each with a key of its own.
func manners() (all []scenario) {
	low := []uint64{5, 10, 20, 100}
	alone := polite(1, 10, low, 500*time.Millisecond, 30)
	alone.name = "polite client 1 node"
	alone.polite.Units = 3
	few := polite(3, 10, low, 500*time.Millisecond, 30)
	few.name += ", thresholds 5 to 100"
	few.polite.Units = 3
	return append(all, alone, polite(3, 6, []uint64{usualThreshold}, time.Minute/(3*usualThreshold), 10), few)
}

// polite is so many polite clients for each of some thresholds, that pause for so long on
// average after a request that passed.
func polite(nodes, clients int, thresholds []uint64, pause time.Duration, windows int) scenario {
	s := steady(1, nodes)
	s.name, s.by, s.steady, s.windows, s.phases = "polite clients "+nodesText(nodes), forManner, false, windows, 2
	s.threshold, s.overrides = thresholds[len(thresholds)-1], ratelimit.Overrides{}
	for _, threshold := range thresholds {
		for i := range clients {
			key := fmt.Sprintf("client-%d-of-%d", i, threshold)
			s.keys = append(s.keys, key)
			s.overrides[key] = threshold
		}
	}
	s.polite = &ratelimittest.Clients{Keys: s.keys, Pause: pause, WholeSeconds: true}
	return s
}

// hotEntity is the scenario of one entity at its limit.
const hotEntity = "one hot entity 3x"

// costs are about scripts: one entity at its limit, and many below theirs.
func costs() (all []scenario) {
	one := steady(3, 10)
	one.name, one.by = hotEntity, forCosts
	some := hosts(300, 0.5, 1000)
	some.name = "300 entities 0.5x"
	all = append(all, one, some)
	for _, threshold := range []uint64{10, 100} {
		s := hosts(10_000, 0.5, threshold)
		s.name, s.windows, s.by = fmt.Sprintf("10000 entities threshold %d", threshold), 2, forMany
		all = append(all, s)
	}
	return all
}
