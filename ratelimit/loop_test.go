package ratelimit

// This file tests when ticks happen under a fake clock: the whole ones, those for
// hot entities between them, and the wait before a partition connects again.

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hanzoai/limiters/ratelimit/store"
)

func TestAFakeClockTicksAtEachInterval(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.TickInterval = 250 * time.Millisecond })
	var at []int64
	n.link.hook(func(*store.Batch) error {
		_, mono := w.clock.Now()
		at = append(at, mono)
		return nil
	}, nil)
	_, began := w.clock.Now()
	for range 4 {
		n.check("a", 1)
		w.clock.Advance(250 * time.Millisecond)
	}
	for i := range at {
		at[i] = (at[i] - began) / 1e6
	}
	if diff := cmp.Diff([]int64{250, 500, 750, 1000}, at); diff != "" {
		t.Errorf("ticks in ms (-want +got):\n%s", diff)
	}
}

func TestHotEntitiesAreSyncedBetweenTicks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) {
		c.HotSyncInterval, c.GlobalThreshold, c.SyncByUnits = 200*time.Millisecond, 1000, false
	})
	var ticks []string
	for i := range 10 {
		for key, first := range map[string]uint64{"idle": 1, "warm": 700, "hot": 850} {
			if i > 0 {
				first = 1
			}
			n.check(key, first)
		}
		w.clock.Advance(100 * time.Millisecond)
		ticks = append(ticks, entities(n.link.take()))
	}
	want := []string{"", "hot", "", "hot", "", "hot", "", "hot", "", "hot warm idle"}
	if diff := cmp.Diff(want, ticks); diff != "" {
		t.Errorf("what each 100 ms sent (-want +got):\n%s", diff)
	}
	w.conserves(n)
}

// A tick for hot entities neither defers the others nor keeps house.
func TestAHotTickTakesOnlyTheHot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.HotSyncInterval, c.MaxSyncKeysPerTick = 100*time.Millisecond, 2 })
	for i := range 5 {
		n.check(fmt.Sprint("hot", i), 90)
		n.check(fmt.Sprint("idle", i), 1)
	}
	w.clock.Advance(100 * time.Millisecond)
	if got := entities(n.link.take()); got != "hot0 hot1" {
		t.Errorf("a hot tick took %q, want its share of the hot ones", got)
	}
	if s := n.Stats(); s.Deferred != 0 || s.Queued != 8 {
		t.Errorf("%d deferred, %d queued after a hot tick, want 0 and 8", s.Deferred, s.Queued)
	}
	w.conserves(n)
}

// Redials back off: after 100 ms, 200, 400, 800, 800, …; an answer starts over. An
// attempt that was refused or got no reply needs no other connection than its next.
func TestRedialsBackOff(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		failure error
		want    []int64 // ms
	}{
		{errUnreachable, []int64{25, 125, 325, 725, 1525, 2325, 3125}},
		{errReadOnly, []int64{25, 50, 75, 100, 125, 150, 175}},
		{errTimeout, []int64{25, 50, 75, 100, 125, 150, 175}},
	} {
		w := newWorld(t)
		n := w.node(func(c *Config) { c.TickInterval = 25 * time.Millisecond })
		_, began := w.clock.Now()
		var at []int64
		failure := c.failure
		n.link.hook(func(*store.Batch) error {
			_, mono := w.clock.Now()
			at = append(at, (mono-began)/1e6)
			return failure
		}, nil)
		n.check("a", 1)
		for len(at) < len(c.want) {
			w.clock.Advance(25 * time.Millisecond)
		}
		if diff := cmp.Diff(c.want, at); diff != "" {
			t.Errorf("%v: attempts in ms (-want +got):\n%s", c.failure, diff)
		}
		n.syncFails() // Sync does not wait
		failure = nil
		n.sync()
		failure, at = errUnreachable, nil
		n.check("a", 1)
		_, began = w.clock.Now()
		w.clock.Advance(125 * time.Millisecond)
		if diff := cmp.Diff([]int64{25, 125}, at); diff != "" {
			t.Errorf("after an answer: attempts in ms (-want +got):\n%s", diff)
		}
		w.conserves(n)
	}
}

func TestSyncSaysWhichPartitionFailed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n, links := w.nodeOf(3, nil)
	for i := range 30 {
		n.check(fmt.Sprint("k", i), 1)
	}
	links[0].breaks(errUnreachable, nil)
	links[2].breaks(errTimeout, nil)
	err := n.Sync(context.Background())
	if want := "ratelimit: partition p0: store: connect: unreachable: nothing listens\n" +
		"ratelimit: partition p2: store: reply: timeout: no reply"; err == nil || err.Error() != want {
		t.Errorf("Sync = %q, want %q", err, want)
	}
	var failed *PartitionError
	if !errors.As(err, &failed) || failed.Partition != "p0" || !errors.Is(err, errTimeout) {
		t.Errorf("Sync = %#v, want the partitions' errors inside", err)
	}
	w.conserves(n)
}

// A caller who gives up in the middle says nothing about the partition either.
func TestSyncGivenUpInTheMiddleLeavesThePartitionUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.MaxKeysPerScript = 1 })
	n.check("a", 1)
	n.check("b", 2)
	ctx, giveUp := context.WithCancel(context.Background())
	n.link.hook(nil, func(*store.Reply) error { giveUp(); return nil })
	if err := n.Sync(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Sync = %v, want %v", err, context.Canceled)
	}
	if p := n.Stats().Partitions[0]; !p.Up || n.log.Len() > 0 {
		t.Errorf("partition %+v, log %q; want it up, and nothing said", p, n.log)
	}
	n.link.heals()
	w.clock.Advance(time.Second) // and it does not wait for anything
	if got := n.Stats(); got.Delivered != 3 {
		t.Errorf("%d units delivered, want 3", got.Delivered)
	}
	w.conserves(n)
}

// Asked with a context that has ended, Sync tries nothing: a caller who has no time
// says nothing about the partition.
func TestSyncWithAnEndedContextTriesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(nil)
	n.check("a", 1)
	n.sync()
	n.check("a", 1)
	n.link.take()
	ended, end := context.WithCancel(context.Background())
	end()
	for range 20 {
		if err := n.Sync(ended); !errors.Is(err, context.Canceled) {
			t.Fatalf("Sync = %v, want %v", err, context.Canceled)
		}
	}
	if got := n.link.take(); len(got) != 0 || !n.Stats().Partitions[0].Up {
		t.Errorf("it sent batches %v; partition %+v", numbers(got), n.Stats().Partitions[0])
	}
}

func TestSyncWaitsForTheTickUnderWayWithinItsContext(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(nil)
	entered, release := make(chan struct{}), make(chan struct{})
	n.link.hook(func(*store.Batch) error { close(entered); <-release; return nil }, nil)
	n.check("a", 1)
	done := make(chan error)
	go func() { done <- n.Sync(context.Background()) }()
	<-entered
	n.link.heals()
	n.check("a", 1)
	ctx, end := context.WithCancel(context.Background())
	go func() { done <- n.Sync(ctx) }()
	end()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Sync behind a hung tick = %v, want %v", err, context.Canceled)
	}
	w.clock.Advance(3 * time.Second) // the clock's ticks pass it by
	if got := len(n.link.take()); got != 1 {
		t.Errorf("%d attempts while one has not returned, want that one", got)
	}
	go func() { done <- n.Sync(context.Background()) }()
	close(release)
	for range 2 {
		if err := <-done; err != nil {
			t.Errorf("Sync = %v", err)
		}
	}
	if s := n.Stats(); s.Delivered != 2 {
		t.Errorf("%+v, want both units delivered", s)
	}
}
