package ratelimit

// This file measures the decision. Its results are read as ratios within one run;
// see docs/performance.md.

import (
	"context"
	"fmt"
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
	opts = append([]Option{WithPartitions(Partition{Name: "memory", Store: memstore.New(nil)})}, opts...)
	l, err := New(cfg, opts...)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close(context.Background()) })
	return l
}

func benchKeys(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("team_%012d", i)
	}
	return keys
}

func BenchmarkCheckWarm(b *testing.B) {
	for _, n := range []int{1, 10_000, 300_000} {
		b.Run(fmt.Sprintf("keys=%d", n), func(b *testing.B) {
			l := benchLimiter(b, nil)
			keys := benchKeys(n)
			for _, k := range keys {
				l.Check(k, 1)
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				l.Check(keys[i], 1)
				if i++; i == len(keys) {
					i = 0
				}
			}
		})
	}
}
