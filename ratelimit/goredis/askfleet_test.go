package goredis

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"github.com/hanzoai/limiters/ratelimit"
)

// Twenty limiters, eight callers each, one key in a cluster of eight partitions, a threshold
// of 50: 50 are granted.
func TestTwentyLimitersOnAClusterGrantExactlyTheLimit(t *testing.T) {
	t.Parallel()
	client := startCluster(t).client(t)
	var granted atomic.Int64
	var callers sync.WaitGroup
	for range 20 {
		parts, err := Partitions(client, 8)
		if err != nil {
			t.Fatal(err)
		}
		cfg := ratelimit.DefaultConfig()
		cfg.Window, cfg.WindowCalendar, cfg.WindowInterval = ratelimit.WindowFixed, ratelimit.CalendarMonth, 0
		cfg.GlobalThreshold, cfg.Inclusive, cfg.RedisKeyPrefix = 50, true, "exact"
		cfg.GlobalReadTimeout = 20 * time.Second
		lim, err := ratelimit.New(cfg, ratelimit.WithPartitions(parts...),
			ratelimit.WithMetricsSet(metrics.NewSet()), ratelimit.WithLogger(slog.New(slog.DiscardHandler)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = lim.Close(context.Background()) })
		for range 8 {
			callers.Go(func() {
				for range 4 {
					d, err := lim.CheckFleet(context.Background(), "login", 1)
					if err != nil {
						t.Error(err)
					} else if d.Allowed() {
						granted.Add(1)
					}
				}
			})
		}
	}
	callers.Wait()
	if granted.Load() != 50 {
		t.Errorf("%d granted, want 50", granted.Load())
	}
}
