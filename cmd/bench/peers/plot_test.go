package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gonum.org/v1/plot/plotter"
)

func TestSpreadsAreMediansWithTheExtremes(t *testing.T) {
	t.Parallel()
	s := spreads(results(), "Serial", []string{ours, "absent", "xtime"}, 0.25)
	want := plotter.XYs{{X: 0.25, Y: 40}, {X: 2.25, Y: 100}}
	if len(s.XYs) != len(want) || s.XYs[0] != want[0] || s.XYs[1] != want[1] {
		t.Errorf("points %v, want %v", s.XYs, want)
	}
	if low, high := s.YError(1); low != 20 || high != 900 {
		t.Errorf("the extremes of xtime are %v below and %v above, want 20 and 900", low, high)
	}
}

func TestThePlotNamesTheContestants(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "p.svg")
	if err := writePlot(path, &options{keys: 7, rounds: 3}, results(), []string{ours, floor}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"<svg", ">limiters<", ">floor<", "7 keys", "one goroutine"} {
		if !strings.Contains(string(text), part) {
			t.Errorf("the plot does not say %q", part)
		}
	}
}
