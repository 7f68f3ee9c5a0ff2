package overrides

// This file watches sources that a test answers for, on a fake clock.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/google/go-cmp/cmp"

	"github.com/hanzoai/limiters/internal/clock"
	"github.com/hanzoai/limiters/ratelimit"
)

// A target notes what it is given.
type target struct {
	mu    sync.Mutex
	given []map[string]uint64 // guarded by mu
}

func (g *target) SetOverrides(overrides map[string]uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.given = append(g.given, maps.Clone(overrides))
}

// take returns what was given since the last time.
func (g *target) take() []map[string]uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	given := g.given
	g.given = nil
	return given
}

// A fixture is a watcher of a source that answers what the test says.
type fixture struct {
	*Watcher
	target target
	clock  *clock.Fake
	log    bytes.Buffer
	set    *metrics.Set
	answer map[string]uint64
	err    error
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{clock: clock.NewFake(time.Unix(1000, 0)), set: metrics.NewSet()}
	handler := slog.NewTextHandler(&f.log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})
	f.Watcher = New(&f.target, SourceFunc(func(context.Context) (map[string]uint64, error) { return f.answer, f.err }),
		WithClock(f.clock), WithMetricsSet(f.set), WithLogger(slog.New(handler)), WithScope("api"))
	t.Cleanup(f.Close)
	return f
}

// logged returns the lines since the last time.
func (f *fixture) logged() string {
	lines := f.log.String()
	f.log.Reset()
	return lines
}

func TestRefreshIsFailStatic(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	type overrides = map[string]uint64
	lost := fmt.Errorf("dial tcp 127.0.0.1:%d: refused", 1)
	for i, row := range []struct {
		answer overrides
		err    error
		given  []overrides
		log    string // part of the one line; "" for none
	}{
		{err: ErrAbsent, log: "result=absent"},
		{err: ErrAbsent},
		{answer: overrides{"a": 1}, given: []overrides{{"a": 1}}, log: "overrides changed"},
		{answer: overrides{"a": 1}},
		{answer: overrides{"a": 2}, given: []overrides{{"a": 2}}, log: "overrides=1"},
		{err: lost, log: "level=WARN"},
		{err: fmt.Errorf("dial tcp 127.0.0.1:%d: refused", 2)},
		{err: malformed("x"), log: "malformed: x"},
		{err: malformed("x")},
		{err: malformed("y"), log: "malformed: y"},
		{err: fmt.Errorf("key: %w", ErrAbsent), log: "result=absent"},
		{answer: overrides{"a": 2}, log: "can be read again"},
		{err: lost, log: "result=unreachable"},
		{answer: overrides{"b": 3}, given: []overrides{{"b": 3}}, log: "overrides changed"},
		{answer: overrides{}, given: []overrides{{}}, log: "overrides=0"},
		{answer: nil},
		{answer: overrides{"": 0}, given: []overrides{{"": 0}}, log: "overrides=1"},
	} {
		f.answer, f.err = row.answer, row.err
		if err := f.Refresh(context.Background()); !errors.Is(err, row.err) {
			t.Errorf("row %d: Refresh = %v, want %v", i, err, row.err)
		}
		if diff := cmp.Diff(row.given, f.target.take(), cmp.Comparer(func(a, b overrides) bool { return maps.Equal(a, b) })); diff != "" {
			t.Errorf("row %d: given (-want +got):\n%s", i, diff)
		}
		got := f.logged()
		if row.log == "" && got != "" || strings.Count(got, "\n") > 1 || !strings.Contains(got, row.log) || got != "" && !strings.Contains(got, "scope=api") {
			t.Errorf("row %d: logged %q, want a line with %q", i, got, row.log)
		}
	}
}

// The first map is given even if it is empty: the limiter may have been configured
// with overrides of its own.
func TestAnEmptyObjectClearsFromTheFirst(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.answer = map[string]uint64{}
	if err := f.Refresh(context.Background()); err != nil || len(f.target.take()) != 1 {
		t.Errorf("Refresh: %v, and the empty map was not given", err)
	}
}

// exposed returns the metrics, without what no test can know.
func exposed(set *metrics.Set) map[string]string {
	var text bytes.Buffer
	set.WritePrometheus(&text)
	values := map[string]string{}
	for line := range strings.Lines(text.String()) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "} ")
		if ok {
			values[name+"}"] = value
		}
	}
	return values
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const prefix = "global_rate_limiter_overrides_"
	want := map[string]string{
		prefix + `refresh_ok{scope="api"}`:                        "0",
		prefix + `refresh_success_timestamp_seconds{scope="api"}`: "0",
	}
	for _, r := range []string{"ok", "absent", "unreachable", "malformed"} {
		want[prefix+`refresh_total{scope="api",result="`+r+`"}`] = "0"
	}
	check := func(when string, changes ...string) {
		t.Helper()
		for i := 0; i < len(changes); i += 2 {
			want[prefix+changes[i]] = changes[i+1]
		}
		if diff := cmp.Diff(want, exposed(f.set)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	refresh := func(err error) {
		f.err = err
		_ = f.Refresh(context.Background())
		f.clock.Advance(1500 * time.Millisecond)
	}
	check("before the first")
	refresh(nil)
	check("ok", `refresh_ok{scope="api"}`, "1", `refresh_success_timestamp_seconds{scope="api"}`, "1000", `refresh_total{scope="api",result="ok"}`, "1")
	refresh(ErrAbsent)
	check("absent", `refresh_ok{scope="api"}`, "0", `refresh_total{scope="api",result="absent"}`, "1")
	refresh(ErrMalformed)
	check("malformed", `refresh_total{scope="api",result="malformed"}`, "1")
	refresh(errors.New("x"))
	check("unreachable", `refresh_total{scope="api",result="unreachable"}`, "1")
	refresh(nil)
	check("ok again", `refresh_ok{scope="api"}`, "1", `refresh_success_timestamp_seconds{scope="api"}`, "1006", `refresh_total{scope="api",result="ok"}`, "2")
	f.Close()
	f.Close()
	if got := exposed(f.set); len(got) != 0 {
		t.Errorf("after Close: %v", got)
	}
}

// The package doc lists the metrics.
func TestMetricsAreDocumented(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var names []string
	for name := range exposed(f.set) {
		name, _, _ = strings.Cut(name, "{")
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, path := range []string{"doc.go", "../../docs/overrides.md"} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		listed := regexp.MustCompile(`global_rate_limiter_overrides_refresh\w+`).FindAllString(string(text), -1)
		slices.Sort(listed)
		if listed = slices.Compact(listed); !slices.Equal(listed, names) {
			t.Errorf("%s lists %q, want %q", path, listed, names)
		}
	}
}

func TestRunOnAClockThatDrives(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.answer = map[string]uint64{"a": 1}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	ticking := make(chan struct{})
	f.options.clock = announcing{f.clock, ticking}
	go func() { ended <- f.Run(ctx, time.Minute) }() // ends with ctx
	<-ticking
	if got := len(f.target.take()); got != 1 {
		t.Errorf("given %d times before the first interval, want once", got)
	}
	f.answer = map[string]uint64{"a": 2}
	f.clock.Advance(time.Minute - 1)
	if got := f.target.take(); got != nil {
		t.Errorf("given %v before the interval is over", got)
	}
	f.clock.Advance(1)
	if got := f.target.take(); len(got) != 1 || got[0]["a"] != 2 {
		t.Errorf("given %v after an interval", got)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Run = %v", err)
	}
	f.answer = map[string]uint64{"a": 3}
	f.clock.Advance(time.Hour)
	if got := f.target.take(); got != nil {
		t.Errorf("given %v after Run", got)
	}
}

// announcing is a fake clock that says when somebody waits for it.
type announcing struct {
	*clock.Fake
	ticking chan struct{}
}

func (a announcing) Tick(interval time.Duration, f func()) (stop func()) {
	stop = a.Fake.Tick(interval, f)
	close(a.ticking)
	return stop
}

func TestWatchOnTheSystemClock(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	loads := 0
	source := SourceFunc(func(ctx context.Context) (map[string]uint64, error) {
		if _, ok := ctx.Deadline(); !ok {
			t.Error("a Load without a bound")
		}
		if loads++; loads == 5 {
			cancel()
		}
		return map[string]uint64{"loads": uint64(loads)}, nil
	})
	var g target
	err := Watch(ctx, &g, source, time.Millisecond, WithLogger(nil), WithTimeout(time.Minute), WithTimeout(0), WithClock(nil), WithMetricsSet(nil))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Watch = %v", err)
	}
	if got := g.take(); len(got) != 5 || got[4]["loads"] != 5 {
		t.Errorf("given %v", got)
	}
	for _, interval := range []time.Duration{0, -1} {
		if err := Watch(context.Background(), &g, source, interval, WithLogger(nil)); err == nil || loads != 5 {
			t.Errorf("Watch with interval %v = %v after %d loads", interval, err, loads)
		}
	}
}

func TestJitter(t *testing.T) {
	t.Parallel()
	for _, d := range []time.Duration{1, 9, time.Second, time.Hour} {
		for range 1000 {
			if got := jittered(d); got < d-d/10 || got > d+d/10 {
				t.Fatalf("jittered(%v) = %v", d, got)
			}
		}
	}
}

// A limiter takes what a watcher gives.
func TestALimiterIsATarget(t *testing.T) {
	t.Parallel()
	cfg := ratelimit.DefaultConfig()
	cfg.RedisURLs = []string{"memory://"}
	cfg.CustomKeys = ratelimit.Overrides{"configured": 7}
	c := clock.NewFake(time.Time{})
	lim, err := ratelimit.New(cfg, ratelimit.WithClock(c), ratelimit.WithLogger(nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lim.Close(context.Background()) })
	answer, failure := map[string]uint64{"blocked": 0}, error(nil)
	w := New(lim, SourceFunc(func(context.Context) (map[string]uint64, error) { return answer, failure }), WithLogger(nil))
	t.Cleanup(w.Close)
	state := func() string {
		return fmt.Sprint(lim.IsCustomKey("configured"), lim.IsCustomKey("blocked"), lim.Allow("blocked"))
	}
	steps := []struct {
		answer  map[string]uint64
		failure error
		want    string
	}{
		{nil, ErrAbsent, "true false true"},
		{map[string]uint64{"blocked": 0}, nil, "false true false"},
		{nil, ErrMalformed, "false true false"},
		{nil, errors.New("x"), "false true false"},
		{map[string]uint64{}, nil, "false false true"},
	}
	for i, step := range steps {
		answer, failure = step.answer, step.failure
		_ = w.Refresh(context.Background())
		if got := state(); got != step.want {
			t.Errorf("step %d: %s, want %s", i, got, step.want)
		}
	}
}
