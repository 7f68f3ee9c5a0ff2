package accuracy

// This file is the limiter that needs no mercy: one that sees every request of the
// fleet at once, and remembers them all.

import "time"

// An exact is a sliding log over all nodes: it admits a request iff at most so many units
// were admitted in the last window, this request included, as the threshold lets pass:
// one less than it, unless it is inclusive.
type exact struct {
	threshold uint64
	passes    uint64
	window    time.Duration
	nodes     int

	now   time.Duration
	log   []admission // of the last window, oldest first, from head on
	head  int
	units uint64 // in the log
}

// An admission is units admitted at one time.
type admission struct {
	at    time.Duration
	units uint64
}

func newExact(s *scenario) *exact {
	e := &exact{threshold: s.threshold, passes: s.threshold - 1, window: s.window, nodes: s.nodes}
	if s.inclusive {
		e.passes = s.threshold
	}
	return e
}

// Len implements ratelimittest.Target.
func (e *exact) Len() int { return e.nodes }

// Limit implements ratelimittest.Target.
func (e *exact) Limit(string) (threshold uint64, window time.Duration) {
	return e.threshold, e.window
}

// Advance implements ratelimittest.Target.
func (e *exact) Advance(d time.Duration) {
	e.now += d
	for ; e.head < len(e.log) && e.log[e.head].at <= e.now-e.window; e.head++ {
		e.units -= e.log[e.head].units
	}
	if e.head > len(e.log)/2 {
		e.log = e.log[:copy(e.log, e.log[e.head:])]
		e.head = 0
	}
}

// Offer implements ratelimittest.Target.
func (e *exact) Offer(_ int, _ string, units uint64) (allowed bool) {
	if e.units+units > e.passes {
		return false
	}
	e.units += units
	if n := len(e.log); n > e.head && e.log[n-1].at == e.now {
		e.log[n-1].units += units
	} else {
		e.log = append(e.log, admission{e.now, units})
	}
	return true
}
