package ratelimit

// This file tests allowances: what ends them, and that no unit of them is lost or doubled
// when all cores take from them.

import (
	"context"
	"log/slog"
	"math"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"github.com/hanzoai/limiters/internal/memstore"
)

// entryOf returns the entry of a key.
func (n *node) entryOf(key string) *entry {
	hash := n.table.hash(key)
	return n.table.shardOf(hash).entries.find(hash, key)
}

// left is how many units Allow may take of the key without a lock.
func (n *node) left(key string) int {
	if e := n.entryOf(key); e != nil {
		return int(e.allowance.word.Load() & unitsMask)
	}
	return 0
}

// grantedTo asks for the key until it has an allowance.
func (n *node) grantedTo(t *testing.T, key string) {
	t.Helper()
	for range 3 {
		n.Allow(key)
		n.world.clock.Advance(time.Millisecond)
	}
	if n.left(key) == 0 {
		t.Fatalf("no allowance for %q", key)
	}
}

func TestAllowanceIsTakenBackByWhateverLooks(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(n *node){
		"Check":         func(n *node) { n.Check("k", 1) },
		"Peek":          func(n *node) { n.Peek("k") },
		"CheckAll":      func(n *node) { n.CheckAll([]Item{{Key: "k", Units: 1}}) },
		"CheckFleet":    func(n *node) { n.CheckFleet(context.Background(), "k", 1) },
		"CheckCustom":   func(n *node) { n.SetOverrides(map[string]uint64{"k": 1e6}); n.CheckCustom("k", 1) },
		"Record":        func(n *node) { n.Record("k", 1) },
		"Reserve":       func(n *node) { n.Reserve("k", 1).Cancel() },
		"WaitFor":       func(n *node) { n.WaitFor("k", 1) },
		"Forget":        func(n *node) { n.Forget("k") },
		"Stats":         func(n *node) { n.Stats() },
		"TopByPressure": func(n *node) { n.TopByPressure(1) },
		"Sync":          func(n *node) { n.Sync(context.Background()) },
		"a tick":        func(n *node) { n.world.clock.Advance(time.Duration(n.tick)) },
		"Close":         func(n *node) { n.Close(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newWorld(t).node(func(c *Config) { c.GlobalThreshold = 1e6 })
			n.grantedTo(t, "k")
			passed := uint64(3)
			for range 5 {
				if n.left("k") == 0 || !n.Allow("k") {
					t.Fatal("the allowance does not last")
				}
				passed++
			}
			do(n)
			if left := n.left("k"); left != 0 {
				t.Errorf("%d units are left", left)
			}
			if s := n.Stats(); s.Counted < passed || s.Allowed < passed {
				t.Errorf("%d units were allowed, %d counted, by %d decisions", passed, s.Counted, s.Allowed)
			}
		})
	}
}

func TestAllowanceIsVoid(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(n *node){
		"other overrides":        func(n *node) { n.SetOverrides(map[string]uint64{"k": 0}) },
		"there and back, by two": func(n *node) { n.SetOverrides(map[string]uint64{"k": 0}); n.SetOverrides(map[string]uint64{"k": 0}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newWorld(t).node(func(c *Config) { c.GlobalThreshold = 1e6 })
			n.grantedTo(t, "k")
			if do(n); n.Allow("k") {
				t.Error("a key with threshold 0 passed")
			}
		})
	}
}

// An allowance of before is void after steps of the wall that cancel each other, if the
// limiter saw them.
func TestStepsOfTheWallThatCancelDoNotReviveAllowances(t *testing.T) {
	t.Parallel()
	n := newWorld(t).node(func(c *Config) { c.GlobalThreshold = 1e6 })
	n.grantedTo(t, "k")
	for range 300 {
		for _, by := range []time.Duration{time.Hour, -time.Hour} {
			n.world.clock.StepWall(by)
			n.Allow("other")
		}
		e := n.entryOf("k")
		if _, mono := n.clock.Now(); e.allowance.take(mono, n.thresholds.current.Load().generation) {
			t.Fatal("the allowance came back")
		}
	}
}

func TestAllowanceTakesNoAncientWord(t *testing.T) {
	t.Parallel()
	var a allowance
	for _, later := range []int64{ancient, 1 << 31, 1 << (32 + untilShift), 3 << (32 + untilShift), math.MaxInt64 - second} {
		a.word.Store(uint64(second)<<takenShift | 9)
		a.until.Store(uint32(2 * second >> untilShift))
		if !a.take(second, 0) {
			t.Error("a new one is not taken")
		}
		if a.take(second+later, 0) {
			t.Errorf("one is taken %d ns later", later)
		}
	}
}

// All cores take from one key and from many, while ticks, looks and evictions take the
// allowances back.
func TestAllowConservesOnAllCores(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		keys      int
		threshold uint64
		window    WindowKind
	}{{1, 1 << 40, WindowLeaky}, {1, 5000, WindowSliding}, {7, 3000, WindowFixed}, {300, 1 << 40, WindowSliding}, {300, 1 << 40, WindowLeaky}} {
		mem := memstore.New(nil)
		cfg := DefaultConfig()
		cfg.GlobalThreshold, cfg.Window, cfg.WindowInterval, cfg.TickInterval = row.threshold, row.window, time.Hour, 10*time.Millisecond
		cfg.GlobalCacheTTL, cfg.LocalCacheTTL, cfg.LocalCacheIdleTimeout = 3*time.Hour, 2*time.Hour, 2*time.Hour
		cfg.LocalCacheMaxEntries = 100
		l, err := New(cfg, WithPartitions(Partition{Name: "memory", Store: mem}), WithMetricsSet(metrics.NewSet()), WithLogger(slog.New(slog.DiscardHandler)))
		if err != nil {
			t.Fatal(err)
		}
		var passed atomic.Uint64
		var all sync.WaitGroup
		for g := range 2 * runtime.GOMAXPROCS(0) {
			all.Go(func() {
				for i := range 20_000 {
					key := strconv.Itoa((i + g) % row.keys)
					if l.Allow(key) {
						passed.Add(1)
					}
					switch i % 1000 {
					case 500:
						l.Stats()
					case 700:
						if l.Check(key, 1).Allowed() {
							passed.Add(1)
						}
					}
				}
			})
		}
		all.Wait()
		if err := l.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		s := l.Stats()
		if s.Counted != passed.Load() || s.Allowed != passed.Load() || s.Delivered+s.Dropped.Total() != s.Counted {
			t.Errorf("%+v: %d passed; counted %d, allowed %d, delivered %d, dropped %+v", row, passed.Load(), s.Counted, s.Allowed, s.Delivered, s.Dropped)
		}
		if most := uint64(row.keys) * row.threshold; row.threshold < 1e6 && passed.Load() >= most {
			t.Errorf("%+v: %d passed, want less than %d", row, passed.Load(), most)
		}
	}
}
