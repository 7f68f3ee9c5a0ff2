package ratelimit

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"
)

// keysOf returns the keys of entities.
func keysOf(top []EntityStats) (keys []string) {
	for _, e := range top {
		keys = append(keys, e.Key)
	}
	return keys
}

func TestTopByPressure(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.CustomKeys = Overrides{"vip": 1000, "none": 0} })
	for key, units := range map[string]uint64{"a": 10, "b": 30, "c": 30, "d": 80, "vip": 500, "none": 5} {
		n.check(key, units)
	}
	n.check("looked at", 0)
	for _, row := range []struct {
		n    int
		want []string
	}{
		{-1, nil},
		{0, nil},
		{1, []string{"d"}},
		{3, []string{"d", "vip", "b"}},
		{100, []string{"d", "vip", "b", "c", "a"}},
	} {
		top, seen := n.TopByPressure(row.n)
		if got := keysOf(top); !slices.Equal(got, row.want) {
			t.Errorf("TopByPressure(%d): %v, want %v", row.n, got, row.want)
		}
		if row.n > 0 && seen != 5 {
			t.Errorf("TopByPressure(%d) looked at %d entities, want 5", row.n, seen)
		}
	}
}

func TestTopDescribesEntities(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.CustomKeys = Overrides{"vip": 1000} })
	n.check("vip", 500)
	top, _ := n.TopByPressure(1)
	want := EntityStats{
		Key: "vip", Level: 500, Threshold: 1000, Custom: true, Pressure: 0.5, Tier: Normal, Basis: BasisLocal, Partition: "memory",
	}
	if len(top) != 1 || top[0] != want {
		t.Errorf("before the first sync: %+v, want %+v", top, want)
	}
	w.clock.Advance(1500 * time.Millisecond) // a sync after one second
	top, _ = n.TopByPressure(1)
	want.Basis, want.Synced, want.SyncAge = BasisFleet, true, 500*time.Millisecond
	want.Level = n.Peek("vip").Level()
	want.Pressure, want.Tier = want.Level/1000, Low
	if len(top) != 1 || top[0] != want {
		t.Errorf("after it: %+v, want %+v", top, want)
	}
}

// What it tells is what a check would find, in every epoch, synced or not; and
// telling changes nothing: a twin that nobody looks at answers the same.
func TestTopChangesNothing(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	watched, twin := newWorld(t), newWorld(t)
	few := func(c *Config) { c.LocalCacheMaxEntries = 1000 } // eight shards: a tick looks at each
	n, other := watched.node(few), twin.node(few)
	each := func(f func(w *world, n *node)) { f(watched, n); f(twin, other) }
	for i := range 600 {
		key, units := fmt.Sprintf("k%d", random.IntN(6)), uint64(random.IntN(30))
		if got, want := n.check(key, units), other.check(key, units); got != want {
			t.Fatalf("seed %d, step %d: Check(%s, %d): %+v, by the twin %+v", seed, i, key, units, got, want)
		}
		d := time.Duration(random.Int64N(int64(40 * time.Second)))
		switch random.IntN(20) {
		case 0:
			each(func(w *world, _ *node) { w.clock.StepWall(-d) })
		case 1:
			each(func(w *world, _ *node) { w.clock.StepWall(d) })
		case 2:
			each(func(_ *world, n *node) { n.link.breaks(errUnreachable, nil) })
		case 3:
			each(func(_ *world, n *node) { n.link.heals() })
		default:
			each(func(w *world, _ *node) { w.clock.Advance(d / 4) })
		}
		told := map[string]float64{}
		top, _ := n.TopByPressure(10)
		for _, e := range top {
			told[e.Key] = e.Level
		}
		for k := range 6 {
			key := fmt.Sprintf("k%d", k)
			if want := other.Peek(key).Level(); told[key] != want {
				t.Fatalf("seed %d, step %d: %s: level %v, a check finds %v", seed, i, key, told[key], want)
			}
			n.Peek(key) // as the twin
		}
	}
}

func TestTopOfManyShards(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.GlobalThreshold = 100_000 })
	for i := range 20_000 {
		n.check(fmt.Sprintf("k%05d", i), uint64(i))
	}
	top, seen := n.TopByPressure(50)
	if seen != 19_999 { // k00000 counted nothing and is not held
		t.Errorf("looked at %d entities, want 19999", seen)
	}
	for i, e := range top {
		if want := fmt.Sprintf("k%05d", 19_999-i); e.Key != want {
			t.Fatalf("place %d: %s, want %s", i, e.Key, want)
		}
	}
}

func TestTopDuringChecks(t *testing.T) {
	t.Parallel()
	n := newWorld(t).node(nil)
	var workers sync.WaitGroup
	for g := range 4 {
		workers.Go(func() {
			for i := range 2000 {
				n.Check(fmt.Sprintf("k%d", (i*7+g)%500), 1)
			}
		})
	}
	for range 20 {
		top, seen := n.TopByPressure(5)
		if len(top) > 5 || seen > 500 || !slices.IsSortedFunc(top, byPressure) {
			t.Errorf("%d entities of %d: %v", len(top), seen, top)
		}
	}
	workers.Wait()
	n.Close(context.Background())
	if _, seen := n.TopByPressure(5); seen != 500 {
		t.Errorf("after Close it looks at %d entities, want 500", seen)
	}
}

func TestConfigIsACopy(t *testing.T) {
	t.Parallel()
	overrides := Overrides{"a": 5}
	n := newWorld(t).node(func(c *Config) { c.CustomKeys = overrides; c.RedisURLs = []string{"memory://"} })
	c := n.Config()
	if c.SyncInterval != 15*time.Second || c.CustomKeys["a"] != 5 || c.GlobalThreshold != 100 {
		t.Errorf("configuration %v", c)
	}
	c.CustomKeys["a"], c.RedisURLs[0] = 6, "redis://other"
	if again := n.Config(); again.CustomKeys["a"] != 5 || again.RedisURLs[0] != "memory://" {
		t.Errorf("changing what Config returned changed the limiter: %v", again)
	}
}
