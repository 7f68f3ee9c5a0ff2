package ratelimit

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/hanzoai/limiters/ratelimit/store"
)

// Calls that wait while a tick has much to say go first in its next script, and the tick goes
// on.
func TestATickTakesCallsThatWaitFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.MaxKeysPerScript, c.SyncByUnits = 4, false })
	for _, key := range []string{"a", "b", "c", "d", "e", "k"} {
		n.check(key, 2)
	}
	p := n.partitions[0]
	calls := []*fleetCall{newFleetCall(n.Limiter, "k", 3, told{}), newFleetCall(n.Limiter, "new", 98, told{}), newFleetCall(n.Limiter, "new", 2, told{})}
	n.grantsAreCounted()
	for _, c := range calls {
		if err := p.fleet.join(c); err != nil {
			t.Fatal(err)
		}
	}
	w.clock.Advance(2 * time.Second)
	for i, want := range []Verdict{VerdictAllowed, VerdictAllowed, VerdictLimited} {
		select {
		case <-calls[i].done:
			if calls[i].err != nil || calls[i].decision.Verdict() != want {
				t.Errorf("call %d: %v, %v", i, calls[i].decision.Verdict(), calls[i].err)
			}
		default:
			t.Errorf("call %d is not answered", i)
		}
	}
	batches := n.link.take()
	first := batches[0]
	if len(first.Writes) < 3 || first.Writes[0].Condition == nil || first.Writes[1].Condition == nil || len(first.Writes[1].Condition.Amounts) != 2 {
		t.Errorf("the first script does not begin with the calls: %+v", first)
	}
	if first.Writes[0].Delta != 2 {
		t.Errorf("the item of a call carries %d plain units of its entity, want 2", first.Writes[0].Delta)
	}
	for i, b := range batches {
		if len(b.Writes) > 4 {
			t.Errorf("script %d carries %d counters, want 4 at most", i, len(b.Writes))
		}
	}
	if s := n.Stats(); s.Undelivered != 0 {
		t.Errorf("%d units wait", s.Undelivered)
	}
	w.conserves(n)
}

// What was asked for by a batch that nobody knows the fate of is dropped as unknown, and
// nobody is told that it was granted.
func TestCallsOfAnOrphanedBatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(nil)
	n.grantsAreCounted()
	n.asksFleet("k", 1) // number 1
	n.audit.counted = map[counter]uint64{}
	n.audit.delivered = map[counter]uint64{}
	w.mem.FlushAll()
	n.link.breaks(nil, errTimeout)
	if _, err := n.CheckFleet(context.Background(), "k", 5); !errors.Is(err, ErrNotFleet) {
		t.Fatal(err)
	}
	w.mem.Delete(n.partitions[0].sequence)
	n.link.heals()
	w.clock.Advance(3 * time.Second)
	s := n.Stats()
	if s.Dropped.Unknown != 5 || s.Counted != 1+5+5 || s.Undelivered != 0 {
		t.Errorf("unknown %d, counted %d, undelivered %d; want 5, 11, 0", s.Dropped.Unknown, s.Counted, s.Undelivered)
	}
	if d, err := n.CheckFleet(context.Background(), "k", 1); err != nil || d.Level() != 11 {
		t.Errorf("level %v, %v; the store holds what was granted in vain and what was counted here", d.Level(), err)
	}
}

func TestCallsOfAForeignSequence(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(nil)
	w.mem.Set(n.partitions[0].sequence, "7 1")
	if d, err := n.asksFleet("k", 5); !errors.Is(err, ErrNotFleet) || !errors.Is(err, errSequenceTaken) || !d.Allowed() {
		t.Errorf("%v, %v", d.Verdict(), err)
	}
	w.clock.Advance(3 * time.Second)
	if d, err := n.asksFleet("k", 1); err != nil || d.Level() != 6 {
		t.Errorf("afterwards level %v, %v; want 6", d.Level(), err)
	}
	w.conserves(n)
}

// A script that runs in the next epoch grants beside what others were granted there.
func TestAGrantOfAnEpochThatIsOverIsAskedForAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	strict := func(c *Config) {
		c.Window, c.WindowStrict, c.GlobalThreshold, c.Inclusive = WindowSliding, true, 10, true
	}
	n, other := w.node(strict), w.node(strict)
	w.clock.Advance(59*time.Second + 900*time.Millisecond)
	n.asksFleet("other", 1)
	n.grantsAreCounted()
	var once sync.Once
	n.link.hook(func(*store.Batch) error {
		once.Do(func() {
			w.clock.StepWall(200 * time.Millisecond) // under way over the boundary
			if d, err := other.asksFleet("k", 10); err != nil || !d.Allowed() {
				t.Errorf("the other node: %v, %v", d.Verdict(), err)
			}
		})
		return nil
	}, func(*store.Reply) error { return nil })
	d, err := n.CheckFleet(context.Background(), "k", 4)
	if err != nil || d.Allowed() {
		t.Errorf("%v, %v: 14 units granted in one window of 10", d.Verdict(), err)
	}
	w.clock.Advance(2 * time.Second)
	if s := n.Stats(); s.Returned.Taken != 4 || s.Returned.Waiting != 0 {
		t.Errorf("returned %+v", s.Returned)
	}
	w.conserves(n, other)
}

func TestAPoisonedCounterIsNotTheFleets(t *testing.T) {
	t.Parallel()
	for _, epoch := range []int64{0, -1} {
		w := newWorld(t)
		n := w.node(nil)
		w.mem.SetForeign(n.counterKey("k", n.epochAt(epoch)))
		if d, err := n.CheckFleet(context.Background(), "k", 1); !errors.Is(err, ErrNotFleet) || !d.Allowed() {
			t.Errorf("epoch %d: %v, %v", epoch, d.Verdict(), err)
		}
		if _, err := n.PeekFleet(context.Background(), "k"); !errors.Is(err, ErrNotFleet) {
			t.Errorf("epoch %d: PeekFleet: %v", epoch, err)
		}
	}
}

func TestCheckFleetWithoutABound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.GlobalThreshold = 1 << 60 })
	for range 3 {
		if d, err := n.CheckFleet(context.Background(), "k", 1<<63); err != nil || !d.Allowed() {
			t.Errorf("%v at %v, %v", d.Verdict(), d.Level(), err)
		}
	}
	w.clock.Advance(time.Second)
	if s := n.Stats(); s.Undelivered != 0 {
		t.Errorf("%+v", s)
	}
}

func TestCheckFleetCountsLimitedIfAskedTo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.CountLimited, c.GlobalThreshold = true, 10 })
	n.asksFleet("k", 9)
	d, _ := n.CheckFleet(context.Background(), "k", 7)
	n.audit.count("k", n.epochAt(0), 7)
	if d.Allowed() {
		t.Error("allowed")
	}
	if d, err := n.PeekFleet(context.Background(), "k"); err != nil || d.Level() != 16 {
		t.Errorf("level %v, %v; want 16", d.Level(), err)
	}
	w.conserves(n)
}

func TestCheckFleetInADryRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.DryRun, c.GlobalThreshold = true, 3 })
	n.asksFleet("k", 2)
	d, err := n.asksFleet("k", 1)
	if err != nil || !d.Allowed() || d.Verdict() != VerdictLimited || !d.DryRun() {
		t.Errorf("%v, allowed %v, %v", d.Verdict(), d.Allowed(), err)
	}
	w.conserves(n)
}
