package throughput

// This file is the load: goroutines that check keys as fast as they can.

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/hanzoai/limiters/ratelimit"
)

// A checker is the part of a limiter that a worker drives.
type checker interface {
	Check(key string, n uint64) ratelimit.Decision
}

// A worker checks one unit after the other on one node. Its fields belong to its
// goroutine until that has ended, checks apart.
type worker struct {
	node    checker
	traffic *traffic
	dwell   time.Duration // how long a slice is repeated
	// countLimited says that limited units are recorded too.
	countLimited bool
	latencies    *hdrhistogram.Histogram
	allowed      uint64

	checks atomic.Uint64 // made so far; whole passes
	_      [56]byte      // keeps another worker's fields off this cache line
}

// newWorker returns a worker that repeats each slice of its traffic for dwell.
func newWorker(node checker, t *traffic, dwell time.Duration, countLimited bool) *worker {
	return &worker{node: node, traffic: t, dwell: dwell, countLimited: countLimited, latencies: newLatencies()}
}

// run checks until stop is set. After each pass over a slice it lets others have
// the core, as a request handler does that waits for its next request: otherwise
// the ticks and an embedded server would wait for the scheduler's time slices.
func (w *worker) run(stop *atomic.Bool) {
	for i := 0; ; i++ {
		slice, until := w.traffic.slice(i), time.Now().Add(w.dwell)
		for time.Now().Before(until) {
			w.pass(slice)
			w.checks.Store(w.checks.Load() + uint64(len(slice)))
			if stop.Load() {
				return
			}
			runtime.Gosched()
		}
	}
}

// pass checks every slot once, and times the first of every sampleEvery.
func (w *worker) pass(slots []slot) {
	for len(slots) > 0 {
		n := min(sampleEvery, len(slots))
		start := time.Now()
		d := w.node.Check(slots[0].key, 1)
		recordLatency(w.latencies, time.Since(start))
		w.record(&slots[0], &d)
		for i := 1; i < n; i++ {
			d := w.node.Check(slots[i].key, 1)
			w.record(&slots[i], &d)
		}
		slots = slots[n:]
	}
}

// record counts the unit if the limiter recorded it.
func (w *worker) record(s *slot, d *ratelimit.Decision) {
	if d.Verdict() == ratelimit.VerdictAllowed {
		w.allowed++
		s.counted++
	} else if w.countLimited {
		s.counted++
	}
}
