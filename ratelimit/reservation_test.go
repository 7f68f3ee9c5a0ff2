package ratelimit

// This file tests units given back: where they go from wherever they are.

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/hanzoai/limiters/ratelimit/store"
)

func TestUnsentUnitsGivenBackVanish(t *testing.T) {
	t.Parallel()
	for name, kind := range windows {
		w := newWorld(t)
		n := w.node(kind)
		res := n.reserve("k", 60)
		n.commit(res, 20)
		n.commit(res, 0) // a second settlement is nothing
		res.Cancel()
		if got := n.Peek("k").Level(); got != 20 {
			t.Errorf("%s: level %v after 40 of 60 were given back, want 20", name, got)
		}
		w.conserves(n)
		n.sync()
		if got := w.total(n, "k", n.epochAt(0)); got != 20 {
			t.Errorf("%s: the store holds %d, want 20", name, got)
		}
		if s := n.Stats(); s.Counted != 60 || s.Delivered != 20 || s.Returned != (Returned{Taken: 40}) {
			t.Errorf("%s: %+v", name, s)
		}
		w.conserves(n)
	}
}

func TestDeliveredUnitsGivenBackAreTakenFromTheCounter(t *testing.T) {
	t.Parallel()
	for name, kind := range windows {
		w := newWorld(t)
		n, other := w.node(kind), w.node(kind)
		res := n.reserve("k", 60)
		other.check("k", 7)
		n.sync()
		other.sync()
		n.Peek("k")
		n.sync()
		n.commit(res, 20)
		if got := n.Peek("k").Level(); got < 19 || got > 27 {
			t.Errorf("%s: level %v on the node that gave back, want 27", name, got)
		}
		w.conserves(n, other)
		n.sync()
		if got := w.total(n, "k", n.epochAt(0)); got != 27 {
			t.Errorf("%s: the store holds %d, want 27", name, got)
		}
		other.check("k", 1)
		other.sync()
		if got := other.Peek("k").Level(); got != 28 {
			t.Errorf("%s: level %v on the other node, want 28", name, got)
		}
		if s := n.Stats(); s.Delivered != 20 || s.Returned != (Returned{Taken: 40}) || s.LostTotals != 0 {
			t.Errorf("%s: %+v", name, s)
		}
		w.conserves(n, other)
	}
}

// What is given back while it is in flight waits for its fate.
func TestUnitsInFlightGivenBackWaitForTheirFate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		before, after error
		heal          func(w *world, n *node)
		store         int64
		want          Returned
	}{
		{"delivered", nil, errTimeout, func(w *world, n *node) { n.link.heals() }, 20, Returned{Taken: 40}},
		{"sent again", errTimeout, nil, func(w *world, n *node) { n.link.heals() }, 20, Returned{Taken: 40}},
		{"refused", errReadOnly, nil, func(w *world, n *node) {
			n.link.heals()
			w.mem.Fail(n.counterKey("k", n.epochAt(0)), store.Refused)
			n.sync()
			w.mem.Fail(n.counterKey("k", n.epochAt(0)), store.Written)
		}, 20, Returned{Taken: 40}},
		{"stale", errUnreachable, nil, func(w *world, n *node) { w.clock.Advance(3 * time.Minute); n.link.heals() }, 0, Returned{Clamped: 40}},
		{"unknown", nil, errTimeout, func(w *world, n *node) { w.clock.Advance(3 * time.Minute); n.link.heals() }, 60, Returned{Clamped: 40}},
		{"poisoned", errTimeout, nil, func(w *world, n *node) {
			w.mem.Set(n.counterKey("k", n.epochAt(0)), "no number")
			n.link.heals()
		}, -1, Returned{Clamped: 40}},
	} {
		w := newWorld(t)
		n := w.node(func(c *Config) { c.TickInterval = 5 * time.Second; c.SyncByUnits = false })
		epoch := n.epochAt(0)
		n.check("other", 1)
		n.sync() // so that the batch is not the first
		res := n.reserve("k", 60)
		n.link.breaks(c.before, c.after)
		n.syncFails()
		n.commit(res, 20)
		if got := n.Peek("k").Level(); got != 20 {
			t.Errorf("%s: level %v, want 20", c.name, got)
		}
		if got := n.Stats().Returned; got != (Returned{Waiting: 40}) {
			t.Errorf("%s: %+v while in flight", c.name, got)
		}
		w.conserves(n)
		c.heal(w, n)
		n.sync()
		n.sync()
		if got := w.total(n, "k", epoch); got != c.store && n.epochAt(0) == epoch {
			t.Errorf("%s: the store holds %d, want %d", c.name, got, c.store)
		}
		if got := n.Stats().Returned; got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
		if c.store >= 0 {
			w.conserves(n)
		}
	}
}

// What is owed and what is unsent cancel out: nothing is left to be said.
func TestWhatIsOwedAndUnsentCancelsOut(t *testing.T) {
	t.Parallel()
	for name, kind := range windows {
		for _, more := range []uint64{40, 41, 39} {
			w := newWorld(t)
			n := w.node(func(c *Config) { kind(c); c.SyncByUnits = false })
			w.clock.Advance(5 * time.Second) // from here on the epoch before is read once
			res := n.reserve("k", 60)
			n.sync()
			n.check("k", 0)
			n.sync()
			n.link.take()
			n.commit(res, 20)
			n.check("k", more)
			level := n.Peek("k").Level()
			n.sync()
			attempts := n.link.take()
			if got := n.Peek("k").Level(); got != level || got != float64(20+more) {
				t.Errorf("%s: level %v after the sync, %v before, want %d", name, got, level, 20+more)
			}
			if got := w.total(n, "k", n.epochAt(0)); got != int64(20+more) || more == 40 && len(attempts) > 0 {
				t.Errorf("%s: the store holds %d, want %d; %+v", name, got, 20+more, attempts)
			}
			w.conserves(n)
		}
	}
}

// A batch that gives back is repeated as any other, and takes once.
func TestARepetitionTakesOnce(t *testing.T) {
	t.Parallel()
	for _, failure := range []error{errTimeout, errEOF} {
		w := newWorld(t)
		n := w.node(nil)
		res := n.reserve("k", 60)
		n.sync()
		n.commit(res, 10)
		n.link.breaks(nil, failure)
		n.syncFails()
		n.syncFails()
		w.conserves(n)
		n.link.heals()
		n.sync()
		if got := w.total(n, "k", n.epochAt(0)); got != 10 || n.Stats().Returned != (Returned{Taken: 50}) {
			t.Errorf("%v: the store holds %d; %+v", failure, got, n.Stats().Returned)
		}
		w.conserves(n)
	}
}

// Units that the counter lost cannot be taken from it.
func TestWhatTheCounterLostIsClamped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(nil)
	res, res2 := n.reserve("k", 50), n.reserve("k", 10)
	n.sync()
	w.mem.Set(n.counterKey("k", n.epochAt(0)), "30")
	n.commit(res, 0)
	n.sync()
	if got := n.Stats().Returned; got != (Returned{Taken: 30, Clamped: 20}) {
		t.Errorf("%+v", got)
	}
	n.commit(res2, 0) // the node knows by now that nothing of its own is left
	n.sync()
	if got := n.Stats().Returned; got != (Returned{Taken: 30, Clamped: 30}) {
		t.Errorf("%+v", got)
	}
	if got := n.Peek("k").Level(); got != 0 {
		t.Errorf("level %v", got)
	}
}

// Units of an epoch that no check can see any more are not asked for.
func TestUnitsOfAnUnreadableEpochAreNotTaken(t *testing.T) {
	t.Parallel()
	for _, keep := range []bool{false, true} {
		w := newWorld(t)
		n := w.node(nil)
		res := n.reserve("k", 60)
		n.sync()
		w.clock.Advance(time.Minute)
		if keep {
			n.check("k", 1)
		}
		w.clock.Advance(time.Minute)
		n.link.take()
		n.commit(res, 0)
		n.sync()
		for _, b := range n.link.take() {
			for _, write := range b.Writes {
				if write.Delta < 0 {
					t.Errorf("keep %v: %+v", keep, write)
				}
			}
		}
		if got := n.Stats().Returned; got != (Returned{Clamped: 60}) {
			t.Errorf("keep %v: %+v", keep, got)
		}
		w.conserves(n)
	}
}

// Units of the previous epoch are taken from its counter.
func TestUnitsAreGivenBackToTheirEpoch(t *testing.T) {
	t.Parallel()
	for name, kind := range windows {
		w := newWorld(t)
		n := w.node(kind)
		before := n.epochAt(0)
		res := n.reserve("k", 60)
		w.clock.Advance(61 * time.Second)
		n.check("k", 5)
		n.sync()
		level := n.Peek("k").Level()
		n.commit(res, 0)
		if got := n.Peek("k").Level(); got != 5 {
			t.Errorf("%s: level %v, and %v before, want 5", name, got, level)
		}
		n.sync()
		if old, now := w.total(n, "k", before), w.total(n, "k", n.epochAt(0)); old != 0 && before != n.epochAt(0) || now != 5 {
			t.Errorf("%s: the store holds %d and %d, want 0 and 5", name, old, now)
		}
		if got := n.Peek("k").Level(); got != 5 {
			t.Errorf("%s: level %v after the sync, want 5", name, got)
		}
		w.conserves(n)
	}
}

// Entries that are evicted meanwhile, or forgotten, owe what they owed.
func TestUnitsOfEvictedEntriesAreGivenBack(t *testing.T) {
	t.Parallel()
	for name, evict := range map[string]func(w *world, n *node){
		"forgotten":             func(w *world, n *node) { n.Forget("k") },
		"evicted":               func(w *world, n *node) { n.check("a", 1); n.check("b", 1); n.sync(); n.Peek("a"); n.Peek("b") },
		"forgotten and new":     func(w *world, n *node) { n.Forget("k"); n.check("k", 3) },
		"forgotten and counted": func(w *world, n *node) { n.Forget("k"); n.check("k", 3); n.sync() },
	} {
		w := newWorld(t)
		n := w.node(func(c *Config) { c.LocalCacheMaxEntries = 1 })
		res := n.reserve("k", 60)
		n.sync()
		evict(w, n)
		if n.Peek("k"); res.held.entry.place != gone {
			t.Fatalf("%s: the entry is still there", name)
		}
		rest := w.total(n, "k", n.epochAt(0)) - 60
		n.commit(res, 20)
		w.conserves(n)
		n.sync()
		n.sync()
		want := 20 + rest
		if name == "forgotten and new" {
			want += 3
		}
		if got := w.total(n, "k", n.epochAt(0)); got != want || n.Stats().Returned != (Returned{Taken: 40}) {
			t.Errorf("%s: the store holds %d, want %d; %+v", name, got, want, n.Stats().Returned)
		}
		w.conserves(n)
	}
}

// An entry that was evicted with its units undelivered has dropped them: they vanish with
// their return, and are not taken from what others counted.
func TestDroppedUnitsVanishWithTheirReturn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n, other := w.node(func(c *Config) { c.LocalCacheMaxEntries, c.ChannelCapacity = 1, 1 }), w.node(nil)
	other.check("k", 50)
	other.sync()
	res := n.reserve("k", 60)
	for i := range 20 {
		n.check(fmt.Sprint("flood", i), 1)
	}
	if n.Stats().Dropped.Overflow < 60 {
		t.Fatalf("%+v", n.Stats())
	}
	n.commit(res, 0)
	n.sync()
	if got := w.total(n, "k", n.epochAt(0)); got != 50 || n.Stats().Returned != (Returned{Clamped: 60}) {
		t.Errorf("the store holds %d of another node's 50; %+v", got, n.Stats().Returned)
	}
	w.conserves(n, other)
}

func TestCloseDeliversReturns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		broken error
		store  int64
		report CloseError
	}{
		{"healthy", nil, 10, CloseError{}},
		{"unreachable", errUnreachable, 60, CloseError{Unreturned: 50}},
		{"no answer", errTimeout, 60, CloseError{Unreturned: 50}},
	} {
		w := newWorld(t)
		n := w.node(nil)
		res, late := n.reserve("k", 60), n.reserve("late", 30)
		n.sync()
		n.commit(res, 10)
		n.link.breaks(c.broken, nil)
		err := n.Close(context.Background())
		var got *CloseError
		if errors.As(err, &got); (got == nil) != (c.report == CloseError{}) || got != nil && *got != c.report {
			t.Errorf("%s: Close = %+v", c.name, err)
		}
		n.commit(late, 0) // too late for the fleet
		if total := w.total(n, "k", n.epochAt(0)); total != c.store || n.Peek("late").Level() != 0 {
			t.Errorf("%s: the store holds %d, want %d; level %v", c.name, total, c.store, n.Peek("late").Level())
		}
		w.conserves(n)
		after := n.Reserve("after", 5) // counts for this process alone
		if after.Commit(2); n.Peek("after").Level() != 2 {
			t.Errorf("%s: level %v", c.name, n.Peek("after").Level())
		}
		w.conserves(n)
	}
}

// Reservations that cost more than reserved record the rest; refused ones hold nothing.
func TestCommitRecordsWhatIsMissing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(nil)
	n.commit(n.reserve("k", 10), 25)
	refused := n.reserve("k", 300)
	if refused.Decision().Allowed() || n.Peek("k").Level() != 25 {
		t.Errorf("300 of 100: %v, level %v", refused.Decision().Verdict(), n.Peek("k").Level())
	}
	refused.Cancel()
	n.commit(n.reserve("k", 300), 300) // it happened all the same
	if got := n.Peek("k").Level(); got != 325 {
		t.Errorf("level %v, want 325", got)
	}
	var zero Reservation
	zero.Commit(5)
	zero.Cancel()
	w.conserves(n)
}

func TestRecordNeverRefuses(t *testing.T) {
	t.Parallel()
	for name, kind := range windows {
		w := newWorld(t)
		n := w.node(kind)
		n.SetOverrides(map[string]uint64{"blocked": 0})
		for range 3 {
			for _, key := range []string{"k", "blocked"} {
				n.Record(key, 70)
				n.audit.count(key, n.epochAt(0), 70)
			}
		}
		n.Record("k", 0)
		if got := n.Peek("k"); got.Level() != 210 || got.Allowed() {
			t.Errorf("%s: level %v, %v", name, got.Level(), got.Verdict())
		}
		s := n.Stats()
		if s.Counted != 420 || s.Allowed+s.Limited != 1 {
			t.Errorf("%s: %+v", name, s)
		}
		n.sync()
		if got := w.total(n, "blocked", n.epochAt(0)); got != 210 {
			t.Errorf("%s: the store holds %d, want 210", name, got)
		}
		w.conserves(n)
	}
}

// Absurdly large costs are counted, and given back, to the unit.
func TestHugeReservations(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.GlobalThreshold = 1 << 52 })
	a, b := n.reserve("k", 1<<40), n.reserve("k", 1<<41)
	n.sync()
	n.commit(a, 1)
	n.commit(b, 2)
	n.sync()
	if got := w.total(n, "k", n.epochAt(0)); got != 3 {
		t.Errorf("the store holds %d, want 3; %+v", got, n.Stats().Returned)
	}
	w.conserves(n)
	all := n.Reserve("all", 1<<63)
	n.audit.count("all", n.epochAt(0), store.MaxUnits)
	n.sync()
	n.commit(all, 1)
	n.sync()
	if got := w.total(n, "all", n.epochAt(0)); got != 1 {
		t.Errorf("the store holds %d, want 1; %+v", got, n.Stats().Returned)
	}
	w.conserves(n)
}

// Many reservations at once, settled by several goroutines each, while the limiter syncs.
func TestReservationsAreSettledOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.GlobalThreshold = 1 << 30 })
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for i := range 200 {
				res := n.Reserve(fmt.Sprint("k", i%5), 10)
				n.audit.count(fmt.Sprint("k", i%5), n.epochAt(0), 10)
				var both sync.WaitGroup
				both.Go(res.Cancel)
				both.Go(func() { res.Commit(0) })
				if i%20 == 0 {
					n.Sync(context.Background())
				}
				both.Wait()
			}
		})
	}
	group.Wait()
	n.sync()
	n.sync()
	if s := n.Stats(); s.Returned != (Returned{Taken: 8000}) || s.Delivered != 0 || s.Undelivered != 0 {
		t.Errorf("%+v", s)
	}
	w.conserves(n)
}
