package accuracy

// This file tests the line of one's own.

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hanzoai/limiters/cmd/bench/internal/command"
)

// One of the flags is enough to get one line, and the others have their defaults.
func TestALineOfOnesOwn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		name string
	}{
		{[]string{"-nodes", "2", "-window", "1s", "-threshold", "200"}, "leaky 3x 2 nodes, 200 per 1s"},
		{[]string{"-nodes", "1", "-window", "2s", "-load", "0.5", "-threshold", "50"}, "leaky 0.5x 1 node, 50 per 2s"},
		{[]string{"-kind", "fixed", "-nodes", "2", "-window", "1s", "-tick", "50ms", "-threshold", "70"}, "fixed 3x 2 nodes, 70 per 1s"},
		{[]string{"-burst", "100ms", "-window", "1s", "-nodes", "2", "-threshold", "70"}, "leaky 3x 2 nodes, 70 per 1s"},
	} {
		var stdout, stderr bytes.Buffer
		status := Run(context.Background(), append(c.args, "-json", "-"), &stdout, &stderr)
		var rows []row
		if err := json.Unmarshal(stdout.Bytes(), &rows); err != nil || status != command.OK {
			t.Errorf("%q: status %d, %v, %s", c.args, status, err, stderr.String())
			continue
		}
		var by []schedule
		for _, r := range rows {
			by = append(by, r.Schedule)
			if r.Scenario != c.name {
				t.Errorf("%q: a line of %q, want %q", c.args, r.Scenario, c.name)
			}
			if r.Mean <= 0 || r.Worst <= 0 {
				t.Errorf("%q: nothing was admitted: %+v", c.args, r)
			}
		}
		if !slices.Equal(by, forOwn) {
			t.Errorf("%q: lines by %q, want %q", c.args, by, forOwn)
		}
	}
}

// What the flags say reaches the configuration of every line.
func TestTheFlagsReachTheConfiguration(t *testing.T) {
	t.Parallel()
	o, err := parseOptions([]string{
		"-threshold", "77", "-window", "30s", "-tick", "200ms", "-kind", "sliding", "-burst", "3s", "-nodes", "4", "-load", "2.5",
	}, &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	s := o.own.scenario()
	for _, by := range []schedule{custom, customTick, customOneNode} {
		cfg := planOf(by).config(&s)
		if cfg.GlobalThreshold != 77 || cfg.WindowInterval.Seconds() != 30 || cfg.TickInterval.Milliseconds() != 200 ||
			cfg.Window != "sliding" || cfg.BurstInterval.Seconds() != 3 || cfg.SyncByUnits == (by == customTick) {
			t.Errorf("%s: %v", by, cfg)
		}
	}
	if s.nodes != 4 || s.factor != 2.5 {
		t.Errorf("%d nodes at %v", s.nodes, s.factor)
	}
}

// All that is wrong is said at once, by the flag's name or the setting's.
func TestWrongLinesOfOnesOwn(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	for _, c := range []struct {
		args []string
		says []string
	}{
		{[]string{"-nodes", "0", "-load", "-1", "-threshold", "0"}, []string{"-nodes 0", "-load -1", "-threshold 0"}},
		{[]string{"-nodes", "1000000"}, []string{"-nodes 1000000"}},
		{[]string{"-load", "NaN"}, []string{"-load NaN"}},
		{[]string{"-load", "+Inf"}, []string{"-load +Inf"}},
		{[]string{"-threshold", "9007199254740992"}, []string{"-threshold 9007199254740992"}},
		{[]string{"-threshold", "-1"}, []string{"-threshold"}},
		{[]string{"-kind", "round"}, []string{"-kind round", "leaky, sliding or fixed"}},
		{[]string{"-window", "1ms", "-tick", "-1s"}, []string{"WindowInterval", "TickInterval"}},
		{[]string{"-window", "10s", "-burst", "11s"}, []string{"BurstInterval"}},
		{[]string{"-window", "10s", "-tick", "9s"}, []string{"TickInterval"}},
		{[]string{"-nodes", "2", "-page", file}, []string{"-page"}},
		{[]string{"-nodes", "2", "-svg", file}, []string{"-svg"}},
		{[]string{"-nodes", "2", "-kinds", file}, []string{"-kinds"}},
	} {
		var out bytes.Buffer
		status := Run(context.Background(), c.args, &out, &out)
		for _, text := range c.says {
			if status != command.Usage || !strings.Contains(out.String(), text) {
				t.Errorf("Run(%q) = %d and says %q; want %d, %q", c.args, status, out.String(), command.Usage, text)
			}
		}
	}
}
