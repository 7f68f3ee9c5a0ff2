package ratelimit

// This file tests what a node learns of its share of an entity's traffic.

import (
	"math"
	"testing"
	"time"

	"github.com/hanzoai/limiters/ratelimit/store"
)

func TestANodeLearnsItsShareFromWhatItDelivered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ticks := func(c *Config) { c.SyncByUnits = false } // it tells what each tick learns
	a, b := w.node(ticks), w.node(ticks)
	tick := func(ofA, ofB uint64) {
		a.check("k", ofA)
		b.check("k", ofB)
		w.clock.Advance(time.Second)
	}
	expect := func(what string, want float64) {
		t.Helper()
		// a syncs before b, so the growth it sees is of b's units a tick before.
		if got := a.entry("k").share.Part(); math.Abs(got-want) > 0.02 {
			t.Errorf("%s: a's share is %.2f, want %.2f", what, got, want)
		}
	}
	for range 6 {
		tick(1, 3)
	}
	expect("a quarter is a's", 0.25)
	w.mem.Fail(a.counterKey("k", a.epochAt(0)), store.Refused)
	b.link.breaks(errUnreachable, nil)
	for range 4 {
		tick(1, 0)
	}
	expect("what is refused is nobody's", 0.25/2) // b's units of the tick before came without a's
}
