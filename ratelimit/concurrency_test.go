// Tests of many goroutines at once: the decision and the record are one step.

package ratelimit

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// together runs f in so many goroutines that start at once.
func together(goroutines int, f func(i int)) {
	var group sync.WaitGroup
	begin := make(chan struct{})
	for i := range goroutines {
		group.Go(func() {
			<-begin
			f(i)
		})
	}
	close(begin)
	group.Wait()
}

func TestExactlyOneLessThanTheThresholdIsAdmitted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		threshold, units uint64
		goroutines       int
	}{
		{2, 1, 32},
		{3, 1, 2},
		{10, 1, 8},
		{100, 1, 64},
		{1000, 1, 16},
		{5000, 1, 4},
		{100, 3, 16}, // 33 times 3
		{101, 10, 16},
		{20, 19, 8},
	} {
		for _, counts := range []bool{false, true} {
			t.Run(fmt.Sprintf("threshold=%d/units=%d/goroutines=%d/count_limited=%v", c.threshold, c.units, c.goroutines, counts), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				n := w.node(func(cfg *Config) { cfg.GlobalThreshold, cfg.CountLimited = c.threshold, counts }, WithClock(still{w.clock}))
				want := (c.threshold - 1) / c.units
				each := want/uint64(c.goroutines) + 5
				var admitted, asked atomic.Uint64
				together(c.goroutines, func(int) {
					for range each {
						asked.Add(1)
						if n.Check("k", c.units).Allowed() {
							admitted.Add(1)
						}
					}
				})
				if admitted.Load() != want {
					t.Errorf("admitted %d requests, want %d", admitted.Load(), want)
				}
				counted := want * c.units
				if counts {
					counted = asked.Load() * c.units
				}
				if got := n.Stats(); got.Counted != counted || got.Allowed != want || got.Allowed+got.Limited != asked.Load() {
					t.Errorf("counted %d units, allowed %d, limited %d; want %d, %d, %d",
						got.Counted, got.Allowed, got.Limited, counted, want, asked.Load()-want)
				}
			})
		}
	}
}

func TestManyKeysAreEachLimitedExactly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.GlobalThreshold = 5 }, WithClock(still{w.clock}))
	var admitted [500]atomic.Int64
	together(8, func(i int) {
		order := rand.New(rand.NewPCG(1, uint64(i)))
		for range 3 {
			for _, k := range order.Perm(len(admitted)) {
				if n.Check(fmt.Sprint("key", k), 1).Allowed() {
					admitted[k].Add(1)
				}
			}
		}
	})
	for k := range admitted {
		if got := admitted[k].Load(); got != 4 {
			t.Errorf("key %d: admitted %d, want 4", k, got)
		}
	}
}

// Ticks in between must neither let a unit too many through nor lose one. The
// clock stands still, so that nothing leaks.
func TestExactlyOneLessThanTheThresholdIsAdmittedWhileItSyncs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.GlobalThreshold = 3000 }, WithClock(still{w.clock}))
	var admitted, running atomic.Int64
	running.Store(8)
	together(9, func(i int) {
		if i == 8 {
			for running.Load() > 0 {
				n.Sync(context.Background())
			}
			return
		}
		defer running.Add(-1)
		for range 500 {
			if n.Check("k", 1).Allowed() {
				admitted.Add(1)
			}
		}
	})
	if admitted.Load() != 2999 {
		t.Errorf("admitted %d, want 2,999", admitted.Load())
	}
	n.sync()
	if got := w.total(n, "k", n.read().epoch); got != 2999 {
		t.Errorf("the store holds %d, want 2,999", got)
	}
}

func TestTheTablesBoundHoldsUnderConcurrency(t *testing.T) {
	t.Parallel()
	const goroutines = 8
	for _, limit := range []int{1, 50, 500} {
		w := newWorld(t)
		spare := 3*limit + 100 // so that nothing is dropped
		n := w.node(func(c *Config) { c.LocalCacheMaxEntries, c.ChannelCapacity = limit, spare }, WithClock(still{w.clock}))
		var running atomic.Int64
		running.Store(goroutines)
		together(goroutines+2, func(i int) {
			switch {
			case i == goroutines:
				for running.Load() > 0 {
					if got := n.Stats().Entities; got > limit+spare+goroutines {
						t.Errorf("%d entities in a table of %d and %d undelivered, with %d checks at once", got, limit, spare, goroutines)
						return
					}
				}
				return
			case i > goroutines:
				for running.Load() > 0 {
					n.Sync(context.Background())
				}
				return
			}
			defer running.Add(-1)
			random := rand.New(rand.NewPCG(2, uint64(i)))
			for range 1000 {
				n.Check(fmt.Sprint("key", random.IntN(3*limit+100)), 1)
			}
		})
		n.sync()
		if got := n.Stats().Entities; got > limit {
			t.Errorf("%d entities in a table of %d when all is quiet", got, limit)
		}
		if err := n.consistent(); err != nil {
			t.Error(err)
		}
		n.entries()
		if got := n.Stats(); got.Undelivered != 0 || got.Delivered != goroutines*1000 || got.Dropped.Total() != 0 {
			t.Errorf("delivered %d units, undelivered %d, dropped %+v; want all %d delivered", got.Delivered, got.Undelivered, got.Dropped, goroutines*1000)
		}
		n.delivered(goroutines * 1000)
	}
}

// delivered checks that the store holds so many units in all.
func (n *node) delivered(want int64) {
	n.world.t.Helper()
	var sum int64
	for _, key := range n.world.mem.Keys() {
		if total, _ := n.world.mem.Get(key); total > 0 && !isSequence(key) && key != windowKey(n.cfg.RedisKeyPrefix) {
			sum += total
		}
	}
	if sum != want {
		n.world.t.Errorf("the store holds %d units in all, want %d", sum, want)
	}
}

// Everything that may be called at once, at once.
func TestAllMethodsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.LocalCacheMaxEntries, c.ChannelCapacity = 20, 1000 },
		WithResolver(func(key string) (uint64, bool) { return 50, key == "key3" }))
	calls := []func(key string){
		func(key string) { n.Check(key, 1) },
		func(key string) { n.Check(key, 40) },
		func(key string) { n.CheckAt(key, 1, start.Add(-time.Minute)) },
		func(key string) { n.CheckCustom(key, 1) },
		func(key string) { n.Peek(key) },
		func(key string) { n.Allow(key) },
		func(key string) { n.IsCustomKey(key) },
		func(key string) { n.Forget(key) },
		func(key string) { n.Record(key, 3) },
		func(key string) { n.Reserve(key, 5).Commit(2) },
		func(key string) {
			res := n.Reserve(key, 9)
			var settling sync.WaitGroup
			settling.Go(func() { res.Commit(11) })
			res.Cancel()
			settling.Wait()
		},
		func(key string) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Microsecond)
			defer cancel()
			n.Wait(ctx, key, 1)
		},
		func(key string) {
			if res, err := n.ReserveFleet(context.Background(), key, 2); err == nil {
				res.Cancel()
			}
		},
		func(key string) { n.SetOverrides(map[string]uint64{key: 70}) },
		func(string) { n.Sync(context.Background()) },
		func(string) { n.Stats() },
		func(string) { w.clock.StepWall(time.Second) },
	}
	together(8, func(i int) {
		random := rand.New(rand.NewPCG(3, uint64(i)))
		for range 500 {
			calls[random.IntN(len(calls))](fmt.Sprint("key", random.IntN(40)))
		}
	})
	n.sync()
	if err := n.consistent(); err != nil {
		t.Error(err)
	}
	n.entries()
	if got := n.Stats(); got.Counted-got.Returned.Taken != got.Delivered+got.Undelivered+got.Dropped.Total() || got.Undelivered > got.Counted {
		t.Errorf("counted %d; delivered %d, undelivered %d, dropped %d", got.Counted, got.Delivered, got.Undelivered, got.Dropped.Total())
	}
	w.clock.Advance(time.Minute)
	w.clock.Advance(time.Minute)
	if got := n.Stats(); got.Undelivered != 0 {
		t.Errorf("%d units undelivered when all is quiet", got.Undelivered)
	}
}
