package ratelimit_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/testing/ratelimittest"
)

// A sliding window slides whether Redis answers or not: a node that never reached it, or
// lost it on the way, limits its own traffic as well as one that has it.
func TestASlidingWindowSlidesWithoutRedis(t *testing.T) {
	t.Parallel()
	for _, after := range []time.Duration{0, 95 * time.Second} {
		for _, load := range []float64{0.5, 0.97, 3, 10} {
			t.Run(fmt.Sprint(load, " of the limit, Redis away after ", after), func(t *testing.T) {
				t.Parallel()
				const threshold = 6000
				cfg := ratelimit.DefaultConfig()
				cfg.GlobalThreshold, cfg.Window, cfg.LocalCacheMaxEntries = threshold, ratelimit.WindowSliding, 16
				f := ratelimittest.NewFleetAt(t, time.Date(2026, 1, 1, 0, 0, 11, 0, time.UTC), 1, cfg)
				run := ratelimittest.Start(f, ratelimittest.Traffic{Load: ratelimittest.Steady(load * threshold / 60), Step: 10 * time.Millisecond})
				run.Advance(after)
				f.Node(0).CutOff()
				run.Advance(10*time.Minute - after)
				r := run.Report("key")
				worst, mean, want := float64(r.Worst)/threshold, r.Mean/threshold, min(load, 1)
				if r.FalseLimits > 0 || worst > 1+load/100 || mean < 0.99*want || mean > 1.01*want {
					t.Errorf("%d false limits, worst window %.3f, mean %.3f; want 0, at most %.2f, %.2f", r.FalseLimits, worst, mean, 1+load/100, want)
				}
			})
		}
	}
}
