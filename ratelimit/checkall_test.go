package ratelimit

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hanzoai/limiters/ratelimit/store"
)

// checkAll checks items and counts what was recorded in the audit.
func (n *node) checkAll(items ...Item) Decisions {
	r := n.read()
	ds := n.CheckAll(items)
	recorded := n.cfg.CountLimited
	if !recorded {
		recorded = !slices.ContainsFunc(ds, func(d Decision) bool { return d.Verdict() != VerdictAllowed })
	}
	if recorded {
		for _, item := range items {
			n.audit.count(n.KeyName(item.Key), r.epoch, item.Units)
		}
	}
	return ds
}

// verdicts returns the verdicts in short: a and l.
func verdicts(ds Decisions) (short string) {
	for _, d := range ds {
		short += d.Verdict().String()[:1]
	}
	return short
}

func levels(n *node, keys ...string) (levels []float64) {
	for _, key := range keys {
		levels = append(levels, n.Peek(key).Level())
	}
	return levels
}

func TestCheckAllCountsAllOrNothing(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		change func(*Config)
		items  []Item
		want   string
		all    bool
		levels []float64 // of user, tenant and global after it; before it: 2, 5, 9
	}{
		{"all pass", nil, []Item{{Key: "user", Units: 1}, {Key: "tenant", Units: 1}, {Key: "global", Units: 1}}, "aaa", true, []float64{3, 6, 10}},
		{"different units", nil, []Item{{Key: "user", Units: 7}, {Key: "tenant", Units: 0}, {Key: "global", Units: 90}}, "aaa", true, []float64{9, 5, 99}},
		{"the last is limited", nil, []Item{{Key: "user", Units: 1}, {Key: "tenant", Units: 1}, {Key: "global", Units: 91}}, "aal", false, []float64{2, 5, 9}},
		{"the first is limited", nil, []Item{{Key: "user", Units: 8}, {Key: "tenant", Units: 1}, {Key: "global", Units: 1}}, "laa", false, []float64{2, 5, 9}},
		{"two are limited", nil, []Item{{Key: "global", Units: 1}, {Key: "user", Units: 8}, {Key: "tenant", Units: 15}}, "all", false, []float64{2, 5, 9}},
		{"a probe that is not limited", nil, []Item{{Key: "user", Units: 0}, {Key: "tenant", Units: 1}}, "aa", true, []float64{2, 6, 9}},
		{"one that never passes", nil, []Item{{Key: "none", Units: 0}, {Key: "tenant", Units: 1}}, "la", false, []float64{2, 5, 9}},
		{"equal keys pass together", nil, []Item{{Key: "user", Units: 3}, {Key: "tenant", Units: 1}, {Key: "user", Units: 4}}, "aaa", true, []float64{9, 6, 9}},
		{"equal keys are limited together", nil, []Item{{Key: "user", Units: 4}, {Key: "tenant", Units: 1}, {Key: "user", Units: 4}}, "lal", false, []float64{2, 5, 9}},
		{"sums saturate", nil, []Item{{Key: "user", Units: 1 << 63}, {Key: "user", Units: 1 << 63}, {Key: "tenant", Units: 1}}, "lla", false, []float64{2, 5, 9}},
		{"nothing", nil, nil, "", true, []float64{2, 5, 9}},
		{
			"limited ones are counted too", func(c *Config) { c.CountLimited = true },
			[]Item{{Key: "user", Units: 8}, {Key: "tenant", Units: 1}, {Key: "global", Units: 1}},
			"laa", false,
			[]float64{10, 6, 10},
		},
		{
			"dry run", func(c *Config) { c.DryRun = true },
			[]Item{{Key: "user", Units: 8}, {Key: "tenant", Units: 1}, {Key: "global", Units: 1}},
			"laa", true,
			[]float64{2, 5, 9},
		},
	} {
		w := newWorld(t)
		n := w.node(func(c *Config) {
			c.CustomKeys = Overrides{"user": 10, "tenant": 20, "none": 0}
			if row.change != nil {
				row.change(c)
			}
		})
		n.check("user", 2)
		n.check("tenant", 5)
		n.check("global", 9)
		ds := n.checkAll(row.items...)
		if got := verdicts(ds); got != row.want || ds.Allowed() != row.all {
			t.Errorf("%s: verdicts %q, all allowed: %v; want %q, %v", row.name, got, ds.Allowed(), row.want, row.all)
		}
		if got := levels(n, "user", "tenant", "global"); !slices.Equal(got, row.levels) {
			t.Errorf("%s: levels %v, want %v", row.name, got, row.levels)
		}
		w.conserves(n)
	}
}

func TestCheckAllOnFirstContact(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.CustomKeys = Overrides{"none": 0} })
	if got := verdicts(n.checkAll(Item{Key: "a", Units: 500}, Item{Key: "none", Units: 1}, Item{Key: "b", Units: 1})); got != "ala" {
		t.Errorf("verdicts %q, want ala", got)
	}
	if got := n.Stats(); got.Entities != 0 || got.Counted != 0 || got.Allowed != 2 || got.Limited != 1 {
		t.Errorf("a refused group left %+v", got)
	}
	ds := n.checkAll(Item{Key: "a", Units: 500}, Item{Key: "b", Units: 0}, Item{Key: "c", Units: 1})
	if got := verdicts(ds); got != "aaa" || ds[0].Basis() != BasisFirstContact || ds[0].Level() != 500 {
		t.Errorf("verdicts %q, first on %v at level %v", got, ds[0].Basis(), ds[0].Level())
	}
	if got := n.Stats(); got.Entities != 2 || got.Counted != 501 {
		t.Errorf("an allowed group left %+v", got)
	}

	strict := w.node(func(c *Config) { c.StrictFirstContact = true })
	if got := verdicts(strict.checkAll(Item{Key: "a", Units: 99}, Item{Key: "b", Units: 100})); got != "al" {
		t.Errorf("strict: verdicts %q, want al", got)
	}
}

func TestCheckAllAnswersEqualKeysAlike(t *testing.T) {
	t.Parallel()
	n := newWorld(t).node(nil)
	n.check("a", 10)
	ds := n.checkAll(Item{Key: "a", Units: 3}, Item{Key: "b", Units: 1}, Item{Key: "a", Units: 0}, Item{Key: "a", Units: 4})
	if ds[0] != ds[2] || ds[0] != ds[3] || ds[0] == ds[1] {
		t.Errorf("decisions %+v", ds)
	}
	if ds[0].Level() != 17 || ds[0].Remaining() != 83 {
		t.Errorf("level %v, remaining %d; want 17, 83", ds[0].Level(), ds[0].Remaining())
	}
	if s := n.Stats(); s.Allowed != 3 {
		t.Errorf("%d decisions, want 3: the first check and one for each key", s.Allowed)
	}
}

func TestCheckAllRetryAfter(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.CustomKeys = Overrides{"user": 10} })
	n.link.breaks(errUnreachable, nil) // the wait is by what this node knows
	items := []Item{{Key: "user", Units: 5}, {Key: "global", Units: 50}}
	n.check("user", 9)
	w.clock.Advance(17 * time.Second)
	n.check("global", 99)
	ds := n.CheckAll(items)
	wait := ds.RetryAfter()
	if ds.Allowed() || wait != max(ds[0].RetryAfter(), ds[1].RetryAfter()) || ds[0].RetryAfter() == ds[1].RetryAfter() {
		t.Fatalf("waits %v and %v, together %v", ds[0].RetryAfter(), ds[1].RetryAfter(), wait)
	}
	w.clock.Advance(wait - 1)
	if d := n.CheckAll(items); d.Allowed() {
		t.Errorf("allowed a nanosecond before the wait of %v is over", wait)
	}
	w.clock.Advance(1)
	if d := n.CheckAll(items); !d.Allowed() {
		t.Errorf("%v after the wait of %v: levels %v, %v", verdicts(d), wait, d[0].Level(), d[1].Level())
	}
	if d := n.CheckAll([]Item{{Key: "user", Units: 10}, {Key: "global", Units: 1}}); d.RetryAfter() != Never {
		t.Errorf("units that reach a threshold by themselves: %v, want Never", d.RetryAfter())
	}
}

// A random timeline of groups on one limiter, and of the single checks that they
// stand for on another: the answers are the same to the bit.
func TestCheckAllIsWhatSingleChecksSay(t *testing.T) {
	t.Parallel()
	for range 10 {
		seed := rand.Uint64()
		steps := seed&8 != 0
		random := rand.New(rand.NewPCG(seed, 0))
		change := func(c *Config) {
			c.GlobalThreshold = 40
			c.LocalCacheMaxEntries = 1000 // eight shards: a tick looks at each
			c.CustomKeys = Overrides{"k0": 0, "k1": 7, "k2": 200}
			c.StrictFirstContact = seed&1 != 0
			c.CountLimited = seed&2 != 0
			c.DryRun = seed&4 != 0
			c.SyncByUnits = false // the twin's questions make it sync other entities with them
			// A counter's expiry depends on its place in a batch, and after a step back
			// it shows which counters are gone.
			c.GlobalCacheTTL = 24 * time.Hour
		}
		world, twin := newWorld(t), newWorld(t)
		n, single := world.node(change), twin.node(change)
		for step := range 400 {
			items := make([]Item, random.IntN(5))
			for i := range items {
				items[i] = Item{Key: fmt.Sprintf("k%d", random.IntN(8)), Units: uint64(random.IntN(20))}
			}
			got, want := n.checkAll(items...), single.checkEach(items)
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d, step %d: CheckAll(%v):\n got %+v\nwant %+v", seed, step, items, got, want)
			}
			if random.IntN(3) == 0 {
				d := time.Duration(random.Int64N(int64(20 * time.Second)))
				switch event := random.IntN(30); {
				case event == 0:
					d *= 30 // idle entries expire
				case event < 4 && steps:
					world.clock.StepWall(-4 * d)
					twin.clock.StepWall(-4 * d)
				}
				world.clock.Advance(d)
				twin.clock.Advance(d)
			}
		}
		if !steps { // what the store let expire, the audit does not miss
			world.conserves(n)
		}
		if a, b := n.Stats(), single.Stats(); a.Counted != b.Counted || a.Delivered != b.Delivered {
			t.Errorf("seed %d: counted %d, delivered %d; by single checks %d, %d", seed, a.Counted, a.Delivered, b.Counted, b.Delivered)
		}
	}
}

// checkEach says by single checks what CheckAll has to say.
func (n *node) checkEach(items []Item) Decisions {
	units := map[string]uint64{}
	for _, item := range items {
		units[item.Key] += item.Units
	}
	refused := false
	for key, u := range units {
		d := n.Peek(key)
		limited := d.level+float64(max(u, 1)) >= float64(d.threshold)
		if d.basis == BasisFirstContact {
			limited = d.threshold == 0 || n.strict && max(u, 1) >= d.threshold
		}
		refused = refused || limited
	}
	byKey := map[string]Decision{}
	for key, u := range units {
		d := n.Peek(key)
		inVain := refused && !n.countLimited
		if inVain && d.basis == BasisFirstContact {
			inVain = d.threshold > 0 && !(n.strict && max(u, 1) >= d.threshold)
		} else if inVain {
			inVain = d.level+float64(max(u, 1)) < float64(d.threshold)
		}
		if !inVain {
			d = n.Check(key, u)
		} else {
			d.level += float64(u)
			d.units = u
		}
		byKey[key] = d
	}
	ds := make(Decisions, len(items))
	for i, item := range items {
		ds[i] = byKey[item.Key]
	}
	if len(items) == 0 {
		return nil
	}
	return ds
}

// Groups that name keys of many shards in different orders do not wait for each
// other, and let through exactly what the tightest limit allows.
func TestCheckAllAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) {
		c.GlobalThreshold = 1 << 40
		c.CustomKeys = Overrides{"tenant": 5001}
	})
	for _, key := range []string{"tenant", "u0", "u1", "u2", "u3", "u4", "u5", "u6", "global"} {
		n.check(key, 0)
	}
	var workers, checkers sync.WaitGroup
	var passed atomic.Uint64
	stop := make(chan struct{})
	for g := range 8 {
		workers.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(g)))
			for i := range 1000 {
				items := []Item{{Key: "tenant", Units: 1}, {Key: fmt.Sprintf("u%d", i%7), Units: 1}, {Key: "global", Units: 1}}
				random.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
				if n.CheckAll(items).Allowed() {
					passed.Add(1)
				}
			}
		})
	}
	for _, disturb := range []func(){
		func() { n.Sync(t.Context()) },
		func() { n.Check("global", 0) },
		func() { n.TopByPressure(3) },
	} {
		checkers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					disturb()
				}
			}
		})
	}
	workers.Wait()
	close(stop)
	checkers.Wait()
	var users float64
	for i := range 7 {
		users += n.Peek(fmt.Sprintf("u%d", i)).Level()
	}
	if tenant, global := n.Peek("tenant").Level(), n.Peek("global").Level(); passed.Load() != 5000 || tenant != 5000 || global != 5000 || users != 5000 {
		t.Errorf("passed %d; levels: tenant %v, global %v, users together %v; want 5000 each", passed.Load(), tenant, global, users)
	}
	if got := n.Stats().Counted; got != 15000 {
		t.Errorf("counted %d, want 15000", got)
	}
}

// The resolver is called with no lock held: it may ask the limiter itself.
func TestCheckAllResolvesOutsideLocks(t *testing.T) {
	t.Parallel()
	var n *node
	asked := map[string]int{}
	n = newWorld(t).node(nil, WithResolver(func(key string) (uint64, bool) {
		asked[key]++
		if key != "parent" {
			n.Peek("parent")
		}
		return 3, key == "a"
	}))
	if got := verdicts(n.CheckAll([]Item{{Key: "a", Units: 2}, {Key: "b", Units: 2}, {Key: "a", Units: 0}})); got != "aaa" {
		t.Errorf("verdicts %q", got)
	}
	ds := n.CheckAll([]Item{{Key: "a", Units: 1}, {Key: "b", Units: 1}})
	if got := verdicts(ds); got != "la" || !ds[0].Custom() || ds[0].Threshold() != 3 || ds[1].Custom() {
		t.Errorf("verdicts %q, decisions %+v", got, ds)
	}
	if asked["a"] != 2 || asked["b"] != 2 {
		t.Errorf("the resolver was asked %v, want once for each key and call", asked)
	}
}

func TestCheckAllBeyondTheTable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.LocalCacheMaxEntries = 2 })
	var items []Item
	for i := range 12 {
		items = append(items, Item{Key: fmt.Sprintf("k%d", i), Units: 1})
	}
	for range 3 {
		if ds := n.checkAll(items...); !ds.Allowed() || len(ds) != 12 {
			t.Fatalf("verdicts %q", verdicts(ds))
		}
		w.conserves(n)
	}
	w.clock.Advance(time.Second)
	w.conserves(n)
	if s := n.Stats(); s.Delivered != 36 || s.Entities != 2 {
		t.Errorf("delivered %d, want 36; %d entities, want 2", s.Delivered, s.Entities)
	}
}

// What saturation discards is dropped as overflow, as by a single check of the sum.
func TestCheckAllSaturates(t *testing.T) {
	t.Parallel()
	for _, units := range []uint64{1, store.MaxUnits, store.MaxUnits + 1, 1 << 62, math.MaxUint64} {
		for _, strict := range []bool{false, true} {
			change := func(c *Config) { c.GlobalThreshold, c.StrictFirstContact = store.MaxUnits, strict }
			n, single := newWorld(t).node(change), newWorld(t).node(change)
			n.check("a", 1)
			single.check("a", 1)
			got := n.CheckAll([]Item{{Key: "a", Units: units}, {Key: "b", Units: units}})
			want := []Decision{single.Check("a", units), single.Check("b", units)}
			refused := want[0].Verdict() == VerdictLimited || want[1].Verdict() == VerdictLimited
			for i, d := range want {
				if got[i].Verdict() != d.Verdict() || got[i].Level() != d.Level() {
					t.Errorf("%d units, strict %v: %v at %v, a single check says %v at %v", units, strict,
						got[i].Verdict(), got[i].Level(), d.Verdict(), d.Level())
				}
			}
			if a, b := n.Stats(), single.Stats(); !refused && (a.Counted != b.Counted || a.Dropped != b.Dropped) {
				t.Errorf("%d units: counted %d, dropped %+v; by single checks %d, %+v", units, a.Counted, a.Dropped, b.Counted, b.Dropped)
			}
		}
	}
	all, sum := newWorld(t).node(nil), newWorld(t).node(nil)
	all.CheckAll([]Item{{Key: "a", Units: 1 << 60}, {Key: "a", Units: 5}, {Key: "b", Units: math.MaxUint64}, {Key: "b", Units: 7}})
	sum.Check("a", 1<<60+5)
	sum.Check("b", math.MaxUint64)
	if a, b := all.Stats(), sum.Stats(); a.Counted != b.Counted || a.Dropped != b.Dropped || a.Undelivered != 2*store.MaxUnits {
		t.Errorf("counted %d, dropped %+v; by checks of the sums %d, %+v", a.Counted, a.Dropped, b.Counted, b.Dropped)
	}
}

func TestCheckAllAfterClose(t *testing.T) {
	t.Parallel()
	n := newWorld(t).node(nil)
	n.check("a", 90)
	if err := n.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got := verdicts(n.CheckAll([]Item{{Key: "a", Units: 9}, {Key: "b", Units: 1}})) + verdicts(n.CheckAll([]Item{{Key: "a", Units: 9}, {Key: "b", Units: 1}})); got != "aala" {
		t.Errorf("verdicts %q, want aala", got)
	}
	if s := n.Stats(); s.Counted != 90 || s.Undelivered != 0 {
		t.Errorf("counted %d, undelivered %d; want 90, 0", s.Counted, s.Undelivered)
	}
}

// A group that meets Close half way through the shards comes after it as a whole.
func TestCheckAllAcrossClose(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(nil)
	var items []Item
	for i := range 20 {
		items = append(items, Item{Key: fmt.Sprintf("k%d", i), Units: 1})
	}
	closed := n.table.shardOf(n.table.hash("k7"))
	closed.close()
	if !n.CheckAll(items).Allowed() {
		t.Error("limited")
	}
	if s := n.Stats(); s.Counted != 0 || s.Undelivered != 0 {
		t.Errorf("counted %d, undelivered %d; want 0, 0", s.Counted, s.Undelivered)
	}
	for i := range n.table.shards {
		if s := &n.table.shards[i]; s.closed.Load() != (s == closed) {
			t.Errorf("shard %d: closed %v", i, s.closed.Load())
		}
	}
	if got := levels(n, "k0", "k7"); !slices.Equal(got, []float64{1, 1}) {
		t.Errorf("levels %v; they are counted here all the same", got)
	}
}

func TestCheckAllAllocatesItsAnswer(t *testing.T) {
	n := newWorld(t).node(func(c *Config) { c.GlobalThreshold = store.MaxUnits })
	items := []Item{{Key: "user", Units: 1}, {Key: "tenant", Units: 1}, {Key: "global", Units: 1}, {Key: "user", Units: 1}}
	n.CheckAll(items)
	if got := testing.AllocsPerRun(100, func() { n.CheckAll(items) }); got > 1 {
		t.Errorf("%v allocations, want 1", got)
	}
}
