package ratelimit

// This file tests what a reply does to entries (docs/design.md, the tick): which
// totals they learn, what leaves pending, and what a reply that is none changes.

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/hanzoai/limiters/ratelimit/store"
)

// A reply that does not fit acknowledges nothing; the batch is in doubt from then
// on, is sent again, and counts once.
func TestAReplyThatDoesNotFitAcknowledgesNothing(t *testing.T) {
	t.Parallel()
	spoils := map[string]func(r *store.Reply){
		"number above":               func(r *store.Reply) { r.Number++ },
		"number below":               func(r *store.Reply) { r.Number-- },
		"number zero":                func(r *store.Reply) { r.Number = 0 },
		"empty":                      func(r *store.Reply) { *r = store.Reply{} },
		"no outcome":                 func(r *store.Reply) { r.Outcome = 0 },
		"unknown outcome":            func(r *store.Reply) { r.Outcome = store.BadSequence + 1 },
		"a write missing":            func(r *store.Reply) { r.Writes = r.Writes[:1] },
		"a write too many":           func(r *store.Reply) { r.Writes = append(r.Writes, store.WriteResult{}) },
		"a read missing":             func(r *store.Reply) { r.Reads = nil },
		"a read too many":            func(r *store.Reply) { r.Reads = append(r.Reads, 0) },
		"unknown status":             func(r *store.Reply) { r.Writes[0].Status = store.Skipped + 1 },
		"applied, but skipped":       func(r *store.Reply) { r.Writes[1].Status = store.Skipped },
		"orphan, but written":        func(r *store.Reply) { r.Outcome = store.Orphan },
		"no sequence, but written":   func(r *store.Reply) { r.Outcome = store.BadSequence },
		"a written total too large":  func(r *store.Reply) { r.Writes[1].Total = store.MaxUnits + 1 },
		"a written total below none": func(r *store.Reply) { r.Writes[1].Total = store.Invalid - 1 },
		"a read total too large":     func(r *store.Reply) { r.Reads[0] = math.MaxInt64 },
		"a read total below none":    func(r *store.Reply) { r.Reads[0] = math.MinInt64 },
	}
	for name, spoil := range spoils {
		w := newWorld(t)
		n := w.node(nil)
		n.check("a", 3)
		n.check("b", 4)
		n.link.hook(nil, func(r *store.Reply) error { spoil(r); return nil })
		n.syncFails()
		s := n.Stats()
		if s.Delivered != 0 || s.Undelivered != 7 || s.Dropped != (Dropped{}) || s.Partitions[0].Up || s.Partitions[0].Scripts != 0 {
			t.Errorf("%s: %+v, want nothing acknowledged", name, s)
		}
		if e := n.entry("a"); e.synced || e.slots[1].total != 0 || e.slots[1].pending != 3 {
			t.Errorf("%s: the entry learned %+v", name, e.slots)
		}
		w.conserves(n)
		n.link.heals()
		n.link.take()
		n.sync()
		if b := n.link.take(); len(b) != 1 || !b[0].Retry || b[0].Number != 1 {
			t.Errorf("%s: afterwards %+v, want batch 1 again", name, b)
		}
		if got := w.total(n, "a", n.epochAt(0)) + w.total(n, "b", n.epochAt(0)); got != 7 {
			t.Errorf("%s: the store holds %d, want 7", name, got)
		}
		w.conserves(n)
	}
}

// A store that answers nothing must not pass with the answer to the batch before,
// nor with that to an earlier attempt.
func TestTheReplyBeforeIsNoReply(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(nil)
	n.check("a", 1)
	n.link.breaks(nil, errTimeout) // the reply is filled in all the same
	n.syncFails()
	silent := &silentStore{}
	n.partitions[0].store = silent
	n.syncFails()
	if s := n.Stats(); s.Delivered != 0 || s.Undelivered != 1 {
		t.Errorf("a store that answered nothing delivered: %+v", s)
	}
	n.partitions[0].store = n.link
	n.link.heals()
	n.sync()
	w.conserves(n)
}

// What is recorded between the encoding of a batch and its reply survives the
// reply, and goes out with the next batch.
func TestUnitsRecordedDuringASyncSurviveIt(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"before", "after"} {
		w := newWorld(t)
		n := w.node(func(c *Config) { c.GlobalThreshold = 1000 })
		check := func() error { n.check("a", 5); n.check("new", 2); return nil }
		n.check("a", 3)
		if when == "before" {
			n.link.hook(func(*store.Batch) error { return check() }, nil)
		} else {
			n.link.hook(nil, func(*store.Reply) error { return check() })
		}
		n.sync()
		e := n.entry("a")
		if got := e.slots[1]; got != (slot{pending: 5, unsent: 5, total: 3}) {
			t.Errorf("%s the store saw the batch: %+v, want 5 pending and unsent, total 3", when, got)
		}
		if level := n.Peek("a").Level(); level != 8 {
			t.Errorf("%s: level %v, want 8", when, level)
		}
		n.link.heals()
		n.sync()
		if got := e.slots[1]; got != (slot{total: 8}) {
			t.Errorf("%s: after the next tick %+v, want all 8 in the total", when, got)
		}
		w.conserves(n)
	}
}

// A reply that comes in the epoch after its batch's: the totals go to the epochs of
// their keys, and what was recorded meanwhile in the new epoch stays there.
func TestAReplyAcrossAnEpochKeepsTheEpochsApart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.GlobalThreshold, c.TickInterval = 1000, 15*time.Second })
	other := w.node(func(c *Config) { c.TickInterval = 15 * time.Second })
	other.check("a", 40)
	other.sync()
	w.clock.Advance(59 * time.Second) // epoch 0
	n.check("a", 3)
	n.link.hook(func(*store.Batch) error {
		n.check("a", 5)
		return nil
	}, func(*store.Reply) error {
		w.clock.Advance(2 * time.Second)
		n.check("a", 7)
		return nil
	})
	n.sync()
	e := n.entry("a")
	if e.epoch != n.epochAt(0) || e.slots != [2]slot{{pending: 5, unsent: 5, total: 43}, {pending: 7, unsent: 7}} {
		t.Errorf("slots %+v in epoch %d, want total 43 in the epoch before", e.slots, e.epoch)
	}
	if e.prevFinal {
		t.Error("the total of the epoch before counts as final although it was read in that epoch")
	}
	w.conserves(n, other)
	n.link.heals()
	n.link.take()
	n.sync()
	if e.slots != [2]slot{{total: 48}, {total: 7}} {
		t.Errorf("after the next tick: %+v", e.slots)
	}
	w.conserves(n, other)
}

// A reply that comes two epochs later finds no slot of its own: nothing is learned
// from it, nothing is subtracted from anybody else's units.
func TestTotalsOfOtherEpochsAreIgnored(t *testing.T) {
	t.Parallel()
	for _, leap := range []time.Duration{2 * time.Minute, time.Hour, -2 * time.Minute, -24 * time.Hour} {
		w := newWorld(t)
		n := w.node(func(c *Config) { c.TickInterval = 15 * time.Second })
		w.clock.Advance(30 * time.Second)
		n.check("a", 60)
		n.link.hook(nil, func(*store.Reply) error {
			w.clock.StepWall(leap)
			n.check("a", 5)
			return nil
		})
		n.sync()
		e := n.entry("a")
		if e.slots != [2]slot{{}, {pending: 5, unsent: 5}} || e.slide.Aging != 0 {
			t.Errorf("a leap of %v: slots %+v, estimate %v, want the units since alone", leap, e.slots, e.slide.Aging)
		}
		if s := n.Stats(); s.Delivered != 60 {
			t.Errorf("a leap of %v: %+v, want 60 delivered", leap, s)
		}
		n.link.heals()
		w.conserves(n)
		n.sync()
		w.conserves(n)
	}
}

// The estimate is that of the moment when the answered attempt was sent, not of
// the reply and not of the first attempt.
func TestTheEstimateIsOfTheAnsweredAttempt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.GlobalThreshold, c.TickInterval = 600, 15*time.Second })
	n.check("a", 240)
	n.sync()
	w.clock.Advance(69 * time.Second) // 9 s into the next epoch
	n.check("a", 60)
	n.link.breaks(nil, errTimeout)
	n.syncFails()
	w.clock.Advance(3 * time.Second)
	n.link.hook(nil, func(*store.Reply) error { w.clock.Advance(2 * time.Second); return nil })
	_, sent := w.clock.Now()
	n.sync()
	e := n.entry("a")
	if want := 240*0.8 + 60; e.slide.Aging != want || e.syncedAt != sent || e.readAt != sent {
		t.Errorf("estimate %v as of %d, want %v as of %d, 12 s into the epoch", e.slide.Aging, e.syncedAt, want, sent)
	}
	// 2 s later it has leaked 20 units, to below what the counts weigh.
	if got, want := n.Peek("a").Level(), 240*0.8+60-20; math.Abs(got-want) > 1e-9 {
		t.Errorf("level %v, want %v", got, want)
	}
}

func TestAnInvalidTotalTeachesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.GlobalThreshold = 1000 })
	n.check("a", 50)
	n.sync()
	w.mem.Set(n.counterKey("a", n.epochAt(0)), "no number")
	n.check("a", 10)
	n.sync()
	if e := n.entry("a"); e.slots[1] != (slot{pending: 10, total: 50}) {
		t.Errorf("%+v, want the last valid total and the poisoned units still pending", e.slots[1])
	}
	if d := n.Stats().Dropped; d != (Dropped{Poisoned: 10}) {
		t.Errorf("dropped %+v", d)
	}
	if level := n.Peek("a").Level(); level != 60 {
		t.Errorf("level %v, want 60", level)
	}
	w.clock.Advance(2 * time.Minute) // they age like any others
	if level := n.Peek("a").Level(); level != 0 {
		t.Errorf("level %v two windows later, want 0", level)
	}
}

func TestPoisonCostsOnlyItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(nil)
	for i, poison := range []string{"x", "-9", "1 2", "1.5", ""} {
		w.mem.Set(n.counterKey(fmt.Sprint("bad", i), n.epochAt(0)), poison)
	}
	w.mem.SetForeign(n.counterKey("list", n.epochAt(0)))
	for i := range 6 {
		n.check(fmt.Sprint("good", i), 2)
		n.check(fmt.Sprint("bad", i), 3) // bad5 is fine
	}
	n.check("list", 3)
	n.sync()
	if s := n.Stats(); s.Delivered != 15 || s.Dropped != (Dropped{Poisoned: 18}) || s.Undelivered != 0 {
		t.Errorf("%+v, want 15 delivered and 18 poisoned", s)
	}
	w.conserves(n)
}

// A refused counter takes nothing, for the time being: its units wait, those of a
// forgotten key too, and are sent with the next tick.
func TestRefusedUnitsReturnToUnsent(t *testing.T) {
	t.Parallel()
	for _, forgets := range []bool{false, true} {
		w := newWorld(t)
		n := w.node(nil)
		n.check("a", 3)
		n.check("fine", 1)
		key := n.counterKey("a", n.epochAt(0))
		w.mem.Fail(key, store.Refused)
		n.link.hook(func(*store.Batch) error {
			n.check("a", 2)
			if forgets {
				n.Forget("a")
			}
			return nil
		}, nil)
		n.sync()
		n.link.heals()
		for range 3 {
			e := n.entry("a")
			if e == nil || e.slots[1].unsent != 5 || e.slots[1].pending != 5 {
				t.Fatalf("forgotten %v: %+v, want 5 unsent and pending", forgets, e)
			}
			if s := n.Stats(); s.Undelivered != 5 || s.Delivered != 1 || s.Dropped != (Dropped{}) {
				t.Errorf("forgotten %v: %+v", forgets, s)
			}
			w.conserves(n)
			n.sync()
		}
		w.mem.Fail(key, store.Written)
		n.sync()
		if got := w.total(n, "a", n.epochAt(0)); got != 5 {
			t.Errorf("forgotten %v: the store holds %d, want 5", forgets, got)
		}
		if d := n.Peek("a"); forgets != (d.Basis() == BasisFirstContact) {
			t.Errorf("forgotten %v: after its delivery the key is known: %v", forgets, d.Basis())
		}
		w.conserves(n)
	}
}

func TestUnitsRefusedTooLongAreStale(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(nil)
	n.check("a", 3)
	w.mem.Fail(n.counterKey("a", n.epochAt(0)), store.Refused)
	n.link.hook(nil, func(*store.Reply) error { w.clock.StepWall(2 * time.Minute); return nil })
	n.sync()
	if s := n.Stats(); s.Dropped != (Dropped{Stale: 3}) || s.Undelivered != 0 {
		t.Errorf("%+v, want 3 stale", s)
	}
	w.conserves(n)
}

func TestUnexpiringUnitsAreDelivered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(nil)
	n.check("a", 3)
	w.mem.Fail(n.counterKey("a", n.epochAt(0)), store.Unexpiring)
	n.sync()
	if s := n.Stats(); s.Delivered != 3 || s.Dropped != (Dropped{}) {
		t.Errorf("%+v, want 3 delivered", s)
	}
	if e := n.entry("a"); e.slots[1] != (slot{total: 3}) {
		t.Errorf("%+v", e.slots[1])
	}
	w.conserves(n)
}

// A duplicate is told the statuses of the attempt that was applied.
func TestStatusesSurviveALostReply(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(nil)
	w.mem.Set(n.counterKey("poisoned", n.epochAt(0)), "x")
	w.mem.Fail(n.counterKey("refused", n.epochAt(0)), store.Refused)
	n.check("poisoned", 3)
	n.check("refused", 4)
	n.check("fine", 5)
	n.link.breaks(nil, errTimeout)
	n.syncFails()
	w.mem.Delete(n.counterKey("poisoned", n.epochAt(0)))
	w.mem.Fail(n.counterKey("refused", n.epochAt(0)), store.Written)
	n.link.hook(nil, func(*store.Reply) error { n.link.breaks(errTimeout, nil); return nil })
	n.syncFails() // acknowledges the first batch; the refused units go out with the second
	if s := n.Stats(); s.Delivered != 5 || s.Dropped != (Dropped{Poisoned: 3}) || s.Undelivered != 4 {
		t.Errorf("%+v, want 5 delivered, 3 poisoned, 4 in flight again", s)
	}
	n.link.heals()
	n.sync()
	if s := n.Stats(); s.Delivered != 9 {
		t.Errorf("%+v, want 9 delivered", s)
	}
	w.conserves(n)
}

// Units that a store refuses stay pending even if the wall clock left and came back
// meanwhile, so that the entry forgot them.
func TestRefusedUnitsArePendingAfterALeap(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(nil)
	n.check("a", 7)
	w.mem.Fail(n.counterKey("a", n.epochAt(0)), store.Refused)
	n.link.hook(nil, func(*store.Reply) error {
		w.clock.StepWall(-time.Hour)
		n.Peek("a")
		w.clock.StepWall(time.Hour)
		return nil
	})
	n.sync()
	if d := n.Peek("a"); d.Level() != 7 {
		t.Errorf("level %v after the store refused 7 units, want 7", d.Level())
	}
	w.conserves(n)
}

// A reply takes out of pending what its batch carried, not what was recorded since an
// entry started afresh and forgot it.
func TestAcknowledgedUnitsOfAForgottenPastLeaveOthersPending(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(nil)
	n.check("a", 7)
	n.link.hook(nil, func(*store.Reply) error {
		w.clock.StepWall(-time.Hour)
		n.Peek("a")
		w.clock.StepWall(time.Hour)
		n.check("a", 5)
		return nil
	})
	n.sync()
	if d := n.Peek("a"); d.Level() != 12 {
		t.Errorf("level %v with 7 units in the store and 5 unsent, want 12", d.Level())
	}
	w.conserves(n)
}

func TestDeltasAndTotalsSaturate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.GlobalThreshold, c.CountLimited = math.MaxUint64, true })
	n.Check("a", store.MaxUnits)
	n.Check("a", 10)
	n.link.hook(func(*store.Batch) error { n.Check("a", 10); return nil }, nil)
	n.sync()
	s := n.Stats()
	if s.Delivered != store.MaxUnits || s.Dropped != (Dropped{Overflow: 10}) || s.Undelivered != 10 {
		t.Errorf("%+v, want 2^53 − 1 delivered, 10 overflown, 10 unsent", s)
	}
	n.link.heals()
	n.sync() // the counter is full, and takes more
	if s := n.Stats(); s.Dropped != (Dropped{Overflow: 10}) || s.Delivered != store.MaxUnits+10 || s.Undelivered != 0 {
		t.Errorf("%+v, want 10 more delivered", s)
	}
}

// One absurd cost makes a counter full, which limits the fleet for as long as it can be
// read; a total that is no number would limit nobody.
func TestAnAbsurdCostLimitsTheFleet(t *testing.T) {
	t.Parallel()
	for _, absurd := range []uint64{store.MaxUnits - 50, store.MaxUnits, store.MaxUnits + 1, 1 << 60, math.MaxInt64, math.MaxUint64 - 1, math.MaxUint64} {
		w := newWorld(t)
		var nodes []*node
		for range 5 {
			nodes = append(nodes, w.node(nil))
		}
		for _, n := range nodes {
			n.check("a", 1) // no first contact later
			n.sync()
		}
		nodes[0].Forget("a")
		nodes[0].Check("a", absurd) // a first contact passes
		passed := 0
		for second := range 90 {
			for _, n := range nodes {
				for range 20 {
					if n.Check("a", 1).Allowed() {
						passed++
					}
				}
			}
			w.clock.Advance(time.Second)
			for i, n := range nodes {
				if level := n.Peek("a").Level(); second > 2 && level < 100 || math.IsNaN(level) || math.IsInf(level, 0) {
					t.Fatalf("%d units, second %d, node %d: level %v", absurd, second, i, level)
				}
			}
		}
		if passed > 5*99 { // what a tick hides
			t.Errorf("%d units: %d passed after them", absurd, passed)
		}
		for i, n := range nodes {
			if s := n.Stats(); s.Dropped.Poisoned != 0 || s.Counted != s.Delivered+s.Dropped.Total()+s.Undelivered {
				t.Errorf("%d units, node %d: %+v", absurd, i, s)
			}
		}
	}
}

// A counter to which the store cannot add drops the units as overflow, says that it is
// full, and limits.
func TestACounterThatCannotGrowIsFull(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"9223372036854775807", "9223372036854775805", "9223372036854775808", "99999999999999999999"} {
		w := newWorld(t)
		n := w.node(nil)
		w.mem.Set(n.counterKey("a", n.epochAt(0)), text)
		n.check("a", 3)
		n.sync()
		if s := n.Stats(); s.Dropped != (Dropped{Overflow: 3}) || s.Delivered != 0 || s.Undelivered != 0 {
			t.Errorf("%s: %+v, want 3 overflown", text, s)
		}
		if d := n.Peek("a"); d.Verdict() != VerdictLimited {
			t.Errorf("%s: %v at level %v", text, d.Verdict(), d.Level())
		}
	}
}

// A silentStore says that all is well and answers nothing.
type silentStore struct{}

func (*silentStore) Apply(context.Context, *store.Batch, *store.Reply) error { return nil }
