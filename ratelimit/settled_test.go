package ratelimit

// This file tests what a tick may still do once Close has accounted for everything, and
// what a batch teaches that was made in the epoch before.

import (
	"context"
	"testing"
	"time"
)

// Close gives up what is unsent after it has marked the partition: a tick under way must
// leave it there.
func TestATickTakesNothingOnceCloseHasAccounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(nil)
	n.check("k", 5)
	p := n.partitions[0]
	p.mu.Lock()
	p.settled = true
	p.mu.Unlock()
	if err := n.Sync(context.Background()); err != nil {
		t.Fatal(err)
	}
	if e := n.entry("k"); e.slots[1].unsent != 5 || e.inFlight {
		t.Errorf("%d units unsent, in flight %v; want 5, and no batch", e.slots[1].unsent, e.inFlight)
	}
	if got := n.link.take(); len(got) != 0 {
		t.Errorf("it sent %+v", got)
	}
	p.settled = false
}

// A batch of the epoch before that is answered late in this one has read the counter of
// the epoch before when nobody could add to it any more: it is not read again.
func TestALateAnswerReadsThePreviousEpochForGood(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(nil)
	w.clock.Advance(58 * time.Second)
	n.check("k", 5)
	n.link.breaks(errUnreachable, nil)
	w.clock.Advance(12 * time.Second)
	n.link.heals()
	w.clock.Advance(time.Second)
	n.link.take()
	n.check("k", 1)
	w.clock.Advance(time.Second)
	if got := n.reads(); got != 0 {
		t.Errorf("the next tick read %d counters, want none", got)
	}
	w.conserves(n)
}
