package tick

// This file is what a tick run found out, as values and as JSON.

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"
)

// A result is the outcome for one size; its arrays are in the order of
// syncers.
type result struct {
	entities int
	costs    [3]cost
	manners  [3]manners
	limited  uint64 // checks that the load lost to the limit: it is below it, so 0
	untold   string // why Redis does not tell how long scripts took
}

// A ratio is a line of -json. Its names are a contract with whoever reads them.
type ratio struct {
	Entities      int     `json:"entities"` // active in each tick
	Baseline      string  `json:"baseline"` // every or tiered
	RedisCPU      float64 `json:"redis_cpu_ratio"`
	NodeCPU       float64 `json:"node_cpu_ratio"`
	Bytes         float64 `json:"bytes_ratio"` // both ways
	LongestScript float64 `json:"longest_script_ms"`
	RoundTrips    float64 `json:"round_trips_per_tick"`
}

// ratios returns ours / each baseline's.
func (r *result) ratios() []ratio {
	ours := r.costs[0]
	list := make([]ratio, 0, len(syncers)-1)
	for i, name := range syncers[1:] {
		theirs := r.costs[i+1]
		list = append(list, ratio{
			Entities: r.entities, Baseline: name,
			RedisCPU:      quotient(float64(ours.redis), float64(theirs.redis)),
			NodeCPU:       quotient(float64(ours.node), float64(theirs.node)),
			Bytes:         quotient(float64(ours.sent+ours.received), float64(theirs.sent+theirs.received)),
			LongestScript: float64(r.manners[0].longest) / float64(time.Millisecond),
			RoundTrips:    quotient(float64(ours.trips), float64(ours.ticks)),
		})
	}
	return list
}

// quotient is a / b to three digits after the point; 0 if b is 0, for JSON has no
// infinity.
func quotient(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return math.Round(1000*a/b) / 1000
}

// writeJSON writes one object on a line for each size and baseline.
func writeJSON(file string, stdout io.Writer, all []result) error {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	for i := range all {
		for _, ratio := range all[i].ratios() {
			if err := encoder.Encode(ratio); err != nil {
				return fmt.Errorf("the results as JSON: %w", err)
			}
		}
	}
	var err error
	if file == "-" {
		_, err = io.WriteString(stdout, b.String())
	} else {
		err = os.WriteFile(file, []byte(b.String()), 0o644)
	}
	if err != nil {
		return fmt.Errorf("-json %s: %w", file, err)
	}
	return nil
}

// A line is y = at0 + slope × x.
type fittedLine struct{ at0, slope float64 }

// fitLine returns the line that fits the points best, by least squares of the
// relative error, so that small sizes count as much as large ones. Less than two
// different x give a line through 0.
func fitLine(x, y []float64) fittedLine {
	var w, wx, wy, wxx, wxy float64
	for i := range x {
		weight := 1 / (y[i] * y[i])
		w += weight
		wx += weight * x[i]
		wy += weight * y[i]
		wxx += weight * x[i] * x[i]
		wxy += weight * x[i] * y[i]
	}
	det := w*wxx - wx*wx
	if !(det > 1e-12*w*wxx) {
		if wxx == 0 {
			return fittedLine{}
		}
		return fittedLine{slope: wxy / wxx}
	}
	slope := (w*wxy - wx*wy) / det
	return fittedLine{at0: (wy - slope*wx) / w, slope: slope}
}
