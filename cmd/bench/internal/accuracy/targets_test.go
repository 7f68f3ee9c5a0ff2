package accuracy

// This file holds the library to its targets, and the page to what is measured.

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"
)

// docs is where the page and the figure are.
const docs = "../../../../docs/"

// TestTargets is deterministic: no machine is too slow for it.
func TestTargets(t *testing.T) {
	t.Parallel()
	specs := scenarios()
	if raceEnabled {
		specs = some(specs, "threshold 10 3x 10 nodes", "window 1s tick 100ms 3x 10 nodes")
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
	for name, write := range map[string]func() ([]byte, error){
		"accuracy.md":  func() ([]byte, error) { var b bytes.Buffer; err := writePage(&b, rows); return b.Bytes(), err },
		"accuracy.svg": func() ([]byte, error) { var b bytes.Buffer; err := writeFigure(&b, rows); return b.Bytes(), err },
	} {
		want, err := write()
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(docs + name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
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

// Each target is missed by a row that is just beyond it, and by none that is at it.
func TestEveryTargetCanBeMissed(t *testing.T) {
	t.Parallel()
	cut := steady(3, 10)
	cut.cutOff = true
	short := steady(3, 10)
	short.window, short.tick = time.Second, 100*time.Millisecond
	few := steady(3, 10)
	few.threshold = 10
	wave := varying("wave", 3, nil)
	usual, low := steady(3, 10), steady(0.95, 10)
	for _, c := range []struct {
		name  string
		spec  scenario
		by    schedule
		row   row
		floor row
		want  string // part of the line; "" for none
	}{
		{"at the bound", usual, ours, row{Worst: 1.679, Mean: 1}, row{Worst: 1.6}, ""},
		{"above the bound", usual, ours, row{Worst: 1.680, Mean: 1}, row{Worst: 1.6}, "worst window 1.68, want at most 1.679"},
		{"cut off, at its bound", cut, ours, row{Worst: 2.159}, row{Worst: 1.6}, ""},
		{"cut off, above its bound", cut, ours, row{Worst: 2.160}, row{Worst: 1.6}, "worst window"},
		{"hot, at the bound", usual, hot, row{Worst: 1.76, Mean: 1}, row{Worst: 1.6}, ""},
		{"hot, above the bound", usual, hot, row{Worst: 1.77, Mean: 1}, row{Worst: 1.6}, "worst window"},
		{"hot at a small threshold", few, hot, row{Worst: 3}, row{Worst: 1.6}, ""},
		{"hot under a load that changes", wave, hot, row{Worst: 3}, row{Worst: 1.6}, ""},
		{"mean too low", usual, ours, row{Mean: 0.969}, row{}, "mean window"},
		{"mean too high", usual, hot, row{Mean: 1.081}, row{}, "mean window"},
		{"mean of long ticks", short, ours, row{Mean: 1.2}, row{}, ""},
		{"mean with a node cut off", cut, ours, row{Mean: 1.2}, row{}, ""},
		{"a false limit below the limit", low, ours, row{FalseLimits: 1}, row{FalseLimits: 9}, "false limits"},
		{"as many as the floor", wave, ours, row{FalseLimits: 9}, row{FalseLimits: 9}, ""},
		{"more than the floor", wave, hot, row{FalseLimits: 10}, row{FalseLimits: 9}, "false limits"},
		{"the document's are not judged", usual, document, row{Worst: 10, Mean: 3, FalseLimits: 10}, row{}, ""},
	} {
		c.row.spec, c.floor.spec = &c.spec, &c.spec
		c.row.Schedule, c.floor.Schedule = c.by, oneNode
		lines := missed([]row{c.row, c.floor})
		if got := strings.Join(lines, "; "); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: missed %q, want %q", c.name, got, c.want)
		}
	}
}
