package accuracy

// This file simulates one scenario by one schedule at one phase of the window.

import (
	"time"

	"github.com/hanzoai/limiters/testing/ratelimittest"
)

// A fleetTarget is a target that counts what it asked of a store.
type fleetTarget interface {
	ratelimittest.Target
	Requests() ratelimittest.Requests
}

// A setting is a target and what can happen to it.
type setting struct {
	target            ratelimittest.Target
	fleet             *ratelimittest.Fleet // nil: it is none of this library
	cutOff, reconnect func()               // the first node
	done              func()
}

func nothing() {}

// simulate runs one scenario by one schedule at one phase of the window.
func simulate(s *scenario, by schedule, phase int, seed uint64) row {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(s.window * time.Duration(phase) / time.Duration(s.runs()))
	set := s.set(by, start)
	defer set.done()
	if s.polite != nil {
		clients := *s.polite
		clients.Seed = seed + uint64(phase)<<32
		m := clients.Run(set.fleet, s.lasts())
		r := s.row(m.Decisions.Report, s.lasts())
		again := 0.0
		if m.Retries > 0 {
			again = 100 * float64(m.RefusedAgain) / float64(m.Retries)
		}
		r.RefusedAgain = &again
		s.asked(&r, by, &set, s.lasts())
		return r
	}
	run := ratelimittest.Start(set.target, s.traffic(seed))
	w := watch{fleet: set.fleet, run: run, tick: s.ticks()}
	if s.cutOff {
		w.advance(3 * s.window)
		set.cutOff()
		w.advance(2 * s.window)
		set.reconnect()
	}
	w.advance(s.lasts() - run.Elapsed())
	r := s.row(run.Report, run.Elapsed())
	r.most = w.most
	s.asked(&r, by, &set, run.Elapsed())
	return r
}

// set makes what the scenario meets.
func (s *scenario) set(by schedule, start time.Time) setting {
	switch by {
	case perfect:
		return setting{target: newExact(s), cutOff: nothing, reconnect: nothing, done: nothing}
	case timedReads:
		f := ratelimittest.NewDocumentFleet(start, s.nodes, planOf(ours).config(s))
		for i := range s.nodes {
			f.SetOffset(i, s.offset(i))
		}
		cutOff := func() { f.Link(0).Fail(ratelimittest.Unreachable) }
		return setting{target: f, cutOff: cutOff, reconnect: f.Link(0).Heal, done: nothing}
	}
	p, nodes := planOf(by), s.nodes
	if p.alone {
		nodes = 1
	}
	f := ratelimittest.NewFleetAt(nil, start, nodes, p.config(s))
	set := setting{target: f, fleet: f, cutOff: nothing, reconnect: nothing, done: f.Close}
	if p.alone {
		f.Node(0).CutOff()
		return set
	}
	for i, n := range f.Nodes() {
		n.SetOffset(s.offset(i))
	}
	f.Store().RoundTrip(s.trip)
	set.cutOff, set.reconnect = f.Node(0).CutOff, f.Node(0).Reconnect
	return set
}

// A watch looks at the scripts of each tick while a run advances.
type watch struct {
	fleet *ratelimittest.Fleet
	run   *ratelimittest.Run
	tick  time.Duration
	seen  []uint64 // scripts of each node
	most  uint64   // of one node between two ticks
}

func (w *watch) advance(d time.Duration) {
	if w.fleet == nil {
		w.run.Advance(d)
		return
	}
	if w.seen == nil {
		w.seen = make([]uint64, w.fleet.Len())
	}
	for d > 0 {
		step := min(w.tick, d)
		w.run.Advance(step)
		d -= step
		for i, n := range w.fleet.Nodes() {
			sent := n.Link.Requests().Attempts
			w.most = max(w.most, sent-w.seen[i])
			w.seen[i] = sent
		}
	}
}

// row is the row of one run: of several keys the worst and their mean.
func (s *scenario) row(report func(key string) ratelimittest.Report, lasted time.Duration) row {
	r := row{spec: s}
	first := lasted
	for _, key := range s.names() {
		k, threshold := report(key), s.thresholdOf(key)
		r.Worst = max(r.Worst, float64(k.Worst)/threshold)
		r.Mean += k.Mean / threshold / float64(len(s.names()))
		r.FalseLimits += k.FalseLimits
		if k.Limited > 0 && k.FirstLimit <= first {
			first = k.FirstLimit
			at := first.Seconds()
			r.FirstLimit = &at
		}
	}
	return r
}

// asked puts into the row what the store was asked.
func (s *scenario) asked(r *row, by schedule, set *setting, lasted time.Duration) {
	f, ok := set.target.(fleetTarget)
	if !ok || by != timedReads && planOf(by).alone {
		return
	}
	requests, nodeSeconds := f.Requests(), float64(f.Len())*lasted.Seconds()
	r.Reads = float64(requests.Reads) / nodeSeconds
	r.Writes = float64(requests.Writes) / nodeSeconds
	r.Scripts = float64(requests.Attempts) / nodeSeconds
}
