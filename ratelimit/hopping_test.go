package ratelimit_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/testing/ratelimittest"
)

// A client below its limit that a load balancer sends to one node after the other is
// refused by none, however long ago the node saw it last: what a node learns late came
// when it came, not just now.
func TestTrafficThatHopsBetweenNodesAndFitsIsNotRefused(t *testing.T) {
	t.Parallel()
	for _, nodes := range []int{2, 5, 10} {
		for _, every := range []time.Duration{900 * time.Millisecond, 7 * time.Second, 23 * time.Second, 61 * time.Second} {
			t.Run(fmt.Sprint(nodes, " nodes, every ", every), func(t *testing.T) {
				t.Parallel()
				const threshold = 1200
				cfg := ratelimit.DefaultConfig()
				cfg.GlobalThreshold, cfg.Window, cfg.LocalCacheMaxEntries = threshold, ratelimit.WindowSliding, 16
				f := ratelimittest.NewFleetAt(t, time.Date(2026, 1, 1, 0, 0, 37, 0, time.UTC), nodes, cfg)
				run := ratelimittest.Start(f, ratelimittest.Traffic{
					Load: ratelimittest.Steady(0.95 * threshold / 60), Route: ratelimittest.Hop(every), Step: 50 * time.Millisecond,
				})
				run.Advance(15 * time.Minute)
				if r := run.Report("key"); r.Limited > 0 || r.Offered < 15*threshold*9/10 {
					t.Errorf("%d of %d requests were refused, the first after %v", r.Limited, r.Offered, r.FirstLimit)
				}
			})
		}
	}
}
