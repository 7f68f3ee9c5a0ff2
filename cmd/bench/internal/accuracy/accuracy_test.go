package accuracy

// This file tests the command around the run, and what it is made of.

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hanzoai/limiters/cmd/bench/internal/command"
)

func TestWrongArguments(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args   []string
		status int
		says   string // on stdout or stderr
	}{
		{[]string{"-h"}, command.OK, "-svg file"},
		{[]string{"-seed", "x"}, command.Usage, `"x"`},
		{[]string{"table"}, command.Usage, `unexpected argument "table"`},
	} {
		var out bytes.Buffer
		if status := Run(context.Background(), c.args, &out, &out); status != c.status || !strings.Contains(out.String(), c.says) {
			t.Errorf("Run(%q) = %d and says %q; want %d, %q", c.args, status, out.String(), c.status, c.says)
		}
	}
}

func TestARunThatIsInterruptedFails(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var stdout, stderr bytes.Buffer
	if status := Run(ctx, nil, &stdout, &stderr); status != command.Failed || stdout.Len() > 0 {
		t.Errorf("status %d, stdout %q; want %d and nothing", status, stdout.String(), command.Failed)
	}
}

// With -json - standard output is an array of rows with exactly the agreed fields.
func TestJSONAlone(t *testing.T) {
	t.Parallel()
	rows, err := measure(context.Background(), some(scenarios(), "threshold 10 3x 10 nodes"), usualSeed)
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	if err := (&options{json: "-"}).write(rows, &stdout, &stderr); err != nil {
		t.Fatal(err)
	}
	var got []map[string]any
	if err := json.Unmarshal(stdout.Bytes(), &got); err != nil {
		t.Fatalf("%v in %s", err, stdout.String())
	}
	if len(got) != len(schedules) {
		t.Fatalf("%d rows, want %d", len(got), len(schedules))
	}
	for i, r := range got {
		if r["schedule"] != string(schedules[i]) || r["scenario"] != "threshold 10 3x 10 nodes" {
			t.Errorf("row %d is of %v by %v", i, r["scenario"], r["schedule"])
		}
		for _, field := range []string{"worst", "mean", "false_limits", "first_limit_s", "reads", "writes", "scripts"} {
			if _, ok := r[field].(float64); !ok {
				t.Errorf("row %d: %s is %v", i, field, r[field])
			}
		}
		if len(r) != 9 {
			t.Errorf("row %d has %d fields: %v", i, len(r), r)
		}
	}
	if !strings.Contains(stderr.String(), "timed-reads") {
		t.Error("the table is not on standard error")
	}
}

func TestFilesThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "missing", "file")
	for _, o := range []options{{json: name}, {svg: name}, {kinds: name}, {page: name}} {
		if err := o.write(nil, &bytes.Buffer{}, &bytes.Buffer{}); err == nil {
			t.Errorf("%+v: no error", o)
		}
	}
}

// The same seed makes the same rows, another one other rows.
func TestARunIsDeterministic(t *testing.T) {
	t.Parallel()
	spec := steady(3, 10)
	spec.window, spec.tick = time.Second, 100*time.Millisecond
	for _, by := range append(slices.Clone(schedules), forBursts...) {
		first, second := simulate(&spec, by, 2, 1), simulate(&spec, by, 2, 1)
		if !reflect.DeepEqual(first, second) {
			t.Errorf("%s: %+v, then %+v", by, first, second)
		}
	}
	if first, other := simulate(&spec, ours, 2, 1), simulate(&spec, ours, 2, 2); reflect.DeepEqual(first, other) {
		t.Errorf("another seed made the same row %+v", first)
	}
}

func TestScenarios(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, s := range scenarios() {
		if seen[s.name] {
			t.Errorf("two scenarios are called %q", s.name)
		}
		seen[s.name] = true
		if s.ticks() > s.window/4 || s.window%time.Duration(s.runs()) != 0 {
			t.Errorf("%s: tick %v, window %v, %d phases", s.name, s.ticks(), s.window, s.runs())
		}
		if s.polite != nil || s.name == "any traffic 1 node" {
			continue
		}
		highest, load := 0.0, s.load(1)
		for at := time.Duration(0); at < s.lasts(); at += s.window / 20 {
			highest = max(highest, load(at))
		}
		if highest != s.factor {
			t.Errorf("%s: the load reaches %v, its factor is %v", s.name, highest, s.factor)
		}
	}
	for _, name := range []string{
		"steady 0.95x 10 nodes", "steady 3x 1 node", "steady 10x 100 nodes", "burst 4.5x in 1s 3 nodes", "burst 4.5x in 1s 10 nodes",
		"burst 4.5x in 1s 50 nodes", "burst 60x in 1s 50 nodes", "burst 4.5x in 1s 3 nodes rtt 10ms", "burst 4.5x in 1s 50 nodes rtt 40ms",
		"steady 0.97x 10 nodes", "steady 0.99x 10 nodes", "hopping 0.95x 10 nodes", "scale-down 100 to 1", "sparse 1 per hour 10 nodes",
		"polite clients 3 nodes", "polite client 1 node", "any traffic 1 node", "one hot entity 3x", "300 entities 0.5x",
		"10000 entities threshold 10", "10000 entities threshold 100",
	} {
		if !seen[name] {
			t.Errorf("there is no scenario %q", name)
		}
	}
}

func TestOffsetsSpreadEvenly(t *testing.T) {
	t.Parallel()
	s := steady(3, 5)
	s.clocks = 2 * time.Second
	for i, want := range []time.Duration{-2, -1, 0, 1, 2} {
		if got := s.offset(i); got != want*time.Second {
			t.Errorf("node %d is %v ahead, want %v", i, got, want*time.Second)
		}
	}
}

// A sliding log admits one unit less than the threshold in any window, and forgets
// a unit exactly one window after it.
func TestExactIsASlidingLog(t *testing.T) {
	t.Parallel()
	s := steady(3, 10)
	s.threshold = 4
	e := newExact(&s)
	for i, row := range []struct {
		advance time.Duration
		units   uint64
		want    bool
	}{
		{0, 1, true},
		{0, 4, false},
		{20 * time.Second, 2, true},
		{0, 1, false},
		{40*time.Second - 1, 1, false}, // the first unit's last moment
		{1, 1, true},
		{0, 1, false},
		{20 * time.Second, 2, true},
		{time.Hour, 3, true},
	} {
		e.Advance(row.advance)
		if got := e.Offer(i, "k", row.units); got != row.want {
			t.Errorf("row %d: %d units allowed = %v, want %v", i, row.units, got, row.want)
		}
	}
}
