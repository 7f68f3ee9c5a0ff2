package ratelimittest

// This file records what was offered and what was admitted, window by window.

import "time"

// settling is how many windows from the start on are no part of a report's mean:
// what a limiter admits into an empty window is in Report.Worst.
const settling = 2

// A Recorder judges decisions by the true sliding window, which no limiter of the
// kind keeps. [Run] has one; a test that makes its requests itself can use its own.
// It is not safe for concurrent use.
type Recorder struct {
	window time.Duration
	now    time.Duration // the latest time known
	keys   map[string]*series
}

// NewRecorder returns a recorder for a window.
func NewRecorder(window time.Duration) *Recorder {
	return &Recorder{window: window, keys: map[string]*series{}}
}

// A Report says what became of one key's requests.
type Report struct {
	Offered, Admitted uint64 // units
	// Worst is how many units were admitted in the worst window: the most in any
	// span of time as long as the window.
	Worst uint64
	// Mean is how many units were admitted per window, after the first two
	// windows; over all if there were no more.
	Mean float64
	// FalseLimits is how many requests were limited although all that was offered
	// in the last window, this request included, was under the threshold.
	FalseLimits uint64
	// Limited is how many requests were limited, and FirstLimit when the first was,
	// since the start.
	Limited    uint64
	FirstLimit time.Duration
	// Writes and Reads is what the store was asked about the key's counters.
	Writes, Reads uint64
}

// Record takes down a decision about units of a key, at a time since the start.
// Times do not decrease.
func (r *Recorder) Record(at time.Duration, key string, threshold, units uint64, allowed bool) {
	s := r.keys[key]
	if s == nil {
		s = &series{}
		r.keys[key] = s
	}
	r.until(at)
	s.forget(at - r.window)
	s.add(at, units, allowed)
	s.Offered += units
	switch {
	case allowed:
		s.Admitted += units
		s.Worst = max(s.Worst, s.admitted)
		if at >= settling*r.window {
			s.settled += units
		}
	case s.Limited == 0:
		s.FirstLimit = at
		fallthrough
	default:
		s.Limited++
		if s.offered < threshold {
			s.FalseLimits++
		}
	}
}

// until notes that so much time has passed since the start.
func (r *Recorder) until(at time.Duration) { r.now = max(r.now, at) }

// Report returns what was recorded of a key; the zero Report if nothing was.
func (r *Recorder) Report(key string) Report {
	s := r.keys[key]
	if s == nil {
		return Report{}
	}
	report := s.Report
	units, since := s.settled, r.now-settling*r.window
	if since < r.window {
		units, since = s.Admitted, r.now
	}
	if since > 0 {
		report.Mean = float64(units) * float64(r.window) / float64(since)
	}
	return report
}

// A series is one key's last window, and its report so far.
type series struct {
	Report
	settled  uint64   // admitted after settling, in units
	moments  []moment // of the window, oldest first, from head on
	head     int      // those before it have left the window
	offered  uint64   // sum of the moments'
	admitted uint64   // sum of the moments'
}

// A moment is what was offered, and admitted, at one time.
type moment struct {
	at                time.Duration
	offered, admitted uint64
}

// forget drops what was at a time or before.
func (s *series) forget(at time.Duration) {
	for s.head < len(s.moments) && s.moments[s.head].at <= at {
		s.offered -= s.moments[s.head].offered
		s.admitted -= s.moments[s.head].admitted
		s.head++
	}
	if s.head > len(s.moments)/2 {
		s.moments = s.moments[:copy(s.moments, s.moments[s.head:])]
		s.head = 0
	}
}

// add takes units down at a time.
func (s *series) add(at time.Duration, units uint64, allowed bool) {
	if n := len(s.moments); n == s.head || s.moments[n-1].at != at {
		s.moments = append(s.moments, moment{at: at})
	}
	m := &s.moments[len(s.moments)-1]
	m.offered += units
	s.offered += units
	if allowed {
		m.admitted += units
		s.admitted += units
	}
}
