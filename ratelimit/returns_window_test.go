package ratelimit

// This file tests what units given back leave of the window, on the node that gives back
// and on the others.

import (
	"testing"
	"time"
)

// Another node gives back units that have left the window: what was counted since stays.
func TestALateReturnOfAnotherNodeTakesNothingNew(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	kind := func(c *Config) { c.Window, c.GlobalThreshold, c.Inclusive = WindowSliding, 100, true }
	a, b := w.node(kind), w.node(kind)
	a.check("k", 20)
	w.clock.Advance(5 * time.Second)
	res := b.reserve("k", 60)
	tell := func() {
		for range 2 {
			w.clock.Advance(time.Second)
			for _, n := range []*node{a, b} {
				n.entry("k").wantRead = true
				n.Peek("k")
				n.sync()
			}
		}
	}
	tell()
	w.clock.Advance(65 * time.Second) // the reservation was made 70 seconds ago
	b.check("k", 70)
	a.check("k", 10)
	tell()
	before := a.Peek("k").Level()
	b.commit(res, 0)
	if got := b.Peek("k").Level(); got < 79 || got > 81 {
		t.Errorf("level %v on the node that gives back, want 80", got)
	}
	tell()
	a.check("k", 1)
	if got := a.Peek("k").Level(); before < 79 || before > 82 || got < 75 || got > 82 { // a slice holds the end of the epoch
		t.Errorf("level %v, and %v before the other node gave back; want about 81", got, before)
	}
	if s := b.Stats(); s.Returned != (Returned{Taken: 60}) {
		t.Errorf("%+v", s.Returned)
	}
	w.conserves(a, b)
}

// Reserved units that come back make room for as many, at once and a window later, and
// never for more: on one node no window exceeds the threshold.
func TestNoWindowHoldsMoreForWhatWasGivenBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) {
		c.Window, c.WindowStrict, c.StrictFirstContact, c.Inclusive, c.GlobalThreshold = WindowSliding, true, true, true, 100
	})
	type cost struct {
		at    time.Duration
		units uint64
	}
	var costs []cost // what was kept, when it was reserved
	var open []*Reservation
	var at []time.Duration
	now := time.Duration(0)
	for i := range 1200 {
		if res := n.Reserve("k", 20); res.Decision().Allowed() {
			open, at = append(open, res), append(at, now)
		}
		if len(open) > i%4 {
			kept := uint64(i % 7)
			open[0].Commit(kept)
			costs = append(costs, cost{at[0], kept})
			open, at = open[1:], at[1:]
		}
		w.clock.Advance(317 * time.Millisecond)
		now += 317 * time.Millisecond
	}
	for i, last := range costs {
		sum := uint64(0)
		for j := i; j >= 0 && last.at-costs[j].at < time.Minute; j-- {
			sum += costs[j].units
		}
		if sum > 100 {
			t.Fatalf("%d units within a window that ends at %v", sum, last.at)
		}
	}
	if n := uint64(len(costs)); n < 100 {
		t.Errorf("only %d reservations passed", n)
	}
}
