package main

import (
	"math"
	"strings"
	"testing"
)

func readings(ns ...float64) []reading {
	list := make([]reading, len(ns))
	for i, v := range ns {
		list[i] = reading{ns: v, cpu: 2 * v}
	}
	return list
}

// results is a table of three rounds, in the second of which the machine is ten
// times slower.
func results() table {
	return table{
		"Serial": {
			ours: readings(40, 400, 40), "xtime": readings(100, 1000, 80), floor: readings(10, 100, 10),
			"leaky": readings(50, 500, 50), "sliding": readings(60, 600, 55), "allow": readings(20, 200, 16),
			"allow_low": readings(51, 510, 50), "check_low": readings(50, 500, 50),
			"allow_low_1000": readings(25, 250, 30), "check_low_1000": readings(50, 500, 50),
			"allow_low_outage": readings(52, 520, 50), "check_low_outage": readings(50, 500, 50),
		},
		"Parallel": {ours: readings(20, 200, 20), "allow": readings(10, 100, 16), floor: readings(5, 50, 4)},
		"HotSerial": {
			ours: readings(30, 300, 30), floor: readings(10, 100, 10), "allow": readings(19, 190, 30),
			"leaky": readings(20, 200, 20), "sliding": readings(21, 210, 25),
			"leaky_refused": readings(40, 400, 40), "sliding_refused": readings(46, 460, 40),
		},
		"HotParallel": {ours: readings(60, 600, 40), "allow": readings(42, 420, 40), floor: readings(20, 200, 20)},
	}
}

func TestRatiosAreMediansOfRounds(t *testing.T) {
	t.Parallel()
	found := ratios(results(), []string{ours, "xtime", floor, loop})
	want := []struct {
		name  string
		value float64
	}{
		{"xtime", 0.4},             // 0.4, 0.4, 0.5
		{"floor", 4},               // 4, 4, 4
		{"parallel", 1},            // 2 / 2, 2 / 2, 2 / 2.5
		{"hotkey", 0.5},            // 0.5, 0.5, 0.75
		{"sliding", 1.05},          // 1.05, 1.05, 1.25
		{"sliding_10000", 1.2},     // 1.2, 1.2, 1.1
		{"sliding_refused", 1.15},  // 1.15, 1.15, 1
		{"allow", 0.2},             // 0.2, 0.2, 0.2
		{"allow_floor", 2},         // 2, 2, 1.6
		{"allow_parallel", 1},      // 2 / 2, 2 / 2, 1 / 2.5
		{"allow_hotkey", 2.1},      // 2.1, 2.1, 2
		{"allow_onekey", 1.9},      // 1.9, 1.9, 3
		{"allow_low", 1.02},        // 1.02, 1.02, 1
		{"allow_low_1000", 0.5},    // 0.5, 0.5, 0.6
		{"allow_low_outage", 1.04}, // 1.04, 1.04, 1
	}
	if len(found) != len(want) {
		t.Fatalf("ratios = %+v, want %d of them", found, len(want))
	}
	for i, w := range want {
		if f := found[i]; f.name != w.name || math.Abs(f.ratio-w.value) > 1e-9 || math.Abs(f.cpu-w.value) > 1e-9 {
			t.Errorf("figure %d = %+v, want %s %v", i, f, w.name, w.value)
		}
	}
}

func TestMedian(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		values []float64
		want   float64
	}{
		{nil, 0},
		{[]float64{3}, 3},
		{[]float64{9, 1}, 5},
		{[]float64{9, 1, 2}, 2},
		{[]float64{4, 1, 2, 9}, 3},
	} {
		if got := median(row.values); got != row.want {
			t.Errorf("median(%v) = %v, want %v", row.values, got, row.want)
		}
	}
}

func TestTheRatiosAreTheLastLines(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	all := results()
	writeRatios(&b, all, ratios(all, []string{ours, "xtime", floor}))
	const want = "ratio xtime 0.400\nratio floor 4.000\nratio parallel 1.000\nratio hotkey 0.500\n" +
		"ratio sliding 1.050\nratio sliding_10000 1.200\nratio sliding_refused 1.150\n" +
		"ratio allow 0.200\nratio allow_floor 2.000\nratio allow_parallel 1.000\nratio allow_hotkey 2.100\nratio allow_onekey 1.900\n" +
		"ratio allow_low 1.020\nratio allow_low_1000 0.500\nratio allow_low_outage 1.040\n"
	if !strings.HasSuffix(b.String(), want) {
		t.Errorf("it wrote\n%s\nwant the end\n%s", b.String(), want)
	}
}

func TestAReadingIsALineForBenchstat(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	writeReading(&b, kind{name: "HotSerial", hot: true}, "ulule", 500, reading{ops: 7000, ns: 12.345, cpu: 9, bytes: 40, allocs: 2})
	if !strings.HasPrefix(b.String(), "BenchmarkHotSerial/keys=1/peer=ulule-") ||
		!strings.HasSuffix(b.String(), "\t7000\t12.35 ns/op\t9.00 cpu-ns/op\t40 B/op\t2 allocs/op\n") {
		t.Errorf("it wrote %q", b.String())
	}
}
