package accuracy

// This file holds the library to its targets, and the page to what is measured.

import (
	"bytes"
	"context"
	"io"
	"math"
	"os"
	"strings"
	"testing"
)

// docs is where the page and the figures are.
const docs = "../../../../docs/"

// TestTargets is deterministic: no machine is too slow for it.
func TestTargets(t *testing.T) {
	t.Parallel()
	specs := scenarios()
	if raceEnabled {
		specs = some(specs, "threshold 10 3x 10 nodes", "window 1s tick 100ms 3x 10 nodes", "burst 4.5x in 1s 3 nodes rtt 10ms")
		t.Logf("with the race detector only %d of %d scenarios run", len(specs), len(scenarios()))
	}
	rows, err := measure(context.Background(), specs, usualSeed)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range missed(rows) {
		t.Error(line)
	}
	if raceEnabled {
		return
	}
	for name, write := range map[string]func(io.Writer, []row) error{
		"accuracy.md": writePage, "accuracy.svg": writeFigure, "accuracy-kinds.svg": writePicture,
	} {
		var want bytes.Buffer
		if err := write(&want, rows); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(docs + name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want.Bytes()) {
			t.Errorf("docs/%s is not what is measured; run: make accuracy", name)
		}
	}
}

// some returns the scenarios of some names.
func some(specs []scenario, names ...string) (found []scenario) {
	for _, s := range specs {
		for _, name := range names {
			if s.name == name {
				found = append(found, s)
			}
		}
	}
	return found
}

// named returns the scenario of a name.
func named(name string) *scenario {
	found := some(scenarios(), name)
	if len(found) != 1 {
		panic("accuracy: no scenario " + name)
	}
	return &found[0]
}

// Each target is missed by a row that is just beyond it, and by none that is at it.
func TestEveryTargetCanBeMissed(t *testing.T) {
	t.Parallel()
	percent := func(v float64) *float64 { return &v }
	for _, c := range []struct {
		scenario string
		by       schedule
		at       row // misses nothing
		beyond   row // misses what
		what     string
	}{
		{"steady 3x 10 nodes", oursTick, row{Worst: 1.679}, row{Worst: 1.680}, "worst window 1.68, want at most 1.679"},
		{"cut off 3x 1 of 10 nodes", oursTick, row{Worst: 2.15}, row{Worst: 2.16}, "worst window"},
		{"steady 3x 1 node", sliding, row{Worst: 1.03, Mean: 1}, row{Worst: 1.031, Mean: 1}, "worst window 1.031, want at most 1.03"},
		{"steady 10x 1 node", sliding, row{Worst: 1.10, Mean: 1}, row{Worst: 1.101, Mean: 1}, "worst window"},
		{"steady 3x 10 nodes", sliding, row{Worst: 1.07, Mean: 1.05}, row{Worst: 1.071, Mean: 1}, "worst window"},
		{"steady 10x 10 nodes", sliding, row{Worst: 1.16, Mean: 0.97}, row{Worst: 1.161, Mean: 1}, "worst window"},
		{"steady 10x 100 nodes", sliding, row{Worst: 1.25, Mean: 1}, row{Worst: 1.251, Mean: 1}, "worst window"},
		{"steady 1.5x 10 nodes", sliding, row{Mean: 0.97}, row{Mean: 0.969}, "mean window 0.969, want at least 0.97"},
		{"steady 10x 10 nodes", sliding, row{Mean: 1.05}, row{Mean: 1.051}, "mean window"},
		{"steady 3x 10 nodes", strict, row{Mean: 0.95}, row{Mean: 0.949}, "mean window"},
		{"steady 3x 10 nodes", burst, row{Worst: 1.10, Mean: 0.99}, row{Worst: 1.101, Mean: 1}, "worst window"},
		{"steady 10x 100 nodes", burst, row{Worst: 1.28, Mean: 1.015}, row{Worst: 1.28, Mean: 1.016}, "mean window"},
		{"any traffic 1 node", strict, row{Worst: 1}, row{Worst: 1.001}, "worst window"},
		{"burst 4.5x in 1s 3 nodes", sliding, row{Worst: 1.12}, row{Worst: 1.121}, "worst window"},
		{"burst 4.5x in 1s 10 nodes", ours, row{Worst: 1.20}, row{Worst: 1.201}, "worst window"},
		{"burst 4.5x in 1s 50 nodes rtt 10ms", sliding, row{Worst: 1.40}, row{Worst: 1.401}, "worst window"},
		{"burst 4.5x in 1s 3 nodes rtt 40ms", sliding, row{Worst: 1.6}, row{Worst: 1.601}, "worst window"},
		{"steady 0.97x 10 nodes", ours, row{}, row{FalseLimits: 1}, "false limits 1, want at most 0"},
		{"hopping 0.95x 10 nodes", sliding, row{}, row{FalseLimits: 1}, "false limits"},
		{"on/off 30s 1.8x 10 nodes", sliding, row{}, row{FalseLimits: 1}, "false limits"},
		{"on/off 30s 1.8x 10 nodes", ours, row{FalseLimits: 9999}, row{}, ""}, // two counters cannot know
		{"steady 0.99x 10 nodes", sliding, row{FalseLimits: 9}, row{}, ""},
		{"one hot entity 3x", sliding, row{Scripts: 2, Mean: 1}, row{Scripts: 2.01, Mean: 1}, "scripts per node and second"},
		{"300 entities 0.5x", ours, row{Scripts: 7}, row{Scripts: 7.01}, "scripts per node and second"},
		{"10000 entities threshold 10", sliding, row{most: 30}, row{most: 31}, "scripts of a node between two ticks"},
		{"polite client 1 node", sliding, row{RefusedAgain: percent(0)}, row{RefusedAgain: percent(0.01)}, "refused again"},
		{"polite clients 3 nodes", ours, row{RefusedAgain: percent(14)}, row{RefusedAgain: percent(14.01)}, "refused again"}, // up to 14 % is known
		{"polite clients 3 nodes, thresholds 5 to 100", ours, row{RefusedAgain: percent(50)}, row{}, ""},
		{"steady 3x 10 nodes", timedReads, row{Worst: 10, Mean: 3, FalseLimits: 10, Scripts: 99}, row{}, ""}, // not judged
	} {
		spec := named(c.scenario)
		lines := func(r row) string {
			r.spec, r.Schedule = spec, c.by
			all := []row{r}
			for _, floor := range []row{
				{Schedule: oneNode, Worst: 1.6}, {Schedule: oursTick, Scripts: 1, most: 1, Worst: 1},
			} {
				if floor.spec = spec; floor.Schedule != c.by {
					all = append(all, floor)
				}
			}
			return strings.Join(missed(all), "; ")
		}
		if got := lines(c.at); strings.Contains(got, c.what) && c.what != "" || c.what == "" && got != "" {
			t.Errorf("%s, %s, at the target: missed %q", c.scenario, c.by, got)
		}
		if got := lines(c.beyond); c.what != "" && !strings.Contains(got, c.what) {
			t.Errorf("%s, %s, beyond it: missed %q, want %q", c.scenario, c.by, got, c.what)
		}
	}
}

// The formula goes by what comes first: the part, the tick, or the shortest time between
// two scripts and the round trip.
func TestBounds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		want float64 // at a floor of 1
	}{
		{"steady 3x 10 nodes", 1 + unitsFactor*3*0.625/60 + 1.0/32 + 20.0/6000},             // a part is full in 0.625 s
		{"steady 10x 1 node", 1 + unitsFactor*10*0.1875/60 + 1.0/32 + 2.0/6000},             // a node that is alone: a 32nd of the threshold in 188 ms
		{"steady 0.5x 10 nodes", 1 + unitsFactor*0.5*1/60 + 1.0/32 + 20.0/6000},             // the tick comes first
		{"burst 4.5x in 1s 3 nodes", 1 + unitsFactor*45*0.0125/10 + 1.0/32 + 6.0/600},       // a fiftieth of the tick
		{"burst 4.5x in 1s 3 nodes rtt 10ms", 1 + unitsFactor*45*0.0225/10 + 1.0/32 + 0.01}, // and the round trip
	} {
		if got := named(c.name).unitsBound(1); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: bound %v, want %v", c.name, got, c.want)
		}
	}
}
