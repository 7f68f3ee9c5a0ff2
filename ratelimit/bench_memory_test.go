package ratelimit

// This file measures memory: what an entity takes, and what is left of a flood.

import (
	"fmt"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"github.com/hanzoai/limiters/internal/clock"
)

// liveBytes is what is in use on the heap.
func liveBytes() float64 {
	runtime.GC()
	runtime.GC() // what the first one's finalizers let go of
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// memoryLimiter is a limiter on a fake clock whose store keeps nothing, so that all
// there is on the heap is the limiter's.
func memoryLimiter(b *testing.B, change func(*Config)) (*Limiter, *clock.Fake) {
	b.Helper()
	c := clock.NewFake(start)
	l := benchLimiter(b, change, WithClock(c), WithMetricsSet(metrics.NewSet()),
		WithPartitions(Partition{Name: "sink", Store: &sinkStore{}}))
	return l, c
}

// An entity has a key of 17 bytes that nobody else holds, and was synced in two
// epochs. Everything is counted: keys, index, queue, buffers, metrics, what New made.
func BenchmarkMemory(b *testing.B) {
	for _, n := range []int{10_000, 100_000, 300_000, 1_000_000} {
		b.Run(fmt.Sprintf("entities=%d", n), func(b *testing.B) {
			perEntity := 0.0
			for b.Loop() {
				before := liveBytes()
				l, c := memoryLimiter(b, func(cfg *Config) {
					cfg.LocalCacheMaxEntries, cfg.ChannelCapacity = n, n
				})
				for range 2 {
					for i := range n {
						l.Check(benchKey(i), 1)
					}
					for l.Stats().Queued > 0 {
						c.Advance(l.cfg.TickInterval)
					}
					c.Advance(l.cfg.WindowInterval - time.Duration(wallOf(c))%l.cfg.WindowInterval)
				}
				perEntity = (liveBytes() - before) / float64(n)
				if s := l.Stats(); s.Entities != n || s.Delivered != uint64(2*n) {
					b.Fatalf("%d entities and %d units delivered, want %d and %d", s.Entities, s.Delivered, n, 2*n)
				}
			}
			b.ReportMetric(perEntity, "bytes/entity")
		})
	}
}

// A million keys are met once, in five seconds, beside ten thousand that stay in
// use. Six minutes later, the idle timeout and a scan, the flood's are gone.
func BenchmarkMemoryAfterFlood(b *testing.B) {
	const mebibyte = 1 << 20
	keys := benchKeys(10_000)
	var before, during, after float64
	for b.Loop() {
		bare := liveBytes()
		l, c := memoryLimiter(b, nil)
		use := func(d time.Duration) {
			for range d / (10 * time.Second) {
				for _, key := range keys {
					l.Check(key, 1)
				}
				c.Advance(10 * time.Second)
			}
		}
		use(2 * time.Minute)
		before = (liveBytes() - bare) / mebibyte
		buffer := []byte("flood_")
		for i := range 1_000_000 {
			l.Check(string(strconv.AppendInt(buffer, int64(i), 10)), 1)
			if i%200_000 == 0 {
				c.Advance(time.Second)
			}
		}
		during = (liveBytes() - bare) / mebibyte
		use(6 * time.Minute)
		after = (liveBytes() - bare) / mebibyte
		if s := l.Stats(); s.Entities != len(keys) || s.Undelivered != 0 {
			b.Fatalf("%d entities and %d units undelivered, want %d and 0", s.Entities, s.Undelivered, len(keys))
		}
	}
	b.ReportMetric(before, "MB-before")
	b.ReportMetric(during, "MB-at-its-height")
	b.ReportMetric(after, "MB-after")
}

func wallOf(c Clock) int64 {
	wall, _ := c.Now()
	return wall
}
