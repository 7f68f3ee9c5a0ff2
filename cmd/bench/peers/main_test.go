package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
)

// A whole run, as short as can be: its lines are benchstat's and its last ones the
// ratios. There may be no Redis to be had; then the run has to say so.
func TestARunEndsWithTheRatios(t *testing.T) {
	t.Parallel()
	var stdout, stderr bytes.Buffer
	if status := run(strings.Fields("-rounds 1 -time 1ns -keys 64"), &stdout, &stderr); status != exitOK {
		t.Fatalf("status %d, stderr %q", status, stderr.String())
	}
	names := []string{"xtime", "throttled", "throttled_map", "ulule", "sethvargo", "redis_rate", "floor", "parallel", "hotkey", "sliding", "sliding_10000", "sliding_refused", "allow", "allow_floor", "allow_parallel", "allow_hotkey", "allow_onekey", "allow_low", "allow_low_1000", "allow_low_outage", "checkfleet", "checkfleet_64", "checkfleet_one", "fleet_alone"}
	if strings.Contains(stderr.String(), "NOT MEASURED: redis_rate") && strings.Contains(stdout.String(), "# NOT MEASURED: redis_rate") {
		t.Logf("without redis_rate: %s", stderr.String())
		names = append(names[:5], names[6:len(names)-4]...)
	}
	lines := strings.Split(strings.TrimSpace(stdout.String()), "\n")
	for i, name := range names {
		line := lines[len(lines)-len(names)+i]
		if ok, _ := regexp.MatchString(`^ratio `+name+` \d+\.\d{3}$`, line); !ok {
			t.Errorf("line %d from the end is %q, want the ratio of %s", len(names)-i, line, name)
		}
	}
	for _, want := range []string{"\nBenchmarkSerial/keys=64/peer=limiters-", "\nBenchmarkHotParallel/keys=1/peer=floor-"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("no line begins with %q", want[1:])
		}
	}
}

func TestWrongFlagsExitWithTwo(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"-rounds 0":           "-rounds",
		"-time 0s":            "-time",
		"-keys 0":             "-keys",
		"more":                "more",
		"-gate absent/of/all": "-gate",
		"-rounds 1 -nonsense": "nonsense",
	} {
		var stdout, stderr bytes.Buffer
		if status := run(strings.Fields(args), &stdout, &stderr); status != exitUsage || !strings.Contains(stderr.String(), want) {
			t.Errorf("%s: status %d, stderr %q; want %d and %q", args, status, stderr.String(), exitUsage, want)
		}
	}
}
