package promcollector

import (
	"context"
	"strings"
	"testing"

	"github.com/VictoriaMetrics/metrics"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/hanzoai/limiters/ratelimit"
)

func newLimiter(t *testing.T, scope string, opts ...ratelimit.Option) *ratelimit.Limiter {
	t.Helper()
	cfg := ratelimit.DefaultConfig()
	cfg.GlobalThreshold, cfg.Scope, cfg.Inclusive = 3, scope, true
	cfg.RedisURLs = []string{"memory://"}
	lim, err := ratelimit.New(cfg, append([]ratelimit.Option{ratelimit.WithLogger(nil)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lim.Close(context.Background()) })
	return lim
}

// A pedantic registry finds nothing wrong, and the values are those that were counted.
func TestACollectorIsWhatTheLimiterCounted(t *testing.T) {
	t.Parallel()
	scope := "a\"b\\c"
	lim := newLimiter(t, scope)
	for range 5 {
		lim.Check("k", 1)
	}
	if err := lim.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(New(lim))
	want := `
# HELP global_rate_limiter_eval_counts_total Decisions by verdict: what enforcement says, in a dry run too.
# TYPE global_rate_limiter_eval_counts_total counter
global_rate_limiter_eval_counts_total{result="allowed",scope="a\"b\\c"} 3
global_rate_limiter_eval_counts_total{result="limited",scope="a\"b\\c"} 2
# HELP global_rate_limiter_threshold The global threshold, of keys without one of their own.
# TYPE global_rate_limiter_threshold gauge
global_rate_limiter_threshold{scope="a\"b\\c"} 3
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "global_rate_limiter_eval_counts_total", "global_rate_limiter_threshold"); err != nil {
		t.Error(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetHelp() == "" {
			t.Errorf("%s has no help", f.GetName())
		}
		if f.GetName() != "global_rate_limiter_tick_ms" {
			continue
		}
		h := f.GetMetric()[0].GetHistogram()
		if h == nil || len(h.GetBucket()) < 14 {
			t.Errorf("tick_ms is %v, want a histogram", f)
		}
	}
	if len(families) < 20 {
		t.Errorf("%d families", len(families))
	}
}

// Of limiters that share a set each collector has its own; two of one scope fail.
func TestScopesDoNotMix(t *testing.T) {
	t.Parallel()
	set := metrics.NewSet()
	a, b := newLimiter(t, "a", ratelimit.WithMetricsSet(set)), newLimiter(t, "b", ratelimit.WithMetricsSet(set))
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(New(a), New(b))
	if n, err := testutil.GatherAndCount(registry, "global_rate_limiter_threshold"); err != nil || n != 2 {
		t.Errorf("%d thresholds, %v, want one for each scope", n, err)
	}
	registry.MustRegister(New(a))
	if _, err := registry.Gather(); err == nil {
		t.Error("a limiter that is registered twice is gathered twice")
	}
}

func TestAClosedLimiterHasNone(t *testing.T) {
	t.Parallel()
	lim := newLimiter(t, "closed")
	c := New(lim)
	if err := lim.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := testutil.CollectAndCount(c); n != 0 {
		t.Errorf("%d metrics after Close", n)
	}
}
