// Tests of the generated metrics: every time series, its label values, and
// limiters that share a set.

package ratelimit

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/VictoriaMetrics/metrics"
	"github.com/google/go-cmp/cmp"

	"github.com/hanzoai/limiters/ratelimit/store"
)

// written is what a set writes, without the zero buckets of histograms.
func written(set *metrics.Set) string {
	var b bytes.Buffer
	set.WritePrometheus(&b)
	return b.String()
}

func mustMetrics(t *testing.T, set *metrics.Set, scope string, partitions ...string) *limiterMetrics {
	t.Helper()
	m, err := newMetrics(set, scope, partitions)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestMetricsExistFromTheStart(t *testing.T) {
	t.Parallel()
	set := metrics.NewSet()
	mustMetrics(t, set, "s", "p0", "p1")
	got := set.ListMetricNames()
	const g, s = "global_rate_limiter_", `{scope="s"`
	want := []string{
		g + "tick_ms" + s + "}", g + "estimate_drift" + s + "}", g + "sync_staleness_ms" + s + "}",
		g + "fleet_check_ms" + s + "}",
		g + "pipeline_size" + s + `,op="write"}`, g + "pipeline_size" + s + `,op="read"}`,
		g + "dry_run_limited_total" + s + "}", g + "cache_size" + s + "}", g + "pending_sync_size" + s + "}", g + "deferred_size" + s + "}",
		g + "undelivered_units" + s + "}", g + "window_seconds" + s + "}", g + "window_mismatch_total" + s + "}",
		g + "waiting_calls" + s + "}", g + "lost_totals_total" + s + "}", g + "overrides_loaded" + s + "}",
		g + "overrides_checksum" + s + "}", g + "threshold" + s + "}",
		g + "build_info" + s + `,version="(devel)",go_version="` + runtime.Version() + `"}`,
	}
	for name, values := range map[string]string{
		"eval_counts_total{result}":    "allowed limited",
		"cache_counts_total{result}":   "hit miss sync_queued",
		"eviction_total{cause}":        "size expired explicit",
		"sync_tier_gauge{tier}":        "idle low normal hot",
		"dropped_units_total{cause}":   "stale poisoned overflow closed unknown",
		"returned_units_total{result}": "taken clamped unknown",
		"fleet_checks_total{result}":   "allowed limited local canceled",
	} {
		name, label, _ := strings.Cut(strings.TrimSuffix(name, "}"), "{")
		for value := range strings.FieldsSeq(values) {
			want = append(want, fmt.Sprintf(`%s%s%s,%s="%s"}`, g, name, s, label, value))
		}
	}
	tiers := []string{"idle", "low", "normal", "hot"}
	for _, from := range tiers {
		for _, to := range tiers {
			if from != to {
				want = append(want, fmt.Sprintf(`%stier_transitions_total%s,from="%s",to="%s"}`, g, s, from, to))
			}
		}
	}
	for _, p := range []string{"p0", "p1"} {
		for _, name := range []string{"pipeline_ms", "batch_retries_total", "partition_up", "clock_skew_ms", "forgotten_batches_total", "overlapping_prefixes"} {
			want = append(want, fmt.Sprintf(`%s%s%s,partition="%s"}`, g, name, s, p))
		}
		for _, op := range []string{"write", "read"} {
			want = append(want, fmt.Sprintf(`%srecords_total%s,op="%s",partition="%s"}`, g, s, op, p))
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("time series of a new limiter (-want +got):\n%s", diff)
	}
}

func TestMetricsFieldsAndTheirSeries(t *testing.T) {
	t.Parallel()
	set := metrics.NewSet()
	m := mustMetrics(t, set, "s", "p0", "p1")
	m.evalAllowed.Set(1)
	m.evalLimited.Set(2)
	m.dryRunLimited.Set(4)
	m.cacheHit.Set(5)
	m.cacheMiss.Set(6)
	m.cacheSyncQueued.Set(7)
	m.evictionSize.Set(8)
	m.evictionExpired.Set(9)
	m.evictionExplicit.Set(10)
	m.droppedStale.Set(11)
	m.droppedPoisoned.Set(12)
	m.droppedOverflow.Set(13)
	m.droppedClosed.Set(14)
	m.droppedUnknown.Set(15)
	m.syncTier[3].Set(16)
	m.tierTransitions[0][3].Set(17)
	m.tierTransitions[3][0].Set(18)
	m.recordsWrite[1].Set(19)
	m.recordsRead[1].Set(20)
	m.batchRetries[1].Set(21)
	m.partitionUp[1].Set(1)
	m.clockSkewMS[1].Set(-22.5)
	m.undeliveredUnits.Set(23)
	m.windowMismatch.Set(24)
	m.overlappingPrefixes[1].Set(25)
	m.forgottenBatches[1].Set(26)
	m.lostTotals.Set(27)
	m.pipelineSizeRead.Update(500)
	m.errorTotal(store.StepReply, store.CauseTimeout, 1).Inc()
	got := written(set)
	for _, line := range strings.Split(`eval_counts_total{scope="s",result="allowed"} 1
eval_counts_total{scope="s",result="limited"} 2
dry_run_limited_total{scope="s"} 4
cache_counts_total{scope="s",result="hit"} 5
cache_counts_total{scope="s",result="miss"} 6
cache_counts_total{scope="s",result="sync_queued"} 7
eviction_total{scope="s",cause="size"} 8
eviction_total{scope="s",cause="expired"} 9
eviction_total{scope="s",cause="explicit"} 10
dropped_units_total{scope="s",cause="stale"} 11
dropped_units_total{scope="s",cause="poisoned"} 12
dropped_units_total{scope="s",cause="overflow"} 13
dropped_units_total{scope="s",cause="closed"} 14
dropped_units_total{scope="s",cause="unknown"} 15
sync_tier_gauge{scope="s",tier="hot"} 16
sync_tier_gauge{scope="s",tier="idle"} 0
tier_transitions_total{scope="s",from="idle",to="hot"} 17
tier_transitions_total{scope="s",from="hot",to="idle"} 18
records_total{scope="s",op="write",partition="p1"} 19
records_total{scope="s",op="read",partition="p1"} 20
records_total{scope="s",op="read",partition="p0"} 0
batch_retries_total{scope="s",partition="p1"} 21
partition_up{scope="s",partition="p0"} 0
partition_up{scope="s",partition="p1"} 1
clock_skew_ms{scope="s",partition="p1"} -22.5
undelivered_units{scope="s"} 23
window_mismatch_total{scope="s"} 24
overlapping_prefixes{scope="s",partition="p1"} 25
forgotten_batches_total{scope="s",partition="p0"} 0
forgotten_batches_total{scope="s",partition="p1"} 26
lost_totals_total{scope="s"} 27
pipeline_size_bucket{scope="s",op="read",le="100"} 0
pipeline_size_bucket{scope="s",op="read",le="500"} 1
pipeline_size_sum{scope="s",op="read"} 500
error_total{scope="s",step="reply",cause="timeout",partition="p1"} 1`, "\n") {
		if !strings.Contains(got, "global_rate_limiter_"+line+"\n") {
			t.Errorf("line %q is missing", line)
		}
	}
	for i := range m.tierTransitions {
		if m.tierTransitions[i][i] != nil {
			t.Errorf("there is a transition from tier %d to itself", i)
		}
	}
}

func TestMetricsBuckets(t *testing.T) {
	t.Parallel()
	set := metrics.NewSet()
	m := mustMetrics(t, set, "s", "p")
	for _, h := range []*metrics.PrometheusHistogram{m.tickMS, m.pipelineMS[0], m.pipelineSizeWrite, m.estimateDrift, m.syncStalenessMS} {
		h.Update(0)
	}
	got := map[string][]string{}
	for line := range strings.SplitSeq(written(set), "\n") {
		name, rest, found := strings.Cut(line, "_bucket{")
		if _, bound, _ := strings.Cut(rest, `le="`); found && !strings.Contains(rest, `op="read"`) {
			bound, _, _ = strings.Cut(bound, `"`)
			name = strings.TrimPrefix(name, "global_rate_limiter_")
			got[name] = append(got[name], bound)
		}
	}
	want := map[string][]string{}
	for name, bounds := range map[string]string{
		"pipeline_ms":       "0.5 1 2 5 10 20 30 50 75 100 150 250 500 1000 +Inf",
		"tick_ms":           "1 2 5 10 25 50 100 150 250 400 600 1000 2000 4000 +Inf",
		"pipeline_size":     "1 10 50 100 500 1000 2000 5000 10000 20000 50000 +Inf",
		"fleet_check_ms":    "0.25 0.5 1 2 5 10 20 30 50 75 100 150 250 500 1000 +Inf",
		"estimate_drift":    "0.001 0.005 0.01 0.05 0.1 0.25 0.5 1 +Inf",
		"sync_staleness_ms": "100 500 1000 2000 5000 10000 15000 30000 60000 120000 +Inf",
	} {
		want[name] = strings.Fields(bounds)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("buckets (-want +got):\n%s", diff)
	}
}

// TestMetricsLabelValues: scope and partition may hold anything.
func TestMetricsLabelValues(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"plain": "plain", "": "", `a"b`: `a\"b`, `a\b`: `a\\b`, "a\nb": `a\nb`, `\"`: `\\\"`, `"`: `\"`, `a\`: `a\\`, "{}=,é": "{}=,é", "a\xffb": "a\uFFFDb",
	} {
		set := metrics.NewSet()
		m := mustMetrics(t, set, value, value)
		m.errorTotal(store.StepSend, store.CauseTLS, 0).Inc()
		text := written(set)
		for _, line := range []string{
			`cache_size{scope="` + want + `"} 0`,
			`partition_up{scope="` + want + `",partition="` + want + `"} 0`,
			`pipeline_ms_bucket{scope="` + want + `",partition="` + want + `",le="0.5"} 0`,
			`error_total{scope="` + want + `",step="send",cause="tls",partition="` + want + `"} 1`,
		} {
			if !strings.Contains(text, "global_rate_limiter_"+line+"\n") {
				t.Errorf("label value %q: line %q is missing", value, line)
			}
		}
		m.unregister()
		if names := set.ListMetricNames(); len(names) > 0 {
			t.Errorf("label value %q: after unregister there is %q", value, names)
		}
	}
}

// TestMetricsClosedErrorLabels: a store of somebody else cannot make label
// values up.
func TestMetricsClosedErrorLabels(t *testing.T) {
	t.Parallel()
	set := metrics.NewSet()
	m := mustMetrics(t, set, "s", "p")
	before := len(set.ListMetricNames())
	for i := range 100 {
		m.errorTotal(fmt.Sprint("step", i), fmt.Sprint("cause", i), 0).Inc()
	}
	if got := len(set.ListMetricNames()) - before; got != 1 {
		t.Errorf("100 unknown failures made %d time series, want 1", got)
	}
	if got := m.errorTotal("", "", 0).Get(); got != 100 {
		t.Errorf("unknown failures counted = %d, want 100", got)
	}
	if text := written(set); !strings.Contains(text, `error_total{scope="s",step="other",cause="other",partition="p"} 100`) {
		t.Errorf("no error_total of other: %s", text)
	}
}

// TestMetricsRegisteredTwice is an error, not a panic, and leaves nothing behind.
func TestMetricsRegisteredTwice(t *testing.T) {
	t.Parallel()
	set := metrics.NewSet()
	first := mustMetrics(t, set, "s", "p")
	names := set.ListMetricNames()
	if m, err := newMetrics(set, "s", []string{"q"}); err == nil || m != nil || !strings.HasPrefix(err.Error(), `ratelimit: Scope "s": `) {
		t.Errorf("the same scope in one set: %v, %v; want an error", m, err)
	}
	if diff := cmp.Diff(names, set.ListMetricNames()); diff != "" {
		t.Errorf("a refused limiter changed the set (-before +after):\n%s", diff)
	}
	if m, err := newMetrics(set, "t", []string{"p", "p"}); err == nil || m != nil {
		t.Errorf("two partitions of one name: %v, %v; want an error", m, err)
	}
	if diff := cmp.Diff(names, set.ListMetricNames()); diff != "" {
		t.Errorf("a limiter refused half way changed the set (-before +after):\n%s", diff)
	}
	second := mustMetrics(t, set, "t", "p")
	first.unregister()
	first.unregister()
	if got := len(set.ListMetricNames()); got != len(names) {
		t.Errorf("after the first was unregistered there are %d time series, want the %d of the second", got, len(names))
	}
	third := mustMetrics(t, set, "s", "p") // the scope is free again
	second.unregister()
	third.unregister()
	if got := set.ListMetricNames(); len(got) > 0 {
		t.Errorf("left behind: %q", got)
	}
}

// TestMetricsRacingLimiters: of many that want one scope exactly one gets it.
func TestMetricsRacingLimiters(t *testing.T) {
	t.Parallel()
	set := metrics.NewSet()
	var wg sync.WaitGroup
	results := make([]*limiterMetrics, 8)
	for i := range results {
		wg.Go(func() { results[i], _ = newMetrics(set, "s", []string{"p"}) })
	}
	wg.Wait()
	if got := len(results) - len(slices.DeleteFunc(slices.Clone(results), func(m *limiterMetrics) bool { return m != nil })); got != 1 {
		t.Errorf("%d limiters got the scope, want 1", got)
	}
}

// TestMetricsLateFailure: one counted after Close does not come back into the
// set.
func TestMetricsLateFailure(t *testing.T) {
	t.Parallel()
	set := metrics.NewSet()
	m := mustMetrics(t, set, "s", "p")
	m.errorTotal(store.StepConnect, store.CauseUnreachable, 0).Inc()
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for range 100 {
				m.errorTotal(store.StepReply, []string{store.CauseBusy, store.CauseTimeout, store.CauseAuth, "x"}[i], 0).Inc()
			}
		})
	}
	wg.Go(m.unregister)
	wg.Wait()
	m.errorTotal(store.StepReply, store.CauseClosed, 0).Inc()
	if got := set.ListMetricNames(); len(got) > 0 {
		t.Errorf("after unregister there is %q", got)
	}
}
