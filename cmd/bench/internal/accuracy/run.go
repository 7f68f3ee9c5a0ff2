package accuracy

// This file runs scenarios by schedules, over all phases of the window.

import (
	"context"
	"math"
	"runtime"
	"sync"
)

// A row is what came of one scenario by one schedule: the worst of all phases.
type row struct {
	Scenario    string   `json:"scenario"`
	Schedule    schedule `json:"schedule"`
	Worst       float64  `json:"worst"`         // window / threshold; of several keys the worst
	Mean        float64  `json:"mean"`          // window / threshold, farthest from 1
	FalseLimits uint64   `json:"false_limits"`  // requests
	FirstLimit  *float64 `json:"first_limit_s"` // null: nothing was limited
	Reads       float64  `json:"reads"`         // counters, per node and second
	Writes      float64  `json:"writes"`        // counters, per node and second
	Scripts     float64  `json:"scripts"`       // round trips, per node and second

	// RefusedAgain is how many requests were limited of those that came after the
	// wait that the client had been told, in %. Only of polite clients.
	RefusedAgain *float64 `json:"refused_again,omitempty"`

	most uint64 // scripts of one node between two ticks, at most
	spec *scenario
}

// A job is one simulation.
type job struct{ at, phase int }

// measure runs all scenarios by all their schedules, on every core, and returns the rows
// in order. It stops early, with an error, when ctx ends.
func measure(ctx context.Context, specs []scenario, seed uint64) ([]row, error) {
	var results []row
	for i := range specs {
		for _, by := range specs[i].by {
			results = append(results, row{Scenario: specs[i].name, Schedule: by, spec: &specs[i]})
		}
	}
	single := make([][]row, len(results))
	jobs := make(chan job)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() { // ends when jobs is closed
			for j := range jobs {
				r := &results[j.at]
				single[j.at][j.phase] = simulate(r.spec, r.Schedule, j.phase, seed)
			}
		})
	}
	first := map[string]int{}
	same := make([]int, len(results)) // the row that a row without a fleet is equal to
	for at := range results {
		same[at] = at
		if r := &results[at]; r.Schedule == perfect || r.Schedule != timedReads && planOf(r.Schedule).alone {
			key := string(r.Schedule) + " " + r.spec.offered()
			if _, ok := first[key]; !ok {
				first[key] = at
			}
			same[at] = first[key]
		}
		if same[at] != at {
			continue
		}
		single[at] = make([]row, results[at].spec.runs())
		for phase := range single[at] {
			if ctx.Err() == nil {
				jobs <- job{at, phase}
			}
		}
	}
	close(jobs)
	workers.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for i := range results {
		spec, by := results[i].spec, results[i].Schedule
		results[i] = worstOf(single[same[i]])
		results[i].spec, results[i].Scenario, results[i].Schedule = spec, spec.name, by
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
		worst.FirstLimit = later(worst.FirstLimit, r.FirstLimit)
		worst.RefusedAgain = later(worst.RefusedAgain, r.RefusedAgain)
		worst.Reads = max(worst.Reads, r.Reads)
		worst.Writes = max(worst.Writes, r.Writes)
		worst.Scripts = max(worst.Scripts, r.Scripts)
		worst.most = max(worst.most, r.most)
	}
	for _, v := range []*float64{
		&worst.Worst, &worst.Mean, &worst.Reads, &worst.Writes, &worst.Scripts, worst.FirstLimit, worst.RefusedAgain,
	} {
		if v != nil {
			*v = math.Round(*v*1000) / 1000
		}
	}
	return worst
}

// later returns the greater of two numbers, nil being less than all.
func later(a, b *float64) *float64 {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
}

// distance is how far a mean is from the threshold.
func distance(mean float64) float64 { return max(mean-1, 1-mean) }
