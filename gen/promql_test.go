// What is judged of a query: that every metric in it is exposed with the labels it
// is asked for, and that its parts fit each other.

package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/VictoriaMetrics/metricsql"
)

// exposed are the values of each label of each series' name that a process exposes.
type exposed map[string]map[string][]string

// scraped are the labels that a scrape adds.
var scraped = []string{"instance", "job"}

// parseExposed reads the text format. The label sets of a name's series must be the
// same.
func parseExposed(t *testing.T, text string) exposed {
	t.Helper()
	all := exposed{}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		series := line[:strings.LastIndexByte(line, ' ')]
		expr, err := metricsql.Parse(series)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		filters := expr.(*metricsql.MetricExpr).LabelFilterss[0]
		labels := all[filters[0].Value]
		if labels == nil {
			labels = map[string][]string{}
			all[filters[0].Value] = labels
		} else if len(labels) != len(filters)-1 {
			t.Errorf("%s: other labels than the series before", line)
		}
		for _, f := range filters[1:] {
			if !slices.Contains(labels[f.Label], f.Value) {
				labels[f.Label] = append(labels[f.Label], f.Value)
			}
		}
	}
	return all
}

// judge returns the labels of a query's result, or what is wrong with it.
func (x exposed) judge(query string) (labels []string, err error) {
	query = strings.ReplaceAll(query, "$__rate_interval", "1m")
	expr, err := metricsql.Parse(query)
	if err != nil {
		return nil, err
	}
	return x.labels(expr)
}

// labels returns the labels of an expression's result; those of a number are nil.
func (x exposed) labels(expr metricsql.Expr) ([]string, error) {
	switch e := expr.(type) {
	case *metricsql.NumberExpr:
		return nil, nil
	case *metricsql.MetricExpr:
		return x.ofMetric(e)
	case *metricsql.FuncExpr:
		return x.ofFunction(e)
	case *metricsql.AggrFuncExpr:
		return x.ofAggregate(e)
	case *metricsql.BinaryOpExpr:
		return x.ofOperator(e)
	}
	return nil, fmt.Errorf("%T is not expected in a query", expr)
}

func (x exposed) ofMetric(e *metricsql.MetricExpr) ([]string, error) {
	if len(e.LabelFilterss) != 1 {
		return nil, fmt.Errorf("%d alternatives, want one", len(e.LabelFilterss))
	}
	filters := e.LabelFilterss[0]
	name := filters[0].Value
	values, ok := x[name]
	if !ok {
		return nil, fmt.Errorf("%s is not exposed", name)
	}
	labels := slices.Clone(scraped)
	for label := range values {
		labels = append(labels, label)
	}
	slices.Sort(labels)
	for _, f := range filters[1:] {
		if !slices.Contains(labels, f.Label) {
			return nil, fmt.Errorf("%s has no label %s", name, f.Label)
		}
		for value := range strings.SplitSeq(f.Value, "|") {
			if !strings.HasPrefix(value, "$") && !slices.Contains(values[f.Label], value) {
				return nil, fmt.Errorf("%s never has %s=%q", name, f.Label, value)
			}
		}
	}
	return labels, nil
}

// ofFunction judges functions of a range, which name their window and fit the kind
// of the metric, and functions of values.
func (x exposed) ofFunction(e *metricsql.FuncExpr) ([]string, error) {
	if e.Name == "time" {
		return nil, nil // a number
	}
	last := e.Args[len(e.Args)-1]
	if e.Name == "clamp_max" {
		last = e.Args[0]
	}
	switch e.Name {
	case "rate", "increase", "min_over_time", "avg_over_time":
		rollup, ok := last.(*metricsql.RollupExpr)
		if !ok || rollup.Window == nil || rollup.ForSubquery() {
			return nil, fmt.Errorf("%s needs a series and a window in brackets", e.Name)
		}
		series, ok := rollup.Expr.(*metricsql.MetricExpr)
		if !ok {
			return nil, fmt.Errorf("%s of what is no series", e.Name)
		}
		labels, err := x.ofMetric(series)
		if err != nil {
			return nil, err
		}
		name := series.LabelFilterss[0][0].Value
		if isCounter(name) != (e.Name == "rate" || e.Name == "increase") {
			return nil, fmt.Errorf("%s of %s: counters grow, gauges do not", e.Name, name)
		}
		return labels, nil
	case "histogram_quantile":
		labels, err := x.labels(last)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(labels, "le") {
			return nil, fmt.Errorf("histogram_quantile over something without le")
		}
		return without(labels, []string{"le"}), nil
	case "abs", "clamp_max":
		return x.labels(last)
	}
	return nil, fmt.Errorf("%s is not expected in a query", e.Name)
}

// isCounter says whether a series of that name only grows.
func isCounter(name string) bool {
	for _, suffix := range append([]string{"_total"}, histogramParts...) {
		if strings.HasSuffix(name, suffix) {
			return true
		}
	}
	return false
}

func (x exposed) ofAggregate(e *metricsql.AggrFuncExpr) ([]string, error) {
	labels, err := x.labels(e.Args[0])
	if err != nil {
		return nil, err
	}
	for _, name := range e.Modifier.Args {
		if !slices.Contains(labels, name) {
			return nil, fmt.Errorf("%s %s(%s): there is no such label", e.Name, e.Modifier.Op, name)
		}
	}
	switch strings.ToLower(e.Modifier.Op) {
	case "by":
		return slices.Sorted(slices.Values(e.Modifier.Args)), nil
	case "without":
		return without(labels, e.Modifier.Args), nil
	}
	return nil, fmt.Errorf("%s over everything: limiters of all scopes in one", e.Name)
}

// ofOperator wants series on both sides that can match: with the same labels but
// for those ignored.
func (x exposed) ofOperator(e *metricsql.BinaryOpExpr) ([]string, error) {
	left, err := x.labels(e.Left)
	if err != nil {
		return nil, err
	}
	right, err := x.labels(e.Right)
	switch {
	case err != nil:
		return nil, err
	case left == nil:
		return right, nil
	case right == nil:
		return left, nil
	}
	ignored := e.GroupModifier.Args
	if strings.ToLower(e.GroupModifier.Op) == "on" && strings.ToLower(e.Op) == "and" {
		for _, name := range e.GroupModifier.Args {
			if !slices.Contains(left, name) || !slices.Contains(right, name) {
				return nil, fmt.Errorf("on(%s): labels %v and %v", name, left, right)
			}
		}
		return left, nil
	}
	if op := strings.ToLower(e.GroupModifier.Op); op != "" && op != "ignoring" {
		return nil, fmt.Errorf("%s is not expected in a query", op)
	}
	for _, name := range ignored {
		if !slices.Contains(left, name) {
			return nil, fmt.Errorf("ignoring(%s): the left side has no such label", name)
		}
	}
	if !slices.Equal(without(left, ignored), without(right, ignored)) {
		return nil, fmt.Errorf("%s never matches: labels %v and %v", e.Op, left, right)
	}
	return left, nil
}

// without returns the labels that are not left out.
func without(labels, out []string) []string {
	kept := []string{}
	for _, name := range labels {
		if !slices.Contains(out, name) {
			kept = append(kept, name)
		}
	}
	return kept
}

func TestJudge(t *testing.T) {
	t.Parallel()
	x := parseExposed(t, "# TYPE a_total counter\n"+`a_total{scope="s",result="good"} 1
a_total{scope="s",result="bad"} 2
g{scope="s"} 3
h_bucket{scope="s",le="1"} 1
h_count{scope="s"} 1
`)
	for query, want := range map[string]string{
		`sum by (scope, result) (rate(a_total{job=~"$job",result="good"}[$__rate_interval]))`: "result scope",
		`sum without (result) (increase(a_total[5m])) > 0 and g == 0`:                         "instance job scope",
		`g == 0 and on (scope) sum by (scope) (g) == 1`:                                       "instance job scope",
		`increase(a_total{result="bad"}[5m]) > ignoring (result) g`:                           "instance job result scope",
		`histogram_quantile(0.9, sum by (scope, le) (rate(h_bucket[5m]))) > 1`:                "scope",
		`abs(g) > clamp_max(100 * g, 2500)`:                                                   "instance job scope",
		`min_over_time(g[5m]) > 0`:                                                            "instance job scope",

		`sum by (scope (g)`:                  "error",
		`b_total`:                            "error",
		`a_total{result="god"}`:              "error",
		`a_total{result=~"good|god"}`:        "error",
		`g{result="good"}`:                   "error",
		`rate(a_total)`:                      "error",
		`rate(g[5m])`:                        "error",
		`avg_over_time(a_total[5m])`:         "error",
		`rate(sum by (scope) (a_total)[5m])`: "error",
		`rate(h[5m])`:                        "error",
		`sum(g)`:                             "error",
		`sum by (result) (g)`:                "error",
		`histogram_quantile(0.9, rate(h_count[5m]))`:    "error",
		`increase(a_total[5m]) > g`:                     "error",
		`g > ignoring (result) increase(a_total[5m])`:   "error",
		`sum by (scope) (g) and g`:                      "error",
		`g > on (scope) sum by (scope) (g)`:             "error",
		`quantile_over_time(0.5, g[5m])`:                "error",
		`{scope="s"}`:                                   "error",
		`sum by (scope) (rate(a_total[$__interval_x]))`: "error",
	} {
		labels, err := x.judge(query)
		got := strings.Join(labels, " ")
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("judge(%s) = %q, %v, want %q", query, labels, err, want)
		}
	}
}
