// Tests of what the tables are checked for, and of the texts made of rows.

package main

import (
	"strings"
	"testing"
	"time"
)

func TestVerifyConfig(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		change func(c *config)
		want   string // part of the error; empty: none
	}{
		{"nothing", func(*config) {}, ""},
		{"unexported name", func(c *config) { c.Groups[0].Fields[1].Name = "size" }, "not an exported Go name"},
		{"variable in small letters", func(c *config) { c.Groups[0].Fields[1].Env = "size" }, "not a name"},
		{"variable twice", func(c *config) { c.Groups[0].Fields[1].Env = "LIMIT" }, `"LIMIT" is empty or used twice`},
		{"name twice", func(c *config) { c.Groups[0].Fields[1].Name = "Limit" }, `"Limit" is empty or used twice`},
		{"unknown type", func(c *config) { c.Groups[0].Fields[2].Type = "float64" }, "unknown type"},
		{"values of a plain type", func(c *config) { c.Groups[0].Fields[2].Values = []string{"a", "b"} }, "has no list of values"},
		{"one value", func(c *config) { c.Groups[1].Fields[4].Values = []string{"a"} }, "unknown type"},
		{"no description", func(c *config) { c.Groups[0].Fields[2].Doc = "" }, "no description"},
		{"number with a unit", func(c *config) { c.Groups[0].Fields[1].Unit = time.Second }, "has a unit"},
		{"duration without a unit", func(c *config) { c.Groups[0].Fields[0].Unit = 0 }, "has a unit"},
		{"bounds reversed", func(c *config) { c.Groups[0].Fields[1].Min = 3000 }, "bounds 3000 … 2000"},
		{"default too large", func(c *config) { c.Groups[0].Fields[1].Default = "2_001" }, `default "2_001" is outside`},
		{"default not readable", func(c *config) { c.Groups[0].Fields[0].Default = "2 * time.Hour" }, "is outside"},
		{"derived from a later field", func(c *config) { c.Groups[0].Fields[0].From = "Half" }, `derives from "Half"`},
		{"derived without an expression", func(c *config) { c.Groups[1].Fields[1].Derive = "" }, "needs an expression"},
		{"relation to nothing", func(c *config) { c.Relations[0].Right = "Nothing" }, "unknown field"},
		{"relation without a factor", func(c *config) { c.Relations[0].Div = 0 }, "no factor"},
		{"relation with an unknown operator", func(c *config) { c.Relations[0].Op = "=" }, "operator"},
	} {
		all := smallTables()
		row.change(&all.Config)
		_, err := generate(all)
		wantError(t, row.name, err, row.want)
	}
}

func TestVerifyMetrics(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		change func(m *metricTable)
		want   string
	}{
		{"nothing", func(*metricTable) {}, ""},
		{"name twice", func(m *metricTable) { m.Metrics[1].Name = "one" }, "used twice"},
		{"name with a dash", func(m *metricTable) { m.Metrics[1].Name = "a-b" }, "not a name"},
		{"field twice", func(m *metricTable) { m.Metrics[1].Field = "one" }, `field "one"`},
		{"unknown kind", func(m *metricTable) { m.Metrics[0].Kind = "summary" }, `unknown kind "summary"`},
		{"no description", func(m *metricTable) { m.Metrics[0].Help = "" }, "no description"},
		{"no unit", func(m *metricTable) { m.Metrics[0].Unit = "" }, "no unit"},
		{"unknown form", func(m *metricTable) { m.Metrics[0].Form = "round" }, `form "round"`},
		{"a label too many", func(m *metricTable) { m.Metrics[0].Labels = []label{perPartition} }, "with 1 labels"},
		{"label taken", func(m *metricTable) { m.Metrics[1].Labels[0].Name = "scope" }, `label "scope"`},
		{"value with a quote", func(m *metricTable) { m.Metrics[1].Labels[0].Values[0] = `"` }, "not a name"},
		{"histogram without buckets", func(m *metricTable) { m.Metrics[4].Buckets = nil }, "has buckets"},
		{"gauge with buckets", func(m *metricTable) { m.Metrics[0].Buckets = []string{"1"} }, "has buckets"},
		{"buckets not ascending", func(m *metricTable) { m.Metrics[4].Buckets = []string{"1", "1"} }, `bucket "1"`},
		{"bucket no number", func(m *metricTable) { m.Metrics[4].Buckets = []string{"1k"} }, `bucket "1k"`},
	} {
		all := smallTables()
		row.change(&all.Metrics)
		_, err := generate(all)
		wantError(t, row.name, err, row.want)
	}
}

func TestVerifyDashboard(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		change func(d *dashboard)
		want   string
	}{
		{"nothing", func(*dashboard) {}, ""},
		{"no title", func(d *dashboard) { d.Rows[0].Panels[0].Title = "" }, "no title"},
		{"no description", func(d *dashboard) { d.Rows[0].Panels[0].Doc = "" }, "no title, description"},
		{"no unit", func(d *dashboard) { d.Rows[0].Panels[0].Unit = "" }, "no title, description, unit"},
		{"no query", func(d *dashboard) { d.Rows[0].Panels[2].Queries = nil }, `panel "C": no title, description, unit or query`},
		{"a metric is not shown", func(d *dashboard) { d.Rows[0].Panels = d.Rows[0].Panels[1:] }, `metric "one" is in no panel`},
		{"unknown metric", func(d *dashboard) { d.Rows[0].Panels[0].Queries[0].Expr = "<two>" }, `panel "A": <two>: not in the table`},
		{"no metric", func(d *dashboard) { d.Rows[0].Panels[0].Queries[0].Expr = "vector(1)" }, "refers to no metric"},
		{"histogram without a suffix", func(d *dashboard) { d.Rows[0].Panels[0].Queries[0].Expr = "<each_ms>" }, "a histogram needs"},
		{"suffix without a histogram", func(d *dashboard) { d.Rows[0].Panels[0].Queries[0].Expr = "<one_count>" }, "not in the table"},
		{"unknown label", func(d *dashboard) { d.Rows[0].Panels[1].Queries[0].Expr = `<named_total{resuld="good"}>` }, "has no label resuld"},
		{"unknown value", func(d *dashboard) { d.Rows[0].Panels[1].Queries[0].Expr = `<named_total{result="god"}>` }, `result is never "god"`},
		{"no selector", func(d *dashboard) { d.Rows[0].Panels[1].Queries[0].Expr = `<named_total{result}>` }, "selector result"},
		{"unknown label picker", func(d *dashboard) { d.Pick = "two" }, "<two>: not in the table"},
	} {
		all := smallTables()
		row.change(&all.Dashboard)
		_, err := generate(all)
		wantError(t, row.name, err, row.want)
	}
}

func TestVerifyAlerts(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		change func(a *alert) // of the first one
		want   string
	}{
		{"nothing", func(*alert) {}, ""},
		{"at once", func(a *alert) { a.For = "" }, ""},
		{"another name", func(a *alert) { a.Name = "One" }, "begins with Limiter"},
		{"name twice", func(a *alert) { a.Name = "LimiterTwo" }, "used twice"},
		{"for seconds", func(a *alert) { a.For = "90s" }, "want minutes"},
		{"unknown severity", func(a *alert) { a.Severity = "page" }, `unknown severity "page"`},
		{"no summary", func(a *alert) { a.Summary = "" }, "no summary"},
		{"no description", func(a *alert) { a.Description = "" }, "no summary or no description"},
		{"unknown metric", func(a *alert) { a.Expr = "<two> > 1" }, `alert "LimiterOne": <two>: not in the table`},
		{"no metric", func(a *alert) { a.Expr = "small_one > 1" }, "refers to no metric"},
		{"another label's value", func(a *alert) { a.Expr = `<named_total{result=~"good|bad"}> > 1` }, `never "bad"`},
	} {
		all := smallTables()
		row.change(&all.Alerts.Alerts[0])
		_, err := generate(all)
		wantError(t, row.name, err, row.want)
	}
}

func wantError(t *testing.T, name string, err error, part string) {
	t.Helper()
	switch {
	case part == "" && err != nil:
		t.Errorf("%s: generate = %v, want no error", name, err)
	case part != "" && (err == nil || !strings.Contains(err.Error(), part)):
		t.Errorf("%s: generate = %v, want an error with %q", name, err, part)
	}
}

func TestComment(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("abcdefghi ", 20)
	for indent := range 3 {
		words := 0
		for line := range strings.SplitSeq(comment(indent, text), "\n") {
			if !strings.HasPrefix(line, strings.Repeat("\t", indent)+"// abc") || strings.HasSuffix(line, " ") {
				t.Errorf("comment(%d): line %q", indent, line)
			}
			if width := len(line) + 3*indent; width > 78 {
				t.Errorf("comment(%d): %d columns in %q, want at most 78", indent, width, line)
			}
			words += strings.Count(line, "abcdefghi")
		}
		if words != 20 {
			t.Errorf("comment(%d): %d words, want 20", indent, words)
		}
	}
}

func TestGoDuration(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{
		year: "8760 * time.Hour", hour: "time.Hour", 90 * sec: "90 * time.Second", sec: "time.Second",
		250 * ms: "250 * time.Millisecond", ms: "time.Millisecond", 7: "7 * time.Nanosecond",
	} {
		if got := goDuration(n); got != want {
			t.Errorf("goDuration(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestRelationLimit(t *testing.T) {
	t.Parallel()
	for want, r := range map[string]relation{
		"W":         {Mul: 1, Div: 1, Right: "W"},
		"2 × W":     {Mul: 2, Div: 1, Right: "W"},
		"W / 4":     {Mul: 1, Div: 4, Right: "W"},
		"3 × W / 4": {Mul: 3, Div: 4, Right: "W"},
	} {
		if got := r.Limit(); got != want {
			t.Errorf("Limit of %+v = %q, want %q", r, got, want)
		}
	}
}
