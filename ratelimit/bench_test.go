package ratelimit

// This file measures the decision. Its results are read as ratios within one run;
// see docs/performance.md. Every limiter is as shipped: system clock, ticks, metrics.

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/hanzoai/limiters/internal/memstore"
)

// benchLimiter is a limiter as shipped: system clock, own goroutines, metrics.
func benchLimiter(b *testing.B, change func(*Config), opts ...Option) *Limiter {
	b.Helper()
	cfg := DefaultConfig()
	cfg.GlobalThreshold = 1 << 40
	cfg.Scope = b.Name()
	if change != nil {
		change(&cfg)
	}
	opts = append([]Option{
		WithPartitions(Partition{Name: "memory", Store: memstore.New(nil)}),
		WithLogger(slog.New(slog.DiscardHandler)), // a store that keeps nothing is told of
	}, opts...)
	l, err := New(cfg, opts...)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close(context.Background()) })
	return l
}

// benchKey is the i-th key: 17 bytes.
func benchKey(i int) string { return fmt.Sprintf("team_%012d", i) }

func benchKeys(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = benchKey(i)
	}
	return keys
}

// uniform returns the keys in an order that is not that of their memory.
func uniform(keys []string) []string {
	order := append([]string(nil), keys...)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	return order
}

// zipf returns many draws of keys by a power law: few are drawn often.
func zipf(keys []string) []string {
	law := rand.NewZipf(rand.New(rand.NewPCG(1, 2)), 1.1, 1, uint64(len(keys)-1))
	draws := make([]string, max(1<<16, 2*len(keys)))
	for i := range draws {
		draws[i] = keys[law.Uint64()]
	}
	return draws
}

// meet makes every key known and synced.
func meet(b *testing.B, l *Limiter, keys []string, units uint64) {
	b.Helper()
	for _, key := range keys {
		l.Check(key, units)
	}
	for l.Stats().Queued > 0 {
		if err := l.Sync(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}

// checkAll checks the keys one after the other, over and over.
func checkAll(b *testing.B, keys []string, want Verdict, check func(key string) Decision) {
	b.Helper()
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if d := check(keys[i]); d.Verdict() != want {
			b.Fatalf("check of %q is %v, want %v", keys[i], d.Verdict(), want)
		}
		if i++; i == len(keys) {
			i = 0
		}
	}
}

func BenchmarkCheckWarm(b *testing.B) {
	for _, n := range []int{1, 10_000, 300_000} {
		for name, order := range map[string]func([]string) []string{"uniform": uniform, "zipf": zipf} {
			if n == 1 && name == "zipf" {
				continue
			}
			b.Run(fmt.Sprintf("keys=%d/order=%s", n, name), func(b *testing.B) {
				l, keys := benchLimiter(b, nil), benchKeys(n)
				meet(b, l, keys, 1)
				checkAll(b, order(keys), VerdictAllowed, func(key string) Decision { return l.Check(key, 1) })
			})
		}
	}
}

// One entry is allocated, with what belongs to it, and none is evicted.
func BenchmarkCheckFirstContact(b *testing.B) {
	const batch = 200_000
	keys := benchKeys(batch)
	open := func() *Limiter {
		return benchLimiter(b, nil, WithPartitions(Partition{Name: "sink", Store: &sinkStore{}}))
	}
	l, i := open(), 0
	b.ReportAllocs()
	for b.Loop() {
		if i == batch {
			b.StopTimer()
			l.Close(context.Background())
			l, i = open(), 0
			b.StartTimer()
		}
		if !l.Check(keys[i], 1).Allowed() {
			b.Fatal("a first contact is limited")
		}
		i++
	}
}

// The table is full: each new key costs another one its place.
func BenchmarkCheckFlood(b *testing.B) {
	l := benchLimiter(b, func(c *Config) {
		c.LocalCacheMaxEntries, c.ChannelCapacity = 10_000, 10_000
	}, WithPartitions(Partition{Name: "sink", Store: &sinkStore{}}))
	meet(b, l, benchKeys(10_000), 1)
	b.ReportAllocs()
	buffer, i := []byte("flood_"), 0
	for b.Loop() {
		i++
		if !l.Check(string(strconv.AppendInt(buffer, int64(i), 10)), 1).Allowed() {
			b.Fatal("a first contact is limited")
		}
	}
}

// The first contact takes a thousand thresholds, so the keys stay limited.
func BenchmarkCheckLimited(b *testing.B) {
	for _, countLimited := range []bool{false, true} {
		b.Run(fmt.Sprintf("count_limited=%t", countLimited), func(b *testing.B) {
			l := benchLimiter(b, func(c *Config) { c.GlobalThreshold, c.CountLimited = 1000, countLimited })
			keys := benchKeys(10_000)
			meet(b, l, keys, 1_000_000)
			checkAll(b, uniform(keys), VerdictLimited, func(key string) Decision { return l.Check(key, 1) })
		})
	}
}

func BenchmarkCheckCustom(b *testing.B) {
	keys := benchKeys(10_000)
	custom := Overrides{}
	for _, key := range keys {
		custom[key] = 1 << 41
	}
	for name, check := range map[string]func(l *Limiter, key string) Decision{
		"Check":       func(l *Limiter, key string) Decision { return l.Check(key, 1) },
		"CheckCustom": func(l *Limiter, key string) Decision { return l.CheckCustom(key, 1) },
	} {
		b.Run("call="+name, func(b *testing.B) {
			l := benchLimiter(b, func(c *Config) { c.CustomKeys = custom })
			meet(b, l, keys, 1)
			checkAll(b, uniform(keys), VerdictAllowed, func(key string) Decision { return check(l, key) })
		})
	}
}

func BenchmarkCheckParallel(b *testing.B) {
	keys := uniform(benchKeys(10_000))
	for name, deal := range map[string]func(worker, workers int) []string{
		"distinct": func(worker, workers int) []string {
			share := max(1, len(keys)/workers)
			from := worker % workers * share % len(keys)
			return keys[from:min(from+share, len(keys))]
		},
		"hot": func(int, int) []string { return keys[:1] },
	} {
		b.Run("keys="+name, func(b *testing.B) {
			l := benchLimiter(b, nil)
			meet(b, l, keys, 1)
			var next atomic.Int64
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				mine := deal(int(next.Add(1)-1), runtime.GOMAXPROCS(0))
				for i := 0; pb.Next(); {
					if !l.Check(mine[i], 1).Allowed() {
						b.Error("a check is limited")
						return
					}
					if i++; i == len(mine) {
						i = 0
					}
				}
			})
		})
	}
}
