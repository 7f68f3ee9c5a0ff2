// The dashboard and the alerts against what limiters expose while they run.

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"gopkg.in/yaml.v2"

	"github.com/hanzoai/limiters/internal/clock"
	"github.com/hanzoai/limiters/internal/exposition"
	"github.com/hanzoai/limiters/internal/memstore"
	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/ratelimit/overrides"
	"github.com/hanzoai/limiters/ratelimit/store"
)

// A failing store applies batches, and now and then says that it did not answer.
type failing struct {
	store.Store
	fails atomic.Bool
}

func (f *failing) Apply(ctx context.Context, b *store.Batch, r *store.Reply) error {
	err := f.Store.Apply(ctx, b, r)
	if f.fails.Load() {
		return &store.Error{Fate: store.Unknown, Step: store.StepReply, Cause: store.CauseTimeout, Err: errors.New("no reply")}
	}
	return err
}

// expose runs two nodes on two partitions through three windows with an outage in
// them, and returns what they expose.
func expose(t *testing.T) exposed {
	t.Helper()
	fake := clock.NewFake(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC))
	wall := func() int64 { now, _ := fake.Now(); return now }
	a, b := &failing{Store: memstore.New(wall)}, &failing{Store: memstore.New(wall)}
	cfg := ratelimit.DefaultConfig()
	cfg.GlobalThreshold = 100
	cfg.CustomKeys = ratelimit.Overrides{"key0": 10}
	var text bytes.Buffer
	var nodes []*ratelimit.Limiter
	var watchers []*overrides.Watcher
	answers := []error{nil, overrides.ErrAbsent, overrides.ErrMalformed, errors.New("unreachable")}
	source := overrides.SourceFunc(func(context.Context) (map[string]uint64, error) {
		err := answers[0]
		answers = append(answers[1:], err)
		return cfg.CustomKeys, err
	})
	for i := range 2 {
		set := metrics.NewSet()
		lim, err := ratelimit.New(cfg, ratelimit.WithClock(fake), ratelimit.WithLogger(nil), ratelimit.WithMetricsSet(set),
			ratelimit.WithPartitions(ratelimit.Partition{Name: "a", Store: a}, ratelimit.Partition{Name: "b", Store: b}))
		if err != nil {
			t.Fatalf("node %d: %v", i, err)
		}
		t.Cleanup(func() { lim.Close(context.Background()) })
		nodes = append(nodes, lim)
		read := exposition.OpenPlans(set, cfg.Scope)
		read.Observe(true)
		read.Observe(false)
		w := overrides.New(lim, source, overrides.WithClock(fake), overrides.WithLogger(nil), overrides.WithMetricsSet(set))
		t.Cleanup(w.Close)
		watchers = append(watchers, w)
	}
	for second := range 180 {
		for key := range 20 {
			for _, lim := range nodes {
				lim.Check(fmt.Sprint("key", key), uint64(key%5))
			}
		}
		a.fails.Store(second >= 60 && second < 63)
		b.fails.Store(second >= 60 && second < 63)
		fake.Advance(time.Second)
		for _, w := range watchers {
			_ = w.Refresh(t.Context()) // fails three times of four
		}
	}
	for _, lim := range nodes {
		lim.WritePrometheus(&text)
	}
	return parseExposed(t, text.String())
}

// TestMetricsAreExposed: the limiters that queries are judged by expose the whole
// table.
func TestMetricsAreExposed(t *testing.T) {
	t.Parallel()
	x := expose(t)
	for _, m := range metricsTable.Metrics {
		names := []string{metricsTable.FullName(m)}
		if m.Kind == "histogram" {
			names = nil
			for _, part := range histogramParts {
				names = append(names, metricsTable.FullName(m)+part)
			}
		}
		for _, name := range names {
			labels := x[name]
			if labels == nil {
				t.Errorf("%s is not exposed", name)
			}
			for _, l := range m.Labels {
				for _, value := range l.Values {
					if !slices.Contains(labels[l.Name], value) {
						t.Errorf("%s: no series has %s=%q", name, l.Name, value)
					}
				}
			}
		}
	}
	if got := x["global_rate_limiter_error_total"]["cause"]; !slices.Equal(got, []string{"timeout"}) {
		t.Errorf("causes of errors = %q, want the outage's", got)
	}
}

// legendLabel is a label in a legend, annotationLabel one in an annotation.
var (
	legendLabel     = regexp.MustCompile(`{{([a-z_]+)}}`)
	annotationLabel = regexp.MustCompile(`\$labels\.([a-z_]+)`)
)

// wantLabels fails for each label that a text shows and a query's result lacks.
func wantLabels(t *testing.T, what, text string, pattern *regexp.Regexp, labels []string) {
	t.Helper()
	for _, match := range pattern.FindAllStringSubmatch(text, -1) {
		if !slices.Contains(labels, match[1]) {
			t.Errorf("%s: %q shows %s, the query's labels are %v", what, text, match[1], labels)
		}
	}
}

func TestDashboardFitsWhatIsExposed(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("../docs/dashboards/limiters.json")
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Panels []struct {
			ID          int
			Type, Title string
			GridPos     struct{ X, Y, W, H int }
			Targets     []struct{ Expr, LegendFormat string }
		}
		Templating struct {
			List []struct{ Name, Definition string }
		}
	}
	if err := json.Unmarshal(content, &d); err != nil {
		t.Fatal(err)
	}
	x := expose(t)
	queries, taken := 0, map[[2]int]string{}
	for _, p := range d.Panels {
		for column := range p.GridPos.W {
			for line := range p.GridPos.H {
				cell := [2]int{p.GridPos.X + column, p.GridPos.Y + line}
				if other := taken[cell]; other != "" || cell[0] >= gridColumns {
					t.Fatalf("panel %q at %v lies over %q or outside", p.Title, cell, other)
				}
				taken[cell] = p.Title
			}
		}
		legends := map[string]bool{}
		for _, target := range p.Targets {
			queries++
			labels, err := x.judge(target.Expr)
			if err != nil {
				t.Errorf("panel %q: %s: %v", p.Title, target.Expr, err)
			}
			wantLabels(t, p.Title, target.LegendFormat, legendLabel, labels)
			for _, name := range labels { // or two lines have one name
				if !strings.Contains(target.LegendFormat, "{{"+name+"}}") {
					t.Errorf("panel %q: legend %q does not show %s", p.Title, target.LegendFormat, name)
				}
			}
			if legends[target.LegendFormat] {
				t.Errorf("panel %q: two queries have the legend %q", p.Title, target.LegendFormat)
			}
			legends[target.LegendFormat] = true
		}
	}
	if queries < len(metricsTable.Metrics) {
		t.Errorf("%d queries for %d metrics", queries, len(metricsTable.Metrics))
	}
	for _, v := range d.Templating.List[1:] {
		query, label, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(v.Definition, "label_values("), ")"), ", ")
		labels, err := x.judge(query)
		if err != nil || label != v.Name || !slices.Contains(labels, label) {
			t.Errorf("picker %s: %s: labels %v, %v", v.Name, v.Definition, labels, err)
		}
	}
}

func TestAlertsFitWhatIsExposed(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("../docs/alerts/limiters.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var rules struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	if err := yaml.UnmarshalStrict(content, &rules); err != nil {
		t.Fatal(err)
	}
	if len(rules.Groups) != 1 || len(rules.Groups[0].Rules) != len(alertsTable.Alerts) {
		t.Fatalf("%+v: want one group of %d rules", rules, len(alertsTable.Alerts))
	}
	x := expose(t)
	for i, rule := range rules.Groups[0].Rules {
		labels, err := x.judge(rule.Expr)
		if err != nil {
			t.Errorf("%s: %s: %v", rule.Alert, rule.Expr, err)
		}
		for _, text := range rule.Annotations {
			wantLabels(t, rule.Alert, text, annotationLabel, labels)
		}
		want := alertsTable.Alerts[i]
		if rule.Alert != want.Name || rule.For != want.For || rule.Labels["severity"] != want.Severity ||
			rule.Annotations["summary"] != want.Summary || rule.Annotations["description"] != want.Description {
			t.Errorf("rule %d reads back as %+v, want %+v", i, rule, want)
		}
	}
}

// TestEveryAlertIsExplained: the page that an alert links to has a section of its
// name, which the link's fragment finds.
func TestEveryAlertIsExplained(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range alertsTable.Alerts {
		if !strings.Contains(string(page), "\n### "+a.Name+"\n") {
			t.Errorf("docs/operations.md has no section %s", a.Name)
		}
	}
	for _, match := range regexp.MustCompile(`(?m)^### (Limiter\w+)$`).FindAllStringSubmatch(string(page), -1) {
		if !slices.ContainsFunc(alertsTable.Alerts, func(a alert) bool { return a.Name == match[1] }) {
			t.Errorf("docs/operations.md explains %s, which is no alert", match[1])
		}
	}
	if !strings.HasSuffix(alertsTable.Runbook, "/docs/operations.md") {
		t.Errorf("the alerts link to %s", alertsTable.Runbook)
	}
}
