// Tests of the generator: small tables against golden files, the real ones
// against the tree.

package main

import (
	"bytes"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// smallConfig has one field of each type, a derived one and a relation.
func smallConfig() config {
	return config{
		Prefix: "SMALL_",
		Groups: []group{
			{Title: "First", Fields: []field{
				{Name: "WindowInterval", Env: "WINDOW_INTERVAL_SECS", Type: "time.Duration", Default: "60 * time.Second", Unit: time.Second, Min: ms, Max: hour, Step: ms, Doc: "is the window."},
				{Name: "Size", Env: "SIZE", Type: "int", Default: "1_000", Min: 1, Max: 2000, Doc: "is a size, described by a sentence that is long enough to be wrapped into a second line."},
				{Name: "Limit", Env: "LIMIT", Type: "uint64", Default: "7", Doc: "is a limit."},
				{Name: "Keys", Env: "KEYS_CSV", Type: "Overrides", Doc: "are keys."},
			}},
			{Title: "Second", Fields: []field{
				{Name: "Extra", Env: "EXTRA_MS", Type: "time.Duration", Unit: time.Millisecond, Min: 10 * ms, Max: sec, Off: true, Doc: "is extra."},
				{Name: "Half", Env: "HALF_SECS", Type: "time.Duration", Unit: time.Second, Min: ms, Max: hour, From: "WindowInterval", Derive: "c.WindowInterval / 2", DeriveText: "WindowInterval / 2", Usual: "30s", Doc: "is half."},
				{Name: "Flag", Env: "FLAG", Type: "bool", Doc: "is a flag | switch."},
				{Name: "On", Env: "ON", Type: "bool", Default: "true", Doc: "is on."},
				{Name: "Kind", Env: "KIND", Type: "Kind", Default: "KindA", Values: []string{"a", "b", "c"}, Doc: "is a kind."},
				{Name: "Maybe", Env: "MAYBE", Type: "Maybe", Values: []string{"", "it"}, Doc: "is it, or not."},
				{Name: "Name", Env: "NAME", Type: "string", Default: `"some_name"`, Min: 1, Max: 9, Doc: "is a name."},
				{Name: "URLs", Env: "URLS", Type: "[]string", Required: true, Min: 1, Max: 3, Doc: "are URLs."},
			}},
		},
		Relations: []relation{{Left: "Half", Op: "≤", Mul: 3, Div: 4, Fixed: 1, Right: "WindowInterval", Why: "it is so"}},
	}
}

// smallMetrics has one family of each form.
func smallMetrics() metricTable {
	sides := []string{"left", "right"}
	return metricTable{
		Prefix: "small_",
		Metrics: []metric{
			{Name: "one", Field: "one", Kind: "gauge", Form: single, Unit: "units", Help: "One."},
			{Name: "named_total", Field: "named", Kind: "counter", Form: named, Unit: "units", Labels: []label{{"result", []string{"good", "not_good"}}}, Help: "Two."},
			{Name: "indexed", Field: "indexed", Kind: "gauge", Form: indexed, Unit: "units", Labels: []label{{"side", sides}}, Help: "Two."},
			{Name: "paired_total", Field: "paired", Kind: "counter", Form: paired, Unit: "units", Labels: []label{{"from", sides}, {"to", sides}}, Help: "|Two|."},
			{Name: "each_ms", Field: "eachMS", Kind: "histogram", Form: partition, Unit: "milliseconds", Labels: []label{perPartition}, Buckets: []string{"0.5", "1"}, Help: "Some."},
			{Name: "crossed_total", Field: "crossed", Kind: "counter", Form: crossed, Unit: "units", Labels: []label{operations, perPartition}, Help: "Some."},
			{Name: "about", Field: "about", Kind: "gauge", Form: described, Unit: "none", Labels: []label{{Name: "version"}, {Name: "go"}}, Help: "\\ \"One\"."},
			{Name: "afar", Kind: "gauge", Form: elsewhere, Unit: "units", Help: "One."},
			{Name: "error_total", Field: "errorTotal", Kind: "counter", Form: failures, Unit: "units", Labels: []label{{Name: "step"}, {Name: "cause"}, perPartition}, Help: "Some."},
		},
		Steps:  []constant{{"StepA", "a"}, {"StepB", "b"}},
		Causes: []constant{{"CauseA", "a"}, {"CauseB", "b"}, {"CauseC", "c"}},
	}
}

// smallTables show every family of smallMetrics, and alert on one.
func smallTables() tables {
	return tables{
		Config: smallConfig(), Metrics: smallMetrics(),
		Dashboard: dashboard{UID: "small", Title: "Small", Pick: "one", Rows: []row{
			{Title: "First", Panels: []panel{
				{Title: "A", Doc: "Shows A.", Unit: "short", Queries: []query{{"max by (scope) (<one>)", "most {{scope}}"}, {"min by (scope) (<one>)", "fewest {{scope}}"}}},
				{Title: "B", Doc: "Shows B.", Unit: "ops", Stacked: true, Queries: []query{{`sum by (result) (rate(<named_total{result="good"}>[$__rate_interval]))`, "{{result}}"}}},
				{Title: "C", Doc: "Shows C.", Unit: "short", Queries: []query{{"<indexed>", "{{side}}"}, {"<about>", "{{version}}"}, {"<afar>", "afar"}}},
				{Title: "D", Doc: "Shows D.", Unit: "ops", Queries: []query{{"rate(<paired_total>[$__rate_interval])", "{{from}} {{to}}"}}},
			}},
			{Title: "Second", Panels: []panel{
				{Title: "E", Doc: "Shows E.", Unit: "ms", Queries: quantiles("each_ms", "scope, partition")},
				{Title: "F", Doc: "Shows F.", Unit: "ops", Queries: []query{{"rate(<crossed_total>[$__rate_interval]) - rate(<error_total>[$__rate_interval])", "{{op}}"}}},
			}},
		}},
		Alerts: alerts{Group: "small", Runbook: "https://example.com/runbook", Alerts: []alert{
			{Name: "LimiterOne", Expr: "<one> > 1", For: "5m", Severity: "warning", Summary: "One is {{ $value }}.", Description: "It says \"one\"."},
			{Name: "LimiterTwo", Expr: `increase(<named_total{result=~"good|not_good"}>[5m]) > 0`, Severity: "info", Summary: "Two.", Description: "Two."},
		}},
	}
}

func TestGolden(t *testing.T) {
	t.Parallel()
	files, err := generate(smallTables())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		golden := filepath.Join("testdata", filepath.Base(f.path)+".golden")
		if *update {
			if err := os.WriteFile(golden, f.content, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(f.content)); diff != "" {
			t.Errorf("%s (-golden +generated; run the test with -update if the new one is right):\n%s", golden, diff)
		}
	}
}

func TestTreeIsCurrent(t *testing.T) {
	t.Parallel()
	if err := run([]string{"-check"}, "..", &bytes.Buffer{}); err != nil {
		t.Error(err)
	}
}

func TestFilesBeginWithTheMarker(t *testing.T) {
	t.Parallel()
	files, err := generate(allTables)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		".md":   "<!-- Code generated by gen; DO NOT EDIT. -->\n",
		".go":   "// Code generated by gen; DO NOT EDIT.\n",
		".yaml": "# Code generated by gen; DO NOT EDIT.\n",
		// JSON has no comments.
		".json": "{\n  \"annotations\": {\n    \"list\": []\n  },\n  \"description\": \"Code generated by gen; DO NOT EDIT. ",
	}
	for _, f := range files {
		marker := want[filepath.Ext(f.path)]
		if marker == "" || !strings.HasPrefix(string(f.content), marker) {
			t.Errorf("%s begins with %.80q, want %q", f.path, f.content, marker)
		}
		if n := bytes.Count(f.content, []byte("\n")); n > 400 && filepath.Ext(f.path) != ".json" {
			t.Errorf("%s has %d lines, want at most 400", f.path, n)
		}
	}
}

func TestCheckNamesStaleFiles(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	all := "docs/alerts/limiters.yaml, docs/configuration.md, docs/dashboards/limiters.json, docs/metrics.md, internal/exposition/families_gen.go, ratelimit/config_fields_gen.go, ratelimit/config_gen.go, ratelimit/metrics_gen.go"
	wantStale := func(step, paths string) {
		t.Helper()
		err := run([]string{"-check"}, root, &bytes.Buffer{})
		want := "gen: stale: " + paths + "\nrun: make generate"
		if err == nil || err.Error() != want {
			t.Errorf("%s: -check = %v, want %q", step, err, want)
		}
	}
	wantStale("an empty tree", all)

	var out bytes.Buffer
	if err := run(nil, root, &out); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "gen: wrote "+strings.ReplaceAll(all, ", ", "\ngen: wrote ")+"\n"; got != want {
		t.Errorf("writing reported %q, want %q", got, want)
	}
	if err := run([]string{"-check"}, root, &out); err != nil {
		t.Errorf("after writing: -check = %v", err)
	}

	page := filepath.Join(root, "docs", "metrics.md")
	if err := os.WriteFile(page, []byte("edited\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	wantStale("an edited page", "docs/metrics.md")
	out.Reset()
	if err := run(nil, root, &out); err != nil || out.String() != "gen: wrote docs/metrics.md\n" {
		t.Errorf("writing again = %v, reported %q, want the edited page alone", err, out.String())
	}
}

func TestRunRefusesArguments(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"extra"}, {"-unknown"}} {
		if err := run(args, t.TempDir(), &bytes.Buffer{}); err == nil {
			t.Errorf("run(%q) succeeded", args)
		}
	}
}

// TestStoreConstants keeps the label values of error_total complete.
func TestStoreConstants(t *testing.T) {
	t.Parallel()
	parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "ratelimit", "store", "store.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var steps, causes []constant
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		literal, ok := spec.Values[0].(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return true
		}
		value, err := strconv.Unquote(literal.Value)
		if err != nil {
			t.Error(err)
		}
		switch name := spec.Names[0].Name; {
		case strings.HasPrefix(name, "Step"):
			steps = append(steps, constant{name, value})
		case strings.HasPrefix(name, "Cause"):
			causes = append(causes, constant{name, value})
		}
		return true
	})
	if diff := cmp.Diff(steps, metricsTable.Steps); diff != "" {
		t.Errorf("steps (-package store +table):\n%s", diff)
	}
	if diff := cmp.Diff(causes, metricsTable.Causes); diff != "" {
		t.Errorf("causes (-package store +table):\n%s", diff)
	}
}
