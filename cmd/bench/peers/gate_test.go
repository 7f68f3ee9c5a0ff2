package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func ratioFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "peers.txt")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReadRatiosTakesTheRatioLines(t *testing.T) {
	t.Parallel()
	found, err := readRatios(ratioFile(t, "goos: linux\nBenchmarkSerial 1 2 ns/op\n# by processor time: xtime 0.3\nratio xtime 0.400\nratio floor 2.5\n"))
	if err != nil || len(found) != 2 || found["xtime"] != 0.4 || found["floor"] != 2.5 {
		t.Errorf("readRatios = %v, %v", found, err)
	}
}

func TestReadRatiosWantsWhatTheGateJudges(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                     "xtime",
		"ratio xtime 0.4\n":                    "floor",
		"ratio xtime 0.4\nratio floor zero\n":  "zero",
		"ratio xtime NaN\nratio floor 1\n":     "NaN",
		"ratio xtime 0.4\nratio floor -0.01\n": "-0.01",
	} {
		if found, err := readRatios(ratioFile(t, text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("of %q: %v, error %v; want an error that names %q", text, found, err, want)
		}
	}
	if _, err := readRatios(filepath.Join(t.TempDir(), "absent")); err == nil {
		t.Error("no error about a file that is not there")
	}
}

func TestJudgeAllowsHalfMoreThanCommitted(t *testing.T) {
	t.Parallel()
	committed := map[string]float64{"xtime": 0.4, floor: 2, "ulule": 0.1}
	for _, row := range []struct {
		xtime, floor float64
		want         []string // parts of the problems
	}{
		{0.4, 2, nil},
		{0.6, 3, nil},
		{0.601, 2, []string{"ratio xtime is 0.601"}},
		{0.1, 3.001, []string{"ratio floor is 3.001"}},
		{1, 9, []string{"xtime", "floor"}},
	} {
		found := []figure{{name: "xtime", ratio: row.xtime}, {name: "ulule", ratio: 9}, {name: floor, ratio: row.floor}}
		problems := judge(found, committed)
		if len(problems) != len(row.want) {
			t.Errorf("xtime %v, floor %v: problems %q, want %d", row.xtime, row.floor, problems, len(row.want))
			continue
		}
		for i, part := range row.want {
			if !strings.Contains(problems[i], part) {
				t.Errorf("problem %q does not say %q", problems[i], part)
			}
		}
	}
}
