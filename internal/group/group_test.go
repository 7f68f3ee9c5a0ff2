package group_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"github.com/hanzoai/limiters/internal/group"
	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/testing/ratelimittest"
)

// newLimiter returns a limiter of so many units an hour.
func newLimiter(t *testing.T, clock *ratelimittest.Clock, threshold uint64, opts ...ratelimit.Option) *ratelimit.Limiter {
	t.Helper()
	cfg := ratelimit.DefaultConfig()
	cfg.Window, cfg.WindowInterval, cfg.Inclusive, cfg.StrictFirstContact = ratelimit.WindowFixed, time.Hour, true, true
	cfg.GlobalThreshold = threshold
	cfg.RedisURLs = []string{"memory://"}
	lim, err := ratelimit.New(cfg, append(opts, ratelimit.WithClock(clock), ratelimit.WithMetricsSet(metrics.NewSet()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lim.Close(context.Background()) })
	return lim
}

func item(l *ratelimit.Limiter, units uint64, fleet bool) group.Item {
	return group.Item{Item: ratelimit.Item{Key: "k", Units: units, Limiter: l}, Fleet: fleet}
}

func TestAllOrNoneWithLimitsThatAskTheFleet(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name     string
		units    [4]uint64 // of two local limits of 10, and two of 5 that ask; 0: leave it out
		verdicts string
		levels   []float64
	}{
		{"nothing", [4]uint64{}, "", []float64{0, 0, 0, 0}},
		{"local ones alone", [4]uint64{3, 4, 0, 0}, "aa", []float64{3, 4, 0, 0}},
		{"the fleet alone", [4]uint64{0, 0, 5, 5}, "aa", []float64{0, 0, 5, 5}},
		{"all pass", [4]uint64{1, 2, 3, 4}, "aaaa", []float64{1, 2, 3, 4}},
		{"a local one refuses", [4]uint64{1, 11, 3, 4}, "alaa", []float64{0, 0, 0, 0}},
		{"the first of the fleet refuses", [4]uint64{1, 2, 6, 4}, "aala", []float64{0, 0, 0, 0}},
		{"the last of the fleet refuses", [4]uint64{1, 2, 3, 6}, "aaal", []float64{0, 0, 0, 0}},
	} {
		clock := ratelimittest.NewClock()
		limiters := []*ratelimit.Limiter{newLimiter(t, clock, 10), newLimiter(t, clock, 10), newLimiter(t, clock, 5), newLimiter(t, clock, 5)}
		var items []group.Item
		for i, units := range row.units {
			if units > 0 {
				items = append(items, item(limiters[i], units, i >= 2))
			}
		}
		ds := group.Decide(t.Context(), items)
		got := ""
		for _, d := range ds {
			got += d.Verdict().String()[:1]
		}
		if got != row.verdicts {
			t.Errorf("%s: verdicts %q, want %q", row.name, got, row.verdicts)
		}
		clock.Advance(2 * time.Second) // what is given back is taken
		var levels []float64
		for i, l := range limiters {
			level := l.Peek("k").Level()
			if d, err := l.PeekFleet(t.Context(), "k"); i >= 2 && (err != nil || d.Level() != level) {
				t.Errorf("%s: the fleet says %v, %v; this node %v", row.name, d.Level(), err, level)
			}
			levels = append(levels, level)
		}
		if !slices.Equal(levels, row.levels) {
			t.Errorf("%s: levels %v, want %v", row.name, levels, row.levels)
		}
	}
}

// Where the fleet cannot be asked this node decides, and all or none still holds.
func TestWithoutTheFleetThisNodeDecides(t *testing.T) {
	t.Parallel()
	clock := ratelimittest.NewClock()
	store := ratelimittest.NewStore(clock)
	local, asks := newLimiter(t, clock, 10), newLimiter(t, clock, 2, ratelimit.WithPartitions(ratelimit.Partition{Name: "p", Store: store}))
	store.Fail(ratelimittest.Unreachable)
	passed := 0
	for range 5 {
		if group.Decide(t.Context(), []group.Item{item(asks, 1, true), item(local, 1, false)}).Allowed() {
			passed++
		}
	}
	if got := local.Peek("k").Level(); passed != 2 || got != 2 {
		t.Errorf("passed %d, the local limit counted %v; want 2, 2", passed, got)
	}
}
