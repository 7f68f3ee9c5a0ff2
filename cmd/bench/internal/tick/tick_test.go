package tick

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/hanzoai/limiters/cmd/bench/internal/command"
	"github.com/hanzoai/limiters/cmd/bench/localredis"
	"github.com/hanzoai/limiters/internal/level"
)

// A whole run on a real server, for Redis's processor time is nowhere else.
func TestATickRunPrintsARatioPerSizeAndBaseline(t *testing.T) {
	t.Parallel()
	status, stdout, stderr := call(t, "-sizes 40,600 -window 10s -json -")
	if strings.Contains(stderr, localredis.ErrNone.Error()) && os.Getenv("REQUIRE_REDIS") != "1" {
		t.Skipf("SKIPPED, NOT TESTED: %s", stderr)
	}
	if status != command.OK {
		t.Fatalf("status %d, stderr %s", status, stderr)
	}
	var found []ratio
	for line := range strings.Lines(stdout) {
		var fields map[string]any
		var r ratio
		if err := errors.Join(json.Unmarshal([]byte(line), &fields), json.Unmarshal([]byte(line), &r)); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		want := []string{"baseline", "bytes_ratio", "entities", "longest_script_ms", "node_cpu_ratio", "redis_cpu_ratio", "round_trips_per_tick"}
		got := []string{}
		for name := range fields {
			got = append(got, name)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("the fields are %q, want %q", got, want)
		}
		found = append(found, r)
	}
	want := []ratio{
		{Entities: 40, Baseline: "every", RoundTrips: 1},
		{Entities: 40, Baseline: "tiered", RoundTrips: 1},
		{Entities: 600, Baseline: "every", RoundTrips: 2},
		{Entities: 600, Baseline: "tiered", RoundTrips: 2},
	}
	if len(found) != len(want) {
		t.Fatalf("%d objects, want %d: %s", len(found), len(want), stdout)
	}
	for i, w := range want {
		r := found[i]
		if r.Entities != w.Entities || r.Baseline != w.Baseline || r.RoundTrips != w.RoundTrips {
			t.Errorf("object %d is %+v, want %+v", i, r, w)
		}
		// Bytes depend on no clock: half is what the design promises.
		if r.Baseline == baselineEvery && !(r.Bytes > 0 && r.Bytes < 0.5) || !(r.RedisCPU > 0) || !(r.NodeCPU > 0) {
			t.Errorf("object %d is %+v: ratios out of range", i, r)
		}
	}
	for _, part := range []string{"fitted: a tick takes", "every: INCRBY"} {
		if !strings.Contains(stderr, part) {
			t.Errorf("the report does not say %q:\n%s", part, stderr)
		}
	}
}

func TestWrongTickFlagsExitWithTwo(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"-sizes 0":                   "-sizes",
		"-sizes 100,":                "-sizes",
		"-sizes 1000001":             "-sizes",
		"-tick 7s":                   "-tick",
		"-tick 700ms":                "-tick",
		"-window 1500ms -tick 100ms": "-window",
		"-redis memory://":           "-redis",
		"-redis http://x":            "-redis",
		"-redis redis://a,redis://b": "-redis",
		"more":                       "more",
	} {
		status, stdout, stderr := call(t, ""+args)
		if status != command.Usage || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("%s: status %d, stdout %q, stderr %q; want %d and %q", args, status, stdout, stderr, command.Usage, want)
		}
	}
}

func TestProfilesAreWrittenWhereTheyShallBe(t *testing.T) {
	dir := t.TempDir()
	cpu, mem := filepath.Join(dir, "cpu"), filepath.Join(dir, "mem")
	defer func(rate int) { runtime.MemProfileRate = rate }(runtime.MemProfileRate)
	stop, err := startProfiles(cpu, mem)
	if err != nil {
		t.Fatal(err)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{cpu, mem} {
		if info, err := os.Stat(path); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
	if _, err := startProfiles(filepath.Join(dir, "absent", "cpu"), ""); err == nil {
		t.Error("no error about a directory that is not there")
	}
	if stop, err := startProfiles("", ""); err != nil || stop() != nil {
		t.Errorf("no profiles: error %v", err)
	}
}

func TestTickHelpIsNoError(t *testing.T) {
	t.Parallel()
	status, stdout, stderr := call(t, "-h")
	if status != command.OK || !strings.Contains(stdout, "-sizes") || stderr != "" {
		t.Errorf("status %d, stdout %q, stderr %q", status, stdout, stderr)
	}
}

func TestTickUnitsKeepEachEntityInItsTier(t *testing.T) {
	t.Parallel()
	for _, ticks := range []int{10, 60, 240} {
		for entity := range 40 {
			counted := 0.0
			for tick := range ticks {
				counted += float64(unitsOf(entity, tick, ticks))
			}
			if got, want := int(level.TierOf(counted/threshold)), entity%4; got != want {
				t.Errorf("%d ticks: entity %d counts %v in a window, tier %d; want tier %d", ticks, entity, counted, got, want)
			}
			if counted >= threshold {
				t.Errorf("%d ticks: entity %d would be limited at %v", ticks, entity, counted)
			}
		}
	}
	if unitsOf(7, 1, 60) == unitsOf(7, 2, 60) && unitsOf(7, 2, 60) == unitsOf(7, 3, 60) {
		t.Error("an entity counts the same in every tick")
	}
}

func TestDueFollowsTheTiers(t *testing.T) {
	t.Parallel()
	const window = time.Minute // so a sync interval of 15 s
	now := time.Unix(1_000_000, 0)
	for _, row := range []struct {
		pressure float64 // at now, all of it local
		age      time.Duration
		want     bool
	}{
		{0.05, time.Hour, false},
		{0.2, 59 * time.Second, false},
		{0.2, 60 * time.Second, true},
		{0.6, 14 * time.Second, false},
		{0.6, 15 * time.Second, true},
		{0.9, 7 * time.Second, false},
		{0.9, 7500 * time.Millisecond, true},
	} {
		e := pipelinedEntity{local: uint64(row.pressure * threshold), readAt: now.Add(-row.age)}
		if got := e.due(now, window); got != row.want {
			t.Errorf("pressure %v, read %v ago: due = %t, want %t", row.pressure, row.age, got, row.want)
		}
	}
	// The estimate leaks: 90 % a quarter of a window ago are 65 % now.
	e := pipelinedEntity{estimate: 0.9 * threshold, readAt: now.Add(-14 * time.Second)}
	if e.due(now, window) {
		t.Error("an estimate that leaked to tier normal is read as if it were hot")
	}
	if !(&pipelinedEntity{}).due(now, window) {
		t.Error("an entity that was never read is not due")
	}
}

func TestProcessorTimeIn(t *testing.T) {
	t.Parallel()
	got, err := processorTimeIn("# CPU\r\nused_cpu_sys:1.25\r\nused_cpu_user:2.5\r\nused_cpu_sys_children:9\r\n")
	if want := 3750 * time.Millisecond; err != nil || got != want {
		t.Errorf("processorTimeIn = %v, %v; want %v", got, err, want)
	}
	for _, info := range []string{"", "used_cpu_sys:1\r\n", "used_cpu_sys:x\r\nused_cpu_user:1\r\n"} {
		if got, err := processorTimeIn(info); err == nil {
			t.Errorf("of %q: %v and no error", info, got)
		}
	}
}

func TestScriptTimesAreThoseOfScripts(t *testing.T) {
	t.Parallel()
	entry := func(micros int64, arguments ...string) any {
		list := make([]any, len(arguments))
		for i, a := range arguments {
			list[i] = []byte(a)
		}
		return []any{int64(1), int64(1_700_000_000), micros, list, []byte("127.0.0.1:1"), []byte("")}
	}
	got, err := scriptTimes([]any{entry(1500, "EVALSHA", "abc"), entry(9000, "MGET", "k"), entry(30, "EVAL", "x"), entry(1, "PING")})
	if want := []time.Duration{1500 * time.Microsecond, 30 * time.Microsecond}; err != nil || !slices.Equal(got, want) {
		t.Errorf("scriptTimes = %v, %v; want %v", got, err, want)
	}
	if _, err := scriptTimes([]any{redis.Error("no")}); err == nil {
		t.Error("no error of an entry that is none")
	}
}

func TestManners(t *testing.T) {
	t.Parallel()
	pings := make([]time.Duration, 200)
	for i := range pings {
		pings[(i*7)%200] = time.Duration(i+1) * time.Millisecond
	}
	m := newManners([]time.Duration{3, 1, 2}, pings)
	if m.longest != 3 || m.median != 2 || m.p99 != 3 || m.scripts != 3 || m.pingP99 != 199*time.Millisecond || m.pings != 200 {
		t.Errorf("manners = %+v", m)
	}
	if m := newManners(nil, nil); m != (manners{}) {
		t.Errorf("of nothing: %+v", m)
	}
}

func someResult() result {
	return result{
		entities: 10,
		costs: [3]cost{
			{ticks: 4, redis: 60, node: 30, sent: 100, received: 20, trips: 8, elapsed: 8 * time.Millisecond, allocs: 80},
			{ticks: 4, redis: 80, node: 90, sent: 300, received: 100, trips: 4},
			{ticks: 4, redis: 50, node: 60, sent: 0, received: 0, trips: 4},
		},
		manners: [3]manners{{scripts: 2, longest: 3500 * time.Microsecond, median: time.Millisecond}},
	}
}

func TestTickRatiosAreOursByTheirs(t *testing.T) {
	t.Parallel()
	r := someResult()
	want := []ratio{
		{Entities: 10, Baseline: "every", RedisCPU: 0.75, NodeCPU: 0.333, Bytes: 0.3, LongestScript: 3.5, RoundTrips: 2},
		{Entities: 10, Baseline: "tiered", RedisCPU: 1.2, NodeCPU: 0.5, Bytes: 0, LongestScript: 3.5, RoundTrips: 2},
	}
	if got := r.ratios(); !slices.Equal(got, want) {
		t.Errorf("ratios = %+v, want %+v", got, want)
	}
}

func TestTheReportMarksWhatMissesItsTarget(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	writeReport(&b, &options{window: 4 * time.Second, tick: time.Second}, []result{someResult()})
	for _, part := range []string{"0.750 (≤ 0.75) ", "1.200 (≤ 1.10) !", "3.50 ms !", "2.00 ms"} {
		if !strings.Contains(b.String(), part) {
			t.Errorf("the report does not say %q:\n%s", part, b.String())
		}
	}
	if strings.Contains(b.String(), "0.750 (≤ 0.75) !") || strings.Contains(b.String(), "fitted") {
		t.Errorf("the report says too much:\n%s", b.String())
	}
}

func TestFitLine(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		x, y []float64
		want fittedLine
	}{
		{[]float64{1, 2, 10}, []float64{5, 7, 23}, fittedLine{3, 2}},
		{[]float64{4}, []float64{8}, fittedLine{0, 2}},
		{[]float64{4, 4}, []float64{8, 8}, fittedLine{0, 2}},
		{nil, nil, fittedLine{}},
	} {
		got := fitLine(row.x, row.y)
		if d := max(got.at0-row.want.at0, row.want.at0-got.at0, got.slope-row.want.slope, row.want.slope-got.slope); d > 1e-6 {
			t.Errorf("fitLine(%v, %v) = %+v, want %+v", row.x, row.y, got, row.want)
		}
	}
}

// call makes the run as main does.
func call(t *testing.T, args string) (status int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	status = Run(t.Context(), strings.Fields(args), &out, &err)
	return status, out.String(), err.String()
}
