package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const file = `limits:
  burst: {threshold: 5, window: 1s}
  trial: {threshold: 100, calendar: month, ask: fleet, dry_run: true, key: everybody}
plans: {free: {burst: 2}}
keys: {free-1: free}
routes:
  - {pattern: GET /v1/, key: user, cost: 2, limits: [burst, trial]}
  - {pattern: a.example/open, key: user, limits: []}
block: [{key: thief, until: 2026-12-31T00:00:00Z}]
allow: [{key: probe}]
`

func TestCheck(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	good, wrong := filepath.Join(dir, "good.yaml"), filepath.Join(dir, "wrong.yaml")
	for path, text := range map[string]string{good: file, wrong: strings.Replace(file, "threshold: 5", "threshold: x", 1)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	head := good + ": good: 2 limits, 1 plan, 2 routes\n"
	for _, row := range []struct {
		args   string
		status int
		out    string // all of it
		errs   string // part of it
	}{
		{"check GOOD", 0, head, ""},
		{"check WRONG", 1, "", wrong + `:2: limits.burst.threshold: "x": want a whole number`},
		{"check GOOD -method GET -path /v1/x -key free-1", 0, head + "GET /v1/x takes the route \"GET /v1/\"\nthe key \"free-1\" has the plan free\n" +
			"  burst: 2 per 1s (sliding, by user, cost 2)\n  trial: 100 per month (fixed, by everybody, cost 2, asks Redis, dry run)\n", ""},
		{"check -path /v1/x -key thief GOOD", 0, head + "GET /v1/x takes the route \"GET /v1/\"\nthe key \"thief\" has no plan\nit is blocked until 2026-12-31T00:00:00Z\n", ""},
		{"check -path /v1/x -key probe GOOD", 0, head + "GET /v1/x takes the route \"GET /v1/\"\nthe key \"probe\" has no plan\nit is on the allow list, and passes uncounted\n", ""},
		{"check -path /open -host a.example GOOD", 0, head + "GET http://a.example/open takes the route \"a.example/open\"\nthe key \"\" has no plan\nno limit applies\n", ""},
		{"check -path /elsewhere GOOD", 0, head + "GET /elsewhere matches no route: it is not limited\n", ""},
		{"check -path v1 GOOD", 2, head, "want one that begins with /"},
		{"check -method G/T -path /v1 GOOD", 2, head, `the method "G/T"`},
		{"check", 2, "", "usage: limits check"},
		{"check GOOD WRONG", 2, "", "usage: limits check"},
		{"check -nothing GOOD", 2, "", "flag provided but not defined"},
		{"check GONE", 1, "", "no such file"},
		{"chek GOOD", 2, "", "usage: limits check"},
		{"", 2, "", "usage: limits check"},
	} {
		args := strings.Fields(strings.NewReplacer("GOOD", good, "WRONG", wrong, "GONE", filepath.Join(dir, "gone")).Replace(row.args))
		var out, errs strings.Builder
		status := run(args, &out, &errs, time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC))
		if status != row.status || out.String() != row.out || !strings.Contains(errs.String(), row.errs) || (row.errs == "") != (errs.Len() == 0) {
			t.Errorf("limits %s: status %d, want %d\n%s%s\nwant\n%s%s", row.args, status, row.status, out.String(), errs.String(), row.out, row.errs)
		}
	}
	var out strings.Builder
	if run([]string{"schema"}, &out, &out, time.Now()) != 0 || !strings.Contains(out.String(), `"$schema"`) {
		t.Errorf("limits schema: %s", out.String())
	}
}
