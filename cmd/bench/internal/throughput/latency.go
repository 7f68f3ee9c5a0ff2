package throughput

// This file measures how long single checks take.

import (
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// sampleEvery says that one check in so many is timed: two readings of the clock
// cost as much as a check.
const sampleEvery = 128

// maxLatency is the longest latency kept apart; a longer one counts as this.
const maxLatency = 10 * time.Second

// newLatencies returns an empty histogram of nanoseconds, exact to 1 %.
func newLatencies() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, int64(maxLatency), 2)
}

// recordLatency adds one sample.
func recordLatency(h *hdrhistogram.Histogram, d time.Duration) {
	// The error says out of range, which the bounds exclude.
	_ = h.RecordValue(max(1, min(int64(d), int64(maxLatency))))
}

// A latencyReport is the distribution of the timed checks, in nanoseconds.
type latencyReport struct {
	Samples int64 `json:"samples"`
	P50     int64 `json:"p50_ns"`
	P90     int64 `json:"p90_ns"`
	P99     int64 `json:"p99_ns"`
	P999    int64 `json:"p999_ns"`
	Max     int64 `json:"max_ns"`
	// Clock is what one reading of the clock took in this run. Every sample holds
	// about one.
	Clock int64 `json:"clock_ns"`
}

// mergeLatencies sums histograms up.
func mergeLatencies(all []*hdrhistogram.Histogram, clock time.Duration) latencyReport {
	total := newLatencies()
	for _, h := range all {
		total.Merge(h)
	}
	return latencyReport{
		Samples: total.TotalCount(),
		P50:     total.ValueAtQuantile(50),
		P90:     total.ValueAtQuantile(90),
		P99:     total.ValueAtQuantile(99),
		P999:    total.ValueAtQuantile(99.9),
		Max:     total.Max(),
		Clock:   clock.Nanoseconds(),
	}
}

// clockReading returns what an empty sample measures: the median of many.
func clockReading() time.Duration {
	readings := make([]time.Duration, 1001)
	for i := range readings {
		start := time.Now()
		readings[i] = time.Since(start)
	}
	slices.Sort(readings)
	return readings[len(readings)/2]
}
