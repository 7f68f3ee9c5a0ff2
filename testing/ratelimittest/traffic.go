package ratelimittest

// This file offers traffic to a fleet and records what becomes of it.

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// stepsPerWindow is how finely traffic is divided unless Traffic.Step says.
const stepsPerWindow = 600

// Traffic is what a fleet is offered. The same traffic is the same sequence of
// requests every time.
type Traffic struct {
	// Load is how many units per second are offered in all.
	Load Load
	// Keys are the entity keys; none is one key, "key".
	Keys []string
	// Zipf is the exponent of the keys' popularity, the first being the most
	// popular; above 1. 0: all are alike.
	Zipf float64
	// Skew is the share of the requests that reach node 0; the others share the
	// rest evenly. 0: all are alike.
	Skew float64
	// Route says which node a request reaches. nil: any, by Skew.
	Route Route
	// Units is what a request asks for; 0 is 1.
	Units uint64
	// Step is how long the clock stands still for the requests of that time; 0 is
	// a 600th of the window.
	Step time.Duration
	// Seed decides which request reaches which node, and of which key it is.
	Seed uint64
}

// A Target is what traffic can be offered to: a [Fleet], a [DocumentFleet], or what
// they are compared with.
type Target interface {
	// Len returns the number of nodes.
	Len() int
	// Offer has a node decide about units of a key.
	Offer(node int, key string, units uint64) (allowed bool)
	// Limit returns a key's threshold and the window.
	Limit(key string) (threshold uint64, window time.Duration)
	// Advance lets time pass.
	Advance(d time.Duration)
}

// A Run is traffic on its way to a target. It is not safe for concurrent use.
type Run struct {
	target  Target
	traffic Traffic
	random  *rand.Rand
	zipf    *rand.Zipf
	record  *Recorder
	elapsed time.Duration
	due     float64 // units, not offered yet
}

// Start begins to offer traffic to a target; [Run.Advance] goes on with it. Nothing
// else should advance the target's clock meanwhile.
func Start(target Target, traffic Traffic) *Run {
	if len(traffic.Keys) == 0 {
		traffic.Keys = []string{"key"}
	}
	if traffic.Units == 0 {
		traffic.Units = 1
	}
	_, window := target.Limit(traffic.Keys[0])
	if traffic.Step <= 0 {
		traffic.Step = max(1, window/stepsPerWindow)
	}
	r := &Run{
		target: target, traffic: traffic, record: NewRecorder(window),
		random: rand.New(rand.NewPCG(traffic.Seed, 0)),
	}
	if traffic.Zipf > 1 {
		r.zipf = rand.NewZipf(r.random, traffic.Zipf, 1, uint64(len(traffic.Keys)-1))
	}
	return r
}

// Advance offers the traffic of the next d, step by step, and lets d pass.
func (r *Run) Advance(d time.Duration) {
	for d > 0 {
		step := min(r.traffic.Step, d)
		r.due += r.traffic.Load(r.elapsed) * step.Seconds()
		for units := float64(r.traffic.Units); r.due >= units; r.due -= units {
			r.offer()
		}
		r.target.Advance(step)
		r.elapsed += step
		d -= step
	}
	r.record.until(r.elapsed)
}

// offer makes one request.
func (r *Run) offer() {
	node, key := r.node(), r.key()
	threshold, _ := r.target.Limit(key)
	allowed := r.target.Offer(node, key, r.traffic.Units)
	r.record.Record(r.elapsed, key, threshold, r.traffic.Units, allowed)
}

// node draws the node of a request.
func (r *Run) node() int {
	n := r.target.Len()
	if r.traffic.Route != nil {
		node := r.traffic.Route(r.elapsed, n, r.random)
		if node < 0 || node >= n {
			panic(fmt.Sprintf("ratelimittest: Traffic.Route sends a request to node %d of %d", node, n))
		}
		return node
	}
	switch {
	case n == 1:
		return 0
	case r.traffic.Skew <= 0:
		return r.random.IntN(n)
	case r.random.Float64() < r.traffic.Skew:
		return 0
	default:
		return 1 + r.random.IntN(n-1)
	}
}

// key draws the key of a request.
func (r *Run) key() string {
	keys := r.traffic.Keys
	switch {
	case len(keys) == 1:
		return keys[0]
	case r.zipf != nil:
		return keys[r.zipf.Uint64()]
	default:
		return keys[r.random.IntN(len(keys))]
	}
}

// Elapsed returns how long the traffic has run.
func (r *Run) Elapsed() time.Duration { return r.elapsed }

// Report returns what became of a key's requests so far. If the target can tell
// (a [Fleet] can), it says too what the store was asked.
func (r *Run) Report(key string) Report {
	report := r.record.Report(key)
	if t, ok := r.target.(interface {
		Asked(key string) (writes, reads uint64)
	}); ok {
		report.Writes, report.Reads = t.Asked(key)
	}
	return report
}
