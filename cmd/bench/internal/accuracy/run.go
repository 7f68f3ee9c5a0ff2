package accuracy

// This file runs a scenario by a schedule, over all phases of the window.

import (
	"context"
	"math"
	"runtime"
	"sync"
	"time"

	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/testing/ratelimittest"
)

// phases is over how many phases of the window a run is repeated.
const phases = 5

// hotSyncs is how many times per tick the schedule hot syncs Hot entities.
const hotSyncs = 10

// A schedule is a way to keep a fleet's counts.
type schedule string

const (
	ours     schedule = "ours"     // this library, by the plain tick
	hot      schedule = "hot"      // with Hot entities synced more often
	document schedule = "document" // the design document's request flow, to the letter
	oneNode  schedule = "one-node" // this library on one node without a network: the floor
	perfect  schedule = "exact"    // a sliding log
)

// schedules are all, in the order of the table.
var schedules = []schedule{ours, hot, document, oneNode, perfect}

// A row is what came of one scenario by one schedule: the worst of all phases.
type row struct {
	Scenario    string   `json:"scenario"`
	Schedule    schedule `json:"schedule"`
	Worst       float64  `json:"worst"`         // window / threshold
	Mean        float64  `json:"mean"`          // window / threshold, farthest from 1
	FalseLimits uint64   `json:"false_limits"`  // requests
	FirstLimit  *float64 `json:"first_limit_s"` // null: nothing was limited
	Reads       float64  `json:"reads"`         // counters, per node and second
	Writes      float64  `json:"writes"`        // counters, per node and second

	scripts float64 // round trips, per node and second
	spec    *scenario
}

// measure runs all scenarios by all schedules, on every core, and returns the rows in
// order. It stops early, with an error, when ctx ends.
func measure(ctx context.Context, specs []scenario, seed uint64) ([]row, error) {
	type job struct{ at, phase int }
	n := len(specs) * len(schedules)
	single := make([][phases]row, n)
	jobs := make(chan job)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() { // ends when jobs is closed
			for j := range jobs {
				spec, by := &specs[j.at/len(schedules)], schedules[j.at%len(schedules)]
				single[j.at][j.phase] = simulate(spec, by, j.phase, seed)
			}
		})
	}
	first := map[string]int{}
	same := make([]int, n) // the row that a row without a fleet is equal to
	for at := 0; at < n && ctx.Err() == nil; at++ {
		same[at] = at
		if by := schedules[at%len(schedules)]; by == oneNode || by == perfect {
			key := string(by) + specs[at/len(schedules)].offered()
			if _, ok := first[key]; !ok {
				first[key] = at
			}
			same[at] = first[key]
		}
		for phase := range phases {
			if same[at] == at {
				jobs <- job{at, phase}
			}
		}
	}
	close(jobs)
	workers.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	results := make([]row, n)
	for i := range results {
		results[i] = worstOf(single[same[i]][:])
		results[i].spec = &specs[i/len(schedules)]
		results[i].Scenario = results[i].spec.name
	}
	return results, nil
}

// worstOf returns the worst of each column, rounded as they are shown.
func worstOf(runs []row) row {
	worst := runs[0]
	for _, r := range runs[1:] {
		worst.Worst = max(worst.Worst, r.Worst)
		if distance(r.Mean) > distance(worst.Mean) {
			worst.Mean = r.Mean
		}
		worst.FalseLimits = max(worst.FalseLimits, r.FalseLimits)
		if worst.FirstLimit == nil || r.FirstLimit != nil && *r.FirstLimit > *worst.FirstLimit {
			worst.FirstLimit = r.FirstLimit
		}
		worst.Reads = max(worst.Reads, r.Reads)
		worst.Writes = max(worst.Writes, r.Writes)
		worst.scripts = max(worst.scripts, r.scripts)
	}
	for _, v := range []*float64{&worst.Worst, &worst.Mean, &worst.Reads, &worst.Writes, &worst.scripts, worst.FirstLimit} {
		if v != nil {
			*v = math.Round(*v*1000) / 1000
		}
	}
	return worst
}

// distance is how far a mean is from the threshold.
func distance(mean float64) float64 { return max(mean-1, 1-mean) }

// A fleetTarget is a target that counts what it asked of a store.
type fleetTarget interface {
	ratelimittest.Target
	Requests() ratelimittest.Requests
}

// simulate runs one scenario by one schedule at one phase of the window.
func simulate(s *scenario, by schedule, phase int, seed uint64) row {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(s.window * time.Duration(phase) / phases)
	cfg := ratelimit.DefaultConfig()
	cfg.GlobalThreshold, cfg.WindowInterval, cfg.TickInterval = s.threshold, s.window, s.tick
	cfg.LocalCacheMaxEntries = 16 // there is one key; a small table makes ticks cheap
	if by == hot {
		cfg.HotSyncInterval = s.tick / hotSyncs
	}

	var target ratelimittest.Target
	cutOff, reconnect := func() {}, func() {}
	switch by {
	case perfect:
		target = newExact(s)
	case document:
		f := ratelimittest.NewDocumentFleet(start, s.nodes, cfg)
		for i := range s.nodes {
			f.SetOffset(i, s.offset(i))
		}
		cutOff = func() { f.Link(0).Fail(ratelimittest.Unreachable) }
		reconnect = f.Link(0).Heal
		target = f
	default:
		nodes := s.nodes
		if by == oneNode {
			nodes = 1
		}
		f := ratelimittest.NewFleetAt(nil, start, nodes, cfg)
		defer f.Close()
		if by == oneNode {
			f.Node(0).CutOff()
		} else {
			for i, n := range f.Nodes() {
				n.SetOffset(s.offset(i))
			}
			cutOff, reconnect = f.Node(0).CutOff, f.Node(0).Reconnect
		}
		target = f
	}

	run := ratelimittest.Start(target, s.traffic(seed))
	if s.cutOff {
		run.Advance(3 * s.window)
		cutOff()
		run.Advance(2 * s.window)
		reconnect()
	}
	run.Advance(windowsPerRun*s.window - run.Elapsed())
	return s.row(by, run, target)
}

// offset is how far node i's wall is ahead of the store's.
func (s *scenario) offset(i int) time.Duration {
	if s.nodes == 1 {
		return 0
	}
	return -s.clocks + 2*s.clocks*time.Duration(i)/time.Duration(s.nodes-1)
}

// row is the row of one run.
func (s *scenario) row(by schedule, run *ratelimittest.Run, target ratelimittest.Target) row {
	report := run.Report("key")
	r := row{
		Scenario: s.name, Schedule: by, spec: s,
		Worst:       float64(report.Worst) / float64(s.threshold),
		Mean:        report.Mean / float64(s.threshold),
		FalseLimits: report.FalseLimits,
	}
	if report.Limited > 0 {
		first := report.FirstLimit.Seconds()
		r.FirstLimit = &first
	}
	if f, ok := target.(fleetTarget); ok && by != oneNode {
		requests, nodeSeconds := f.Requests(), float64(target.Len())*run.Elapsed().Seconds()
		r.Reads = float64(requests.Reads) / nodeSeconds
		r.Writes = float64(requests.Writes) / nodeSeconds
		r.scripts = float64(requests.Attempts) / nodeSeconds
	}
	return r
}
