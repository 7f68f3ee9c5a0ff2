package ratelimit

// This file runs the same timelines on two fleets, one with allowances and one without, and
// compares every answer and every count. The last test spoils allowances in ways that the
// comparison must notice.

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"
)

// A twin is one of two fleets that live through the same.
type twin struct {
	*world
	nodes []*node
	open  []*Reservation
	spoil func(e *entry) // called after each Allow, of every entry with an allowance
	given int            // how often an allowance was found
}

// twinKeys are more than a small table holds.
var twinKeys = []string{"", "a", "b", "team:1", "a key that is longer than its entry has room for", "k5", "k6", "k7"}

// A timeline is one random configuration and course of events.
type timeline struct {
	*rand.Rand
	t     *testing.T
	twins [2]*twin
}

func newTimeline(t *testing.T, seed uint64) *timeline {
	tl := &timeline{Rand: rand.New(rand.NewPCG(seed, 1)), t: t}
	kinds := []string{"leaky", "sliding", "strict", "3 slices", "fixed", "hourly"}
	kind := windows[kinds[tl.IntN(len(kinds))]]
	threshold := []uint64{20, 100, 1000, 1000, 20_000, 1 << 40}[tl.IntN(6)]
	countLimited, strict, inclusive, byUnits := tl.IntN(4) == 0, tl.IntN(3) == 0, tl.IntN(2) == 0, tl.IntN(3) != 0
	short := tl.IntN(2) == 0
	entries, burst, hot := []int{3, 1000}[tl.IntN(2)], tl.IntN(10) == 0, tl.IntN(3) == 0
	for i := range tl.twins {
		w := &twin{world: newWorld(t)}
		for offset := range 2 {
			n := w.node(func(c *Config) {
				c.GlobalThreshold, c.CountLimited, c.StrictFirstContact, c.Inclusive = threshold, countLimited, strict, inclusive
				c.SyncByUnits, c.LocalCacheMaxEntries, c.TierScanIntervalTicks = byUnits, entries, 7
				if c.LocalCacheIdleTimeout = 121 * time.Second; burst {
					c.BurstInterval = 2 * time.Second
				}
				if short {
					c.WindowInterval, c.LocalCacheIdleTimeout = 3*time.Second, 7*time.Second
				}
				if hot {
					c.HotSyncInterval = c.TickInterval / 4
				}
				if kind(c); c.WindowCalendar == CalendarHour {
					c.LocalCacheIdleTimeout = 2 * time.Hour
				}
			}, WithClock(w.clock.Node(time.Duration(offset)*300*time.Millisecond)))
			n.grants = n.grants && i == 0
			w.nodes = append(w.nodes, n)
		}
		tl.twins[i] = w
	}
	return tl
}

// step does the same to both twins and returns what it was, and what they answered.
func (tl *timeline) step() (what string, answers [2]any) {
	at, key, other := tl.IntN(2), twinKeys[tl.IntN(len(twinKeys))], twinKeys[tl.IntN(len(twinKeys))]
	if tl.IntN(2) == 0 {
		key, at = "a", 0 // hot
	}
	units, seed := uint64(tl.IntN(12)), tl.Uint64()
	both := func(text string, do func(w *twin, n *node) any) {
		what = fmt.Sprintf("%s (node %d, key %q, %d units)", text, at, key, units)
		for i, w := range tl.twins {
			answers[i] = do(w, w.nodes[at])
		}
	}
	switch choice := tl.IntN(100); {
	case choice < 45:
		both("Allow", func(w *twin, n *node) any {
			rng := rand.New(rand.NewPCG(seed, 2))
			var passed []bool
			for range 1 + rng.IntN(60) {
				passed = append(passed, n.Allow(key))
				w.meddle(n)
				if rng.IntN(20) == 0 {
					w.clock.Advance(time.Duration(rng.IntN(3_000_000)))
				}
			}
			return passed
		})
	case choice < 50:
		both("Check", func(_ *twin, n *node) any { return describe(n.Check(key, units)) })
	case choice < 53:
		both("Peek", func(_ *twin, n *node) any { return describe(n.Peek(key)) })
	case choice < 56:
		both("Record", func(_ *twin, n *node) any { n.Record(key, units); return nil })
	case choice < 59:
		both("CheckAll", func(_ *twin, n *node) any {
			var all []any
			for _, d := range n.CheckAll([]Item{{Key: key, Units: units}, {Key: other, Units: 1}}) {
				all = append(all, describe(d))
			}
			return all
		})
	case choice < 61:
		both("CheckFleet", func(_ *twin, n *node) any {
			d, err := n.CheckFleet(context.Background(), key, units)
			return []any{d.Verdict(), d.Level(), d.Threshold(), d.Remaining(), err != nil}
		})
	case choice < 64:
		both("Reserve", func(w *twin, n *node) any {
			res := n.Reserve(key, units)
			w.open = append(w.open, res)
			return describe(res.Decision())
		})
	case choice < 67:
		both("Commit", func(w *twin, _ *node) any {
			for _, res := range w.open {
				res.Commit(units)
			}
			w.open = nil
			return nil
		})
	case choice < 69:
		both("WaitFor", func(_ *twin, n *node) any { return n.WaitFor(key, units) })
	case choice < 71:
		both("Forget", func(_ *twin, n *node) any { n.Forget(key); return nil })
	case choice < 74:
		threshold := []uint64{0, 7, 50, 900, 30_000}[tl.IntN(5)]
		both(fmt.Sprint("SetOverrides ", threshold), func(_ *twin, n *node) any {
			n.SetOverrides(map[string]uint64{key: threshold})
			return nil
		})
	case choice < 77:
		by := time.Duration(tl.IntN(8001)-4000) * time.Millisecond
		both(fmt.Sprint("StepWall ", by), func(w *twin, _ *node) any { w.clock.StepWall(by); return nil })
	case choice < 80:
		both("outage", func(_ *twin, n *node) any { n.link.breaks(errors.New("gone"), nil); return nil })
	case choice < 83:
		both("heal", func(_ *twin, n *node) any { n.link.heals(); return nil })
	case choice < 85:
		both("Sync", func(_ *twin, n *node) any { return n.Sync(context.Background()) != nil })
	case choice < 87:
		both("Stats", func(_ *twin, n *node) any { return n.Stats() })
	case choice < 88:
		both("Close", func(_ *twin, n *node) any { return tl.rarely(seed, func() { n.Close(context.Background()) }) })
	default:
		by := []time.Duration{1, 300_000, 10 * time.Millisecond, 300 * time.Millisecond, 700 * time.Millisecond, 2 * time.Second, 31 * time.Second, 90 * time.Second}[tl.IntN(8)]
		by += time.Duration(tl.IntN(1000)) * time.Microsecond
		both(fmt.Sprint("Advance ", by), func(w *twin, _ *node) any { w.clock.Advance(by); return nil })
	}
	return what, answers
}

// rarely does something in one of ten cases.
func (tl *timeline) rarely(seed uint64, do func()) any {
	if seed%10 == 0 {
		do()
	}
	return nil
}

// meddle spoils the allowances of a node.
func (w *twin) meddle(n *node) {
	for i := range n.table.shards {
		for e := range n.table.shards[i].entries.each() {
			if e.granted == 0 {
				continue
			}
			if w.given++; w.spoil != nil {
				w.spoil(e)
			}
		}
	}
}

// describe is all that a decision answers.
func describe(d Decision) any {
	return []any{d.Verdict(), d.Basis(), d.Custom(), d.Threshold(), d.Level(), d.Remaining(), d.RetryAfter(), d.Reset()}
}

// state is all that a node knows of its entities.
func (n *node) state() map[string]any {
	known := map[string]any{}
	for i := range n.table.shards {
		for e := range n.table.shards[i].entries.each() {
			e.lock()
			known[e.key] = []any{
				e.epoch, e.usedAt, e.readAt, e.threshold, e.units, e.allowed, e.limited, e.place, e.rank, e.hits, e.tier, e.custom,
				e.queued, e.synced, e.read, e.wantRead, e.ready, e.ringed, e.slots, e.syncedAt, e.slide, e.delivered, e.share, e.inFlight,
			}
			e.unlock()
		}
	}
	return known
}

// run lets both twins live through so many steps and returns how they differ, if they do.
func (tl *timeline) run(steps int) (difference string) {
	for i := range steps {
		what, answers := tl.step()
		if !reflect.DeepEqual(answers[0], answers[1]) {
			return fmt.Sprintf("step %d, %s:\n with %v\n without %v", i, what, answers[0], answers[1])
		}
		if i%16 > 0 && i < steps-1 {
			continue // looking takes allowances back
		}
		for n := range tl.twins[0].nodes {
			with, without := tl.twins[0].nodes[n], tl.twins[1].nodes[n]
			for key, known := range without.state() {
				if other := with.state()[key]; !reflect.DeepEqual(known, other) {
					return fmt.Sprintf("after step %d, %s: node %d, entity %q:\n with %v\n without %v", i, what, n, key, other, known)
				}
			}
			if a, b := with.Stats(), without.Stats(); !reflect.DeepEqual(a, b) {
				return fmt.Sprintf("after step %d, %s: node %d:\n with %+v\n without %+v", i, what, n, a, b)
			}
		}
	}
	return ""
}

func TestAllowancesDecideAndCountAsChecksDo(t *testing.T) {
	t.Parallel()
	given := 0
	for seed := range uint64(60) {
		tl := newTimeline(t, seed)
		if difference := tl.run(200); difference != "" {
			t.Errorf("seed %d: %s", seed, difference)
		}
		given += tl.twins[0].given
	}
	if given < 3_000 {
		t.Errorf("allowances were found %d times only: the test compares checks with checks", given)
	}
}

func TestSpoiltAllowancesAreNoticed(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(e *entry){
		"too many units": func(e *entry) {
			if e.granted < 100 {
				e.granted += 100
				e.allowance.word.Add(100)
			}
		},
		"too long": func(e *entry) {
			e.allowance.until.Store(uint32((e.usedAt + second) >> untilShift))
		},
		"taken units lost": func(e *entry) { e.granted = max(1, uint8(e.allowance.word.Load()&unitsMask)) },
		"the last use lost": func(e *entry) {
			word := e.allowance.word.Load()
			e.allowance.word.Store(uint64(e.usedAt)<<takenShift | word&unitsMask)
		},
		"the time of overrides ignored": func(e *entry) {
			e.allowance.generation.Store(e.partition.l.thresholds.current.Load().generation)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(100) {
				tl := newTimeline(t, seed)
				tl.twins[0].spoil = spoil
				if tl.run(200) != "" {
					return
				}
			}
			t.Error("nothing differed")
		})
	}
}
