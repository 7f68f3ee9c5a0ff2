package ratelimit

// This file tests groups that span limiters: all counted or none, whatever their windows,
// in any order, from any number of goroutines.

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"github.com/hanzoai/limiters/internal/clock"
	"github.com/hanzoai/limiters/internal/memstore"
)

// apart returns a node with a store of its own, on a clock that it may share.
func apart(t *testing.T, shared *clock.Fake, change func(*Config)) *node {
	w := &world{t: t, clock: shared}
	w.mem = memstore.New(func() int64 { wall, _ := shared.Now(); return wall })
	return w.node(change, WithMetricsSet(metrics.NewSet()))
}

// counted returns what the nodes counted for the fleet.
func counted(nodes ...*node) (units []uint64) {
	for _, n := range nodes {
		units = append(units, n.Stats().Counted)
	}
	return units
}

func TestCheckAllOfSeveralLimiters(t *testing.T) {
	t.Parallel()
	shared := clock.NewFake(start)
	briefly := apart(t, shared, func(c *Config) { c.GlobalThreshold, c.WindowInterval, c.Inclusive = 10, time.Second, true })
	hour := apart(t, shared, func(c *Config) { c.GlobalThreshold, c.Window, c.WindowCalendar = 21, WindowFixed, "hour" })
	strict := apart(t, shared, func(c *Config) {
		c.GlobalThreshold, c.Window, c.WindowStrict, c.StrictFirstContact = 16, WindowSliding, true, true
	})
	group := func(units uint64) []Item {
		return []Item{{Key: "ann", Units: units}, {Key: "ann", Units: units, Limiter: hour.Limiter}, {Key: "ann", Units: units, Limiter: strict.Limiter}}
	}
	for _, row := range []struct {
		advance time.Duration
		units   uint64
		want    string
		counted uint64 // by each of the three
	}{
		{0, 10, "aaa", 10},
		{0, 1, "laa", 10},           // ten in this second
		{0, 6, "lal", 10},           // a minute has 15
		{time.Second, 5, "aaa", 15}, // and another five in the next one
		{time.Second, 1, "aal", 15},
		{2 * time.Minute, 5, "aaa", 20},
		{2 * time.Minute, 1, "ala", 20}, // the hour has 20
		{time.Hour, 9, "aaa", 29},
	} {
		shared.Advance(row.advance)
		ds := briefly.CheckAll(group(row.units))
		if got := verdicts(ds); got != row.want || ds.Allowed() != (row.want == "aaa") {
			t.Errorf("%d units: verdicts %q, allowed %v; want %q", row.units, got, ds.Allowed(), row.want)
		}
		if got := counted(briefly, hour, strict); !slices.Equal(got, []uint64{row.counted, row.counted, row.counted}) {
			t.Errorf("%d units: counted %v, want %d each", row.units, got, row.counted)
		}
		if wait := ds.RetryAfter(); !ds.Allowed() && wait != Never {
			longest := max(ds[0].RetryAfter(), ds[1].RetryAfter(), ds[2].RetryAfter())
			if wait != longest || wait == 0 {
				t.Errorf("%d units: wait %v, want the longest, %v", row.units, wait, longest)
			}
		}
	}
}

func TestCheckAllFollowsEachLimitersOwnSettings(t *testing.T) {
	t.Parallel()
	counting := func(c *Config) { c.CountLimited = true }
	dry := func(c *Config) { c.DryRun = true }
	for _, row := range []struct {
		name          string
		first, second func(*Config)
		close         bool // the second
		units         [2]uint64
		want          string
		allowed       bool
		counted       [2]uint64 // beyond the one each that the keys became known by
	}{
		{"both pass", nil, nil, false, [2]uint64{5, 7}, "aa", true, [2]uint64{5, 7}},
		{"the first refuses", nil, nil, false, [2]uint64{99, 7}, "la", false, [2]uint64{0, 0}},
		{"the second refuses", nil, nil, false, [2]uint64{5, 99}, "al", false, [2]uint64{0, 0}},
		{"one that counts what it limits refuses", counting, nil, false, [2]uint64{99, 7}, "la", false, [2]uint64{99, 0}},
		{"one that counts what it limits is not to blame", counting, nil, false, [2]uint64{5, 99}, "al", false, [2]uint64{5, 0}},
		{"a dry run would refuse", dry, nil, false, [2]uint64{99, 7}, "la", true, [2]uint64{0, 7}},
		{"a dry run beside one that refuses", dry, nil, false, [2]uint64{5, 99}, "al", false, [2]uint64{0, 0}},
		{"two dry runs, one would refuse", dry, dry, false, [2]uint64{99, 7}, "la", true, [2]uint64{0, 7}},
		{"a closed one", nil, nil, true, [2]uint64{5, 7}, "aa", true, [2]uint64{5, 0}},
		{"a closed one refuses", nil, nil, true, [2]uint64{5, 99}, "al", false, [2]uint64{0, 0}},
		{"beside a closed one", nil, nil, true, [2]uint64{99, 7}, "la", false, [2]uint64{0, 0}},
	} {
		for asked := range 2 { // whose CheckAll it is makes no difference
			shared := clock.NewFake(start)
			nodes := []*node{apart(t, shared, row.first), apart(t, shared, row.second)}
			nodes[0].check("k", 1)
			nodes[1].check("k", 1)
			if row.close {
				nodes[1].Close(t.Context())
			}
			items := []Item{{Key: "k", Units: row.units[0], Limiter: nodes[0].Limiter}, {Key: "k", Units: row.units[1], Limiter: nodes[1].Limiter}}
			items[asked].Limiter = nil
			ds := nodes[asked].CheckAll(items)
			if got := verdicts(ds); got != row.want || ds.Allowed() != row.allowed {
				t.Errorf("%s, asked %d: verdicts %q, allowed %v; want %q, %v", row.name, asked, got, ds.Allowed(), row.want, row.allowed)
			}
			if got, want := counted(nodes...), []uint64{row.counted[0] + 1, row.counted[1] + 1}; !slices.Equal(got, want) {
				t.Errorf("%s, asked %d: counted %v, want %v", row.name, asked, got, want)
			}
		}
	}
}

func TestCheckAllWaitsForThoseWhoRefuse(t *testing.T) {
	t.Parallel()
	shared := clock.NewFake(start)
	dry := apart(t, shared, func(c *Config) { c.DryRun, c.GlobalThreshold, c.WindowInterval = true, 2, time.Hour })
	enforced := apart(t, shared, func(c *Config) { c.GlobalThreshold = 2 })
	dry.check("k", 1)
	enforced.check("k", 1)
	ds := enforced.CheckAll([]Item{{Key: "k", Units: 1, Limiter: dry.Limiter}, {Key: "k", Units: 1}})
	if ds.Allowed() || ds.RetryAfter() != ds[1].RetryAfter() || ds[0].RetryAfter() <= ds[1].RetryAfter() {
		t.Errorf("allowed %v, wait %v of %v and %v; want the second's", ds.Allowed(), ds.RetryAfter(), ds[0].RetryAfter(), ds[1].RetryAfter())
	}
	ds = dry.CheckAll([]Item{{Key: "k", Units: 1}})
	if !ds.Allowed() || ds.RetryAfter() != ds[0].RetryAfter() || ds.RetryAfter() == 0 {
		t.Errorf("a dry run alone: allowed %v, wait %v; want what enforcement would say, %v", ds.Allowed(), ds.RetryAfter(), ds[0].RetryAfter())
	}
}

// Random groups over five limiters, and on a twin of each what the group means for that one
// alone: its own items, and one that is refused if another limiter refuses.
func TestCheckAllMeansForEachLimiterWhatItsOwnGroupWould(t *testing.T) {
	t.Parallel()
	for range 10 {
		seed := rand.Uint64()
		random := rand.New(rand.NewPCG(seed, 0))
		clocks := [2]*clock.Fake{clock.NewFake(start), clock.NewFake(start)}
		var nodes, twins []*node
		for i, change := range []func(*Config){
			func(c *Config) { c.WindowInterval = 10 * time.Second },
			func(c *Config) { c.Window, c.Inclusive = WindowSliding, true },
			func(c *Config) { c.Window, c.WindowCalendar, c.CountLimited = WindowFixed, "day", seed&1 != 0 },
			func(c *Config) { c.DryRun, c.BurstInterval = true, 5*time.Second },
			func(c *Config) { c.DryRun, c.StrictFirstContact = seed&2 != 0, true },
		} {
			shared := func(c *Config) {
				c.GlobalThreshold, c.SyncByUnits = 40+uint64(10*i), false // a twin asks about another key
				c.CustomKeys = Overrides{"k0": 0, "k1": 7, "none": 0}
				change(c)
			}
			nodes, twins = append(nodes, apart(t, clocks[0], shared)), append(twins, apart(t, clocks[1], shared))
		}
		for step := range 300 {
			if step == 200 {
				nodes[1].Close(t.Context())
				twins[1].Close(t.Context())
			}
			items := make([]Item, 1+random.IntN(8))
			for i := range items {
				items[i] = Item{Key: fmt.Sprintf("k%d", random.IntN(5)), Units: uint64(random.IntN(12)), Limiter: nodes[random.IntN(len(nodes))].Limiter}
			}
			got := nodes[random.IntN(len(nodes))].CheckAll(items)
			for i, n := range nodes {
				var own []Item
				var want Decisions
				inVain := false
				for j, item := range items {
					if item.Limiter == n.Limiter {
						want = append(want, got[j])
						own = append(own, Item{Key: item.Key, Units: item.Units})
					} else if !got[j].Allowed() {
						inVain = true
					}
				}
				if own != nil && inVain {
					own = append(own, Item{Key: "none"})
				}
				if alone := twins[i].CheckAll(own); !slices.Equal(want, alone[:len(want)]) {
					t.Fatalf("seed %d, step %d: CheckAll(%v): of limiter %d\n got %+v\nwant %+v", seed, step, items, i, want, alone)
				}
			}
			if a, b := counted(nodes...), counted(twins...); !slices.Equal(a, b) {
				t.Fatalf("seed %d, step %d: counted %v, want %v", seed, step, a, b)
			}
			if random.IntN(3) == 0 {
				d := time.Duration(random.Int64N(int64(20 * time.Second)))
				clocks[0].Advance(d)
				clocks[1].Advance(d)
			}
		}
	}
}

// Goroutines that name three limiters in all orders, and call any of them, do not wait for
// each other for ever, and let through exactly what the tightest allows; a fourth limiter is closed
// meanwhile, and loses nothing.
func TestCheckAllOfSeveralLimitersAtOnce(t *testing.T) {
	t.Parallel()
	shared := clock.NewFake(start)
	large := func(c *Config) { c.GlobalThreshold = 1 << 40 }
	nodes := []*node{
		apart(t, shared, large),
		apart(t, shared, func(c *Config) { c.GlobalThreshold, c.Window = 3001, WindowSliding }),
		apart(t, shared, func(c *Config) { c.GlobalThreshold, c.Window = 1<<40, WindowFixed }),
		apart(t, shared, large),
	}
	for _, n := range nodes[:3] {
		n.check("tenant", 0)
	}
	var workers sync.WaitGroup
	var passed atomic.Uint64
	for g := range 8 {
		workers.Go(func() {
			random := rand.New(rand.NewPCG(2, uint64(g)))
			for i := range 700 {
				items := []Item{{Key: fmt.Sprint("u", i%7), Units: 1, Limiter: nodes[0].Limiter}}
				for _, n := range nodes {
					items = append(items, Item{Key: "tenant", Units: 1, Limiter: n.Limiter})
				}
				random.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
				if nodes[random.IntN(4)].CheckAll(items).Allowed() {
					passed.Add(1)
				}
				switch {
				case i%50 == 0:
					nodes[random.IntN(3)].Sync(t.Context())
				case g == 0 && i == 310:
					if err := nodes[3].Close(context.Background()); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	workers.Wait()
	if got, want := counted(nodes[:3]...), []uint64{6000, 3000, 3000}; passed.Load() != 3000 || !slices.Equal(got, want) {
		t.Errorf("passed %d, counted %v; want 3000, %v", passed.Load(), got, want)
	}
	if s := nodes[3].Stats(); s.Counted != s.Delivered || s.Counted > 3000 {
		t.Errorf("the closed one counted %d and delivered %d of 3000", s.Counted, s.Delivered)
	}
}

func TestCheckAllOfSeveralLimitersAllocatesItsAnswer(t *testing.T) {
	shared := clock.NewFake(start)
	a, b := apart(t, shared, func(c *Config) { c.GlobalThreshold = 1 << 40 }), apart(t, shared, func(c *Config) { c.GlobalThreshold = 1 << 40 })
	items := []Item{{Key: "user", Units: 1, Limiter: b.Limiter}, {Key: "tenant", Units: 1}, {Key: "user", Units: 1}}
	a.CheckAll(items)
	if got := testing.AllocsPerRun(100, func() { a.CheckAll(items) }); got > 1 {
		t.Errorf("%v allocations, want 1", got)
	}
}
