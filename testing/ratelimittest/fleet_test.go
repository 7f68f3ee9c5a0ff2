package ratelimittest_test

// This file tests fleets: one budget, nodes that are cut off, clocks that differ.

import (
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/testing/ratelimittest"
)

// limit is a configuration with a threshold per minute.
func limit(threshold uint64) ratelimit.Config {
	cfg := ratelimit.DefaultConfig()
	cfg.GlobalThreshold = threshold
	return cfg
}

// pass has a node check single units until one is limited, and returns how many
// passed.
func pass(n *ratelimittest.Node, key string) (passed int) {
	for passed < 10_000 && n.Allow(key) {
		passed++
	}
	return passed
}

func TestAFleetSharesOneBudget(t *testing.T) {
	t.Parallel()
	f := ratelimittest.NewFleet(t, 3, limit(100))
	if got := pass(f.Node(0), "k"); got != 99 {
		t.Errorf("the first node admits %d units, want 99", got)
	}
	f.Node(1).Check("k", 1) // first contact
	f.Advance(2 * time.Second)
	for i, want := range []bool{false, false, true} { // the last knows nothing of the key
		if d := f.Node(i).Check("k", 5); d.Allowed() != want {
			t.Errorf("node %d: %v on %v at level %v", i, d.Verdict(), d.Basis(), d.Level())
		}
	}
}

func TestACutOffNodeGoesOnAloneAndCatchesUp(t *testing.T) {
	t.Parallel()
	f := ratelimittest.NewFleet(t, 2, limit(100))
	f.Node(0).CutOff()
	if got := pass(f.Node(0), "k"); got != 99 {
		t.Errorf("the node that is cut off admits %d units, want 99", got)
	}
	f.Advance(5 * time.Second)
	if got := pass(f.Node(1), "k"); got != 99 {
		t.Errorf("the other admits %d units, want 99", got)
	}
	f.Node(0).Reconnect()
	f.Advance(2 * time.Second)
	if held, _ := f.Store().Total(counterKey(limit(100), "k", f.Clock().Time())); held != 198 {
		t.Errorf("the store holds %d units, want 198", held)
	}
	writes, _ := f.Asked("k")
	if r := f.Requests(); writes != 2 || r.Writes != 2 || r.Answered >= r.Attempts {
		t.Errorf("the store was asked for %d writes; the nodes for %+v", writes, r)
	}
}

func TestTheStoreFailsForAll(t *testing.T) {
	t.Parallel()
	f := ratelimittest.NewFleet(t, 4, limit(100))
	f.Store().Fail(ratelimittest.ReplyLost)
	for _, n := range f.Nodes() {
		n.Check("k", 1)
	}
	f.Advance(3 * time.Second)
	f.Store().Heal()
	f.Advance(2 * time.Second)
	for i, n := range f.Nodes() {
		if st := n.Stats(); st.Delivered != 1 || st.Undelivered != 0 {
			t.Errorf("node %d: delivered %d, undelivered %d", i, st.Delivered, st.Undelivered)
		}
	}
	if held, _ := f.Store().Total(counterKey(limit(100), "k", f.Clock().Time())); held != 4 {
		t.Errorf("the store holds %d units, want 4", held)
	}
}

// A node whose wall is a window ahead counts in the window after the others'.
func TestNodesHaveWallsOfTheirOwn(t *testing.T) {
	t.Parallel()
	f := ratelimittest.NewFleet(t, 2, limit(100))
	f.Node(1).SetOffset(time.Minute)
	for _, n := range f.Nodes() {
		n.Check("k", 7)
	}
	f.Advance(2 * time.Second)
	for i := range 2 {
		at := f.Clock().Time().Add(time.Duration(i) * time.Minute)
		if held, _ := f.Store().Total(counterKey(limit(100), "k", at)); held != 7 {
			t.Errorf("in window %d the store holds %d units, want 7", i, held)
		}
	}
}

// Ticks are spread over the interval, in the order of the nodes.
func TestTicksAreSpread(t *testing.T) {
	t.Parallel()
	f := ratelimittest.NewFleet(t, 4, limit(100))
	for _, n := range f.Nodes() {
		n.Check("k", 1)
	}
	for quarter := uint64(1); quarter <= 8; quarter++ {
		f.Advance(250 * time.Millisecond)
		want := min(max(quarter, 3)-3, 4) // from 1 s on, one every 250 ms
		if got := f.Requests().Attempts; got != want {
			t.Errorf("%d requests after %d quarters of the interval, want %d", got, quarter, want)
		}
	}
}

// The same traffic on the same fleet comes out the same.
func TestAFleetIsDeterministic(t *testing.T) {
	t.Parallel()
	report := func() ratelimittest.Report {
		f := ratelimittest.NewFleet(t, 5, limit(300))
		f.Store().Delay(20 * time.Millisecond)
		r := ratelimittest.Start(f, ratelimittest.Traffic{Load: ratelimittest.OnOff(12, 40*time.Second, 20*time.Second), Seed: 3})
		r.Advance(10 * time.Minute)
		return r.Report("key")
	}
	first, second := report(), report()
	if !reflect.DeepEqual(first, second) {
		t.Errorf("%+v, then %+v", first, second)
	}
	if first.Limited == 0 || first.Writes == 0 || first.Reads == 0 {
		t.Errorf("nothing happened: %+v", first)
	}
}

// In a synctest bubble limiters run their ordinary clock, loops and goroutines, and
// the bubble's time is theirs.
func TestInABubbleTheOrdinaryLoopRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := ratelimittest.NewFleetInBubble(t, 3, limit(100))
		for _, n := range f.Nodes() {
			n.Check("k", 33)
		}
		f.Advance(3 * time.Second)
		synctest.Wait()
		for i, n := range f.Nodes() {
			if st := n.Stats(); st.Delivered != 33 || st.Undelivered != 0 {
				t.Errorf("node %d: delivered %d, undelivered %d after 3 s", i, st.Delivered, st.Undelivered)
			}
			n.Check("k", 0)
		}
		f.Store().Fail(ratelimittest.Unreachable)
		f.Advance(10 * time.Minute)
		if d := f.Node(0).Check("k", 1); !d.Allowed() {
			t.Errorf("ten minutes later: %v at level %v", d.Verdict(), d.Level())
		}
	})
}

// A store without a clock waits on the bubble's time, as long as a slow Redis.
func TestInABubbleASlowStoreTakesTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := ratelimittest.NewStore(nil)
		l, err := ratelimit.New(limit(100), ratelimittest.WithStore(s))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close(t.Context())
		l.Check("k", 5)
		s.Delay(80 * time.Millisecond)
		before := time.Now()
		if err := l.Sync(t.Context()); err != nil {
			t.Error(err)
		}
		if took := time.Since(before); took != 80*time.Millisecond {
			t.Errorf("Sync took %v, want 80ms", took)
		}
	})
}
