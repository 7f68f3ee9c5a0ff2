package ratelimit

// This file tests that the metrics and Stats tell the truth after a tick, and that
// limiters keep out of each other's metrics.

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/google/go-cmp/cmp"

	"github.com/hanzoai/limiters/internal/memstore"
	"github.com/hanzoai/limiters/ratelimit/store"
)

// exposed returns what a limiter exposes: by name without the prefix and with the
// labels but for scope, as in eval_counts_total{result="allowed"}.
func exposed(t *testing.T, text string) map[string]float64 {
	t.Helper()
	series := map[string]float64{}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "# HELP ") || strings.HasPrefix(line, "# TYPE ") {
			continue
		}
		name, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		number, err := strconv.ParseFloat(value, 64)
		if !ok || err != nil || !strings.Contains(name, `{scope="`) {
			t.Errorf("cannot read the line %q: %v", line, err)
		}
		name = strings.TrimPrefix(name, "global_rate_limiter_")
		before, labels, _ := strings.Cut(name, `{scope="`)
		_, labels, _ = strings.Cut(labels, `"`)
		labels = strings.TrimPrefix(strings.TrimSuffix(labels, "}"), ",")
		if name = before; labels != "" {
			name += "{" + labels + "}"
		}
		if _, twice := series[name]; twice {
			t.Errorf("%s occurs twice", name)
		}
		series[name] = number
	}
	return series
}

func (n *node) exposed() map[string]float64 {
	n.world.t.Helper()
	var b bytes.Buffer
	n.WritePrometheus(&b)
	return exposed(n.world.t, b.String())
}

// exposes compares some of the time series.
func (n *node) exposes(row string, want map[string]float64) {
	n.world.t.Helper()
	all := n.exposed()
	got := map[string]float64{}
	for name := range want {
		if value, ok := all[name]; ok {
			got[name] = value
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		n.world.t.Errorf("%s (-want +got):\n%s", row, diff)
	}
}

func TestMetricsTellTheTruthAfterATick(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.MaxSyncKeysPerTick, c.CustomKeys = 2, Overrides{"b": 7} })
	n.exposes("at the start", map[string]float64{
		`eval_counts_total{result="allowed"}`: 0, `window_seconds`: 60, `overrides_loaded`: 1, `cache_size`: 0,
		`partition_up{partition="memory"}`: 0, `undelivered_units`: 0,
	})
	n.allowed("a", 200) // 99 and one limited
	n.check("b", 6)
	n.check("b", 1) // limited
	n.check("c", 5)
	n.Peek("d")
	n.sync() // takes two
	n.exposes("after the first tick", map[string]float64{
		`eval_counts_total{result="allowed"}`: 102, `eval_counts_total{result="limited"}`: 2, `dry_run_limited_total`: 0,
		`cache_counts_total{result="hit"}`: 100, `cache_counts_total{result="miss"}`: 4, `cache_counts_total{result="sync_queued"}`: 3,
		`cache_size`: 3, `pending_sync_size`: 1, `deferred_size`: 1, `undelivered_units`: 5,
		`records_total{op="write",partition="memory"}`: 2, `records_total{op="read",partition="memory"}`: 4,
		`pipeline_size_sum{op="write"}`: 2, `pipeline_size_sum{op="read"}`: 3, `pipeline_size_count{op="write"}`: 1,
		`pipeline_ms_count{partition="memory"}`: 1, `batch_retries_total{partition="memory"}`: 0, `partition_up{partition="memory"}`: 1,
		`tier_transitions_total{from="idle",to="hot"}`: 2, `tier_transitions_total{from="idle",to="low"}`: 0,
	})
	n.SetOverrides(map[string]uint64{"b": 70, "x": 1, "y": 2})
	n.check("b", 1)
	n.link.breaks(nil, errTimeout)
	n.syncFails()
	n.syncFails()
	n.exposes("failing", map[string]float64{`partition_up{partition="memory"}`: 1})
	w.clock.Advance(time.Second)
	n.exposes("down", map[string]float64{
		`error_total{step="reply",cause="timeout",partition="memory"}`: 3, `batch_retries_total{partition="memory"}`: 2,
		`partition_up{partition="memory"}`: 0, `undelivered_units`: 6, `pending_sync_size`: 0, `deferred_size`: 0, `overrides_loaded`: 3,
		`records_total{op="write",partition="memory"}`: 2, `pipeline_ms_count{partition="memory"}`: 4,
	})
	n.link.heals()
	n.sync()
	n.Forget("c")
	n.Forget("unknown")
	w.mem.Set(n.counterKey("e", n.epochAt(0)), "x")
	n.check("e", 9)
	n.sync()
	n.exposes("up again", map[string]float64{
		`partition_up{partition="memory"}`: 1, `undelivered_units`: 0, `dropped_units_total{cause="poisoned"}`: 9,
		`dropped_units_total{cause="stale"}`: 0, `eviction_total{cause="explicit"}`: 1, `eviction_total{cause="size"}`: 0,
		`records_total{op="write",partition="memory"}`: 5, `cache_size`: 3, `batch_retries_total{partition="memory"}`: 3,
		`tier_transitions_total{from="hot",to="low"}`: 1, `tier_transitions_total{from="hot",to="idle"}`: 0, // b: 7 of 70
	})
	w.clock.Advance(7 * time.Minute)
	n.exposes("idle for long", map[string]float64{`eviction_total{cause="expired"}`: 3, `cache_size`: 0, `tick_ms_count`: 421})
	for name := range n.exposed() {
		for _, key := range []string{`"a"`, `"b"`, `"c"`, `"e"`} {
			if strings.Contains(name, key) {
				t.Errorf("%s holds an entity key", name)
			}
		}
	}
}

func TestPipelineSizeCountsEntities(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.TickInterval = 15 * time.Second })
	w.clock.Advance(61 * time.Second)
	for i := range 4 { // units in both epochs
		n.Check(fmt.Sprint("k", i), 1)
		n.CheckAt(fmt.Sprint("k", i), 1, start.Add(30*time.Second))
	}
	n.sync()
	n.exposes("both epochs", map[string]float64{
		`pipeline_size_sum{op="write"}`: 4, `pipeline_size_sum{op="read"}`: 4, `records_total{op="write",partition="memory"}`: 8,
	})
}

func TestDriftAndStalenessAreSampledOncePerEntityAndTick(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n, other := w.node(nil), w.node(nil)
	n.check("a", 10)
	n.sync()
	if got := n.exposed(); got[`estimate_drift_count`] != 0 || got[`sync_staleness_ms_count`] != 0 {
		t.Errorf("a first sync corrected nothing and nothing was stale: %v", got)
	}
	other.check("a", 25)
	other.sync()
	w.clock.Advance(500 * time.Millisecond)
	for range 5 {
		n.check("a", 1)
	}
	n.sync() // learns of 25 more
	n.exposes("after the second", map[string]float64{
		`estimate_drift_count`: 1, `sync_staleness_ms_count`: 1, `sync_staleness_ms_sum`: 500,
		`estimate_drift_bucket{le="0.25"}`: 0, `estimate_drift_bucket{le="0.5"}`: 1,
	})
	// 10 had leaked by 0.5 / 60 of the threshold; 40 is what it is now.
	if got, want := n.exposed()[`estimate_drift_sum`], (40-(10-50.0/60+5))/100; got < want-1e-9 || got > want+1e-9 {
		t.Errorf("drift %v, want %v", got, want)
	}
	// A sync that reads nothing measures nothing: it need not see both counters.
	w.clock.Advance(5 * time.Second)
	for range 2 {
		n.check("a", 1)
		n.sync()
	}
	n.exposes("a read, and a write alone", map[string]float64{`estimate_drift_count`: 2, `sync_staleness_ms_count`: 3})
}

func TestClockSkewIsTheStoresLead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(nil, WithClock(w.clock.Node(-1500*time.Millisecond)))
	n.check("a", 1)
	n.link.hook(nil, func(*store.Reply) error { w.clock.Advance(200 * time.Millisecond); return nil })
	n.sync()
	// The store read its clock at the start of a round trip of 200 ms.
	n.exposes("behind", map[string]float64{`clock_skew_ms{partition="memory"}`: 1400})
	if got := n.Stats().Partitions[0].ClockSkew; got != 1400*time.Millisecond {
		t.Errorf("Stats says %v", got)
	}
}

func TestDryRunCountsWhatItWouldLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.DryRun = true })
	for range 110 {
		if !n.check("a", 1).Allowed() {
			t.Fatal("a dry run limited")
		}
	}
	n.sync()
	n.exposes("dry run", map[string]float64{
		`dry_run_limited_total`: 11, `eval_counts_total{result="limited"}`: 11, `eval_counts_total{result="allowed"}`: 99,
	})
	w.conserves(n)
}

// Several limiters of one process are exposed together with package metrics, each
// under its scope; a second one of the same scope keeps its metrics to itself.
func TestLimitersOfOneProcessDoNotCollide(t *testing.T) {
	t.Parallel()
	scope := func(name string) string { return t.Name() + name }
	open := func(name string) (*Limiter, *strings.Builder) {
		cfg := DefaultConfig()
		cfg.Scope = scope(name)
		log := &strings.Builder{}
		l, err := New(cfg, WithClock(newWorld(t).clock), WithLogger(slog.New(slog.NewTextHandler(log, nil))),
			WithPartitions(Partition{Name: "memory", Store: memstore.New(nil)}))
		if err != nil {
			t.Fatal(err)
		}
		return l, log
	}
	global := func(name string) string {
		var b bytes.Buffer
		metrics.WritePrometheus(&b, false)
		var ours strings.Builder
		for line := range strings.Lines(b.String()) {
			if strings.Contains(line, `scope="`+scope(name)+`"`) {
				ours.WriteString(line)
			}
		}
		return ours.String()
	}
	counts := func(text string) float64 { return exposed(t, text)[`eval_counts_total{result="allowed"}`] }
	a, _ := open("a")
	b, _ := open("b")
	again, log := open("a")
	for i, l := range []*Limiter{a, b, again} {
		l.Check("k", 1)
		for range i {
			l.Check("k", 1)
		}
		if err := l.Sync(context.Background()); err != nil {
			t.Fatal(err)
		}
		var own bytes.Buffer
		l.WritePrometheus(&own)
		if got := counts(own.String()); got != float64(i+1) {
			t.Errorf("limiter %d exposes %v decisions itself, want %d", i, got, i+1)
		}
	}
	if counts(global("a")) != 1 || counts(global("b")) != 2 {
		t.Errorf("exposed: %v and %v decisions, want those of the first of each scope: 1 and 2", counts(global("a")), counts(global("b")))
	}
	if !strings.Contains(log.String(), "same scope") {
		t.Errorf("the second limiter of a scope logged %q", log)
	}
	ctx := context.Background()
	a.Close(ctx)
	if counts(global("a")) != 3 {
		t.Errorf("after the first of a scope closed: %s, want the metrics of the one that lives", global("a"))
	}
	again.Close(ctx)
	if got := global("a"); got != "" {
		t.Errorf("after Close: %s", got)
	}
	if counts(global("b")) != 2 {
		t.Error("closing one limiter took another's metrics")
	}
	third, log := open("a") // the scope is free again
	if log.Len() != 0 || global("a") == "" {
		t.Errorf("a limiter after one of its scope closed is not exposed: %s", log)
	}
	third.Close(ctx)
	b.Close(ctx)
}

func TestOneSetHoldsAScopeOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	set := metrics.NewSet()
	n := w.node(nil, WithMetricsSet(set))
	names := set.ListMetricNames()
	cfg := DefaultConfig()
	if _, err := New(cfg, WithClock(w.clock), WithMetricsSet(set), WithPartitions(Partition{Name: "m", Store: w.mem})); err == nil ||
		!strings.Contains(err.Error(), "Scope") || !strings.Contains(err.Error(), `"default"`) {
		t.Errorf("a second limiter of the scope in the set: %v, want an error that names it", err)
	}
	if diff := cmp.Diff(names, set.ListMetricNames()); diff != "" {
		t.Errorf("the refused limiter changed the set (-before +after):\n%s", diff)
	}
	cfg.Scope = "other"
	l, err := New(cfg, WithClock(w.clock), WithMetricsSet(set), WithPartitions(Partition{Name: "m", Store: w.mem}))
	if err != nil {
		t.Fatal(err)
	}
	l.Close(context.Background())
	if diff := cmp.Diff(names, set.ListMetricNames()); diff != "" {
		t.Errorf("the closed limiter left something (-before +after):\n%s", diff)
	}
	n.Close(context.Background())
	if got := set.ListMetricNames(); len(got) != 0 {
		t.Errorf("left in the set: %q", got)
	}
}

func TestStatsAreAConsistentSnapshot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n, links := w.nodeOf(2, func(c *Config) { c.ChannelCapacity, c.LocalCacheMaxEntries = 20, 30 })
	var group sync.WaitGroup
	for g := range 3 {
		group.Go(func() {
			for i := range 2000 {
				n.Check(fmt.Sprint("k", (i*7+g)%100), 1)
			}
		})
	}
	group.Go(func() {
		for i := range 100 {
			if i%10 == 5 {
				links[0].breaks(nil, errTimeout)
			} else {
				links[0].heals()
			}
			n.Sync(context.Background())
		}
		links[0].heals()
	})
	group.Go(func() {
		for range 500 {
			s := n.Stats()
			if s.Undelivered > s.Counted || s.Counted != s.Delivered+s.Undelivered+s.Dropped.Total() {
				t.Errorf("%+v", s)
			}
		}
	})
	group.Wait()
	n.sync()
	n.Close(context.Background())
	s := n.Stats()
	if s.Counted != s.Allowed || s.Undelivered != 0 || s.Counted != s.Delivered+s.Dropped.Total() {
		t.Errorf("at the end: %+v", s)
	}
	for _, p := range s.Partitions {
		if p.Writes == 0 || p.InFlight != 0 || p.Queued != 0 || p.RoundTrips < p.Scripts {
			t.Errorf("at the end: %+v", p)
		}
	}
}
