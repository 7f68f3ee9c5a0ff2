package ratelimit

// This file tests that no unit is lost, counted twice, or counted in another epoch
// than its own, where systems of this kind have failed (docs/design.md, what breaks
// limiters): outages, evictions, leaping clocks, floods, and all of it at once.

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/hanzoai/limiters/ratelimit/store"
)

// An outage across the end of an epoch: what was counted on either side is in the
// store under its own epoch afterwards.
func TestCountsStayInTheirEpochAcrossAnOutage(t *testing.T) {
	t.Parallel()
	for _, failure := range []error{errUnreachable, errReadOnly, errTimeout, errEOF} {
		for _, applied := range []bool{false, true} {
			if known := asStoreError(failure).Fate; applied && known != store.Unknown {
				continue // they say that it was not applied
			}
			w := newWorld(t)
			n := w.node(func(c *Config) { c.GlobalThreshold, c.TickInterval = 10_000, 5*time.Second })
			counted := map[int64]int64{}
			for second := range 150 {
				switch second {
				case 40:
					if applied {
						n.link.breaks(nil, failure)
					} else {
						n.link.breaks(failure, nil)
					}
				case 75:
					n.link.heals()
				}
				n.check("a", uint64(1+second%3))
				counted[n.epochAt(0)] += int64(1 + second%3)
				w.clock.Advance(time.Second)
				w.conserves(n)
			}
			n.sync()
			for _, epoch := range []int64{n.epochAt(-1), n.epochAt(0)} {
				if got := w.total(n, "a", epoch); got != counted[epoch] {
					t.Errorf("%v, applied %v: the store holds %d in epoch %d, counted %d", failure, applied, got, epoch, counted[epoch])
				}
			}
			if s := n.Stats(); s.Dropped != (Dropped{}) || s.Undelivered != 0 {
				t.Errorf("%v, applied %v: %+v, want nothing dropped", failure, applied, s)
			}
		}
	}
}

// A batch may hold items of two epochs: the wall stepped back over a boundary, which
// an entity had crossed already and another one had not. It is given up only when
// no read sees the later one.
func TestABatchIsAsYoungAsItsLatestItem(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.TickInterval = 15 * time.Second })
	w.clock.StepWall(61 * time.Second)
	n.check("ahead", 5)
	w.clock.StepWall(-2 * time.Second)
	n.check("behind", 7)
	n.check("ahead", 1) // still in the epoch before its own
	n.audit.counted[counter{"ahead", n.epochAt(0)}] = 1
	n.link.breaks(errUnreachable, nil)
	n.syncFails()
	w.conserves(n)
	w.clock.StepWall(62 * time.Second) // the epoch of behind is out of sight, that of ahead is not
	n.syncFails()
	if s := n.Stats(); s.Dropped != (Dropped{}) || s.Undelivered != 13 {
		t.Errorf("%+v, want all 13 units still on their way", s)
	}
	n.link.heals()
	n.sync()
	if s := n.Stats(); s.Delivered != 13 {
		t.Errorf("%+v, want 13 delivered", s)
	}
	w.conserves(n)
}

// Nodes whose clocks differ by more than a window share what they can see of each
// other, and count every unit once.
func TestNodesWithDifferentClocksConserve(t *testing.T) {
	t.Parallel()
	for _, apart := range []time.Duration{time.Second, 59 * time.Second, 90 * time.Second, time.Hour, 40000 * time.Hour} {
		w := newWorld(t)
		a := w.node(func(c *Config) { c.TickInterval = 5 * time.Second })
		b := w.node(func(c *Config) { c.TickInterval = 5 * time.Second }, WithClock(w.clock.Node(apart)))
		for range 40 {
			a.check("k", 1)
			b.check("k", 1)
			w.clock.Advance(5 * time.Second)
			a.check("k", 1)
		}
		a.sync()
		b.sync()
		for i, n := range []*node{a, b} {
			if s := n.Stats(); s.Undelivered != 0 || s.Dropped != (Dropped{}) {
				t.Errorf("%v apart: node %d: %+v", apart, i, s)
			}
		}
		if apart < time.Minute {
			w.conserves(a, b)
		}
	}
}

// The wall leaps; whatever it does, units are delivered or dropped as stale, and a
// limiter works on two windows later.
func TestLeapsOfTheWallConserve(t *testing.T) {
	t.Parallel()
	for _, leap := range []time.Duration{
		time.Millisecond, 30 * time.Second, time.Minute, 2 * time.Minute, 3 * time.Hour, 100 * 365 * 24 * time.Hour,
	} {
		for _, sign := range []time.Duration{1, -1} {
			w := newWorld(t)
			n := w.node(func(c *Config) { c.TickInterval = 5 * time.Second })
			for i := range 60 {
				n.check("k", 1)
				if n.epochAt(0) != n.entry("k").epoch && n.epochAt(1) != n.entry("k").epoch {
					t.Fatalf("a leap of %v: the entry is in epoch %d, the clock in %d", sign*leap, n.entry("k").epoch, n.epochAt(0))
				}
				if i == 20 {
					n.link.breaks(errTimeout, nil)
				}
				if i == 23 {
					w.clock.StepWall(sign * leap)
				}
				if i == 26 {
					n.link.heals()
				}
				w.clock.Advance(5 * time.Second)
			}
			s := n.Stats()
			if d := s.Dropped; d.Total() != d.Stale+d.Unknown || s.Undelivered != 0 || s.Allowed != 60 {
				t.Errorf("a leap of %v: %+v", sign*leap, s)
			}
			if _, inFlight := n.unsettled(); len(inFlight) > 0 {
				t.Errorf("a leap of %v: in flight %v", sign*leap, inFlight)
			}
		}
	}
}

// A flood of keys seen once: ticks stay as large as their bound, evicted entries wait
// within theirs, and every unit is delivered or counted as overflow.
func TestAFloodOfKeysConserves(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) {
		c.LocalCacheMaxEntries, c.ChannelCapacity, c.MaxSyncKeysPerTick, c.MaxKeysPerScript = 100, 400, 300, 50
	})
	for i := range 12 {
		for j := range 250 + 100*(i%2) {
			n.check(fmt.Sprint("once", i, "/", j), 1)
		}
		n.check("steady", 1)
		w.clock.Advance(time.Second)
		if got := len(n.link.take()); got > 6 {
			t.Fatalf("second %d: %d scripts, want at most 6", i, got)
		}
	}
	w.conserves(n)
	w.clock.Advance(5 * time.Second)
	s := n.Stats()
	if s.Dropped.Total() != s.Dropped.Overflow || s.Delivered+s.Dropped.Overflow+s.Undelivered != s.Counted || s.Delivered < 3000 {
		t.Errorf("%+v", s)
	}
	if got := w.total(n, "steady", n.epochAt(0)); got != 12 {
		t.Errorf("the store holds %d units of the key that stayed, want 12", got)
	}
	w.conserves(n)
}

// Checks, evictions, ticks, failures and overrides at once, on three limiters of one
// store, then Close among it; afterwards the books balance to the unit.
func TestUnitsAreConservedUnderConcurrency(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for round := range 2 {
		w := newWorld(t)
		var nodes []*node
		for range 3 {
			nodes = append(nodes, w.node(func(c *Config) {
				c.LocalCacheMaxEntries, c.ChannelCapacity, c.MaxSyncKeysPerTick, c.MaxKeysPerScript = 15, 10, 12, 4
				c.CountLimited = true // then what a check counts does not depend on others
			}))
		}
		var checks, others sync.WaitGroup
		stop := make(chan struct{})
		for i, n := range nodes {
			for g := range 2 {
				random := rand.New(rand.NewPCG(seed, uint64(100*round+10*i+g)))
				checks.Go(func() {
					for range 300 {
						n.check(fmt.Sprint("k", random.IntN(40)), 1+random.Uint64N(4))
						if random.IntN(10) == 0 {
							n.Forget(fmt.Sprint("k", random.IntN(40)))
						}
					}
				})
			}
			random := rand.New(rand.NewPCG(seed, uint64(1000*round+i)))
			others.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					switch random.IntN(6) {
					case 0:
						n.link.breaks([]error{errUnreachable, errReadOnly, errTimeout, errEOF}[random.IntN(4)], nil)
					case 1:
						n.link.breaks(nil, []error{errTimeout, errEOF, errWrongReply}[random.IntN(3)])
					case 2:
						key := n.counterKey(fmt.Sprint("k", random.IntN(40)), n.epochAt(0))
						w.mem.Fail(key, []store.Status{store.Refused, store.Written}[random.IntN(2)])
					case 3:
						n.SetOverrides(map[string]uint64{fmt.Sprint("k", random.IntN(40)): random.Uint64N(50)})
					default:
						n.link.heals()
					}
					n.Sync(context.Background())
				}
			})
		}
		checks.Wait()
		close(stop)
		others.Wait()
		w.conserves(nodes...)
		for _, n := range nodes {
			n.link.heals()
			n.Close(context.Background())
		}
		w.conserves(nodes...)
		for i, n := range nodes {
			if s := n.Stats(); s.Undelivered != 0 || s.Dropped.Stale+s.Dropped.Poisoned != 0 {
				t.Errorf("round %d, node %d: %+v", round, i, s)
			}
		}
	}
}
