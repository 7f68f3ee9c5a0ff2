package clock

// This file runs the fake clock through timelines.

import (
	"math"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
)

// reading is what a clock shows, relative to a fake clock's default start.
type reading struct{ wall, mono time.Duration }

func read(c interface{ Now() (wall, mono int64) }) reading {
	wall, mono := c.Now()
	return reading{time.Duration(wall - fakeStart.UnixNano()), time.Duration(mono - monoStart)}
}

// panicText returns what f panics with, "" if it returns.
func panicText(f func()) (text string) {
	defer func() {
		if r := recover(); r != nil {
			text = r.(string)
		}
	}()
	f()
	return ""
}

func TestFakeStartsWhereToldAndStandsStill(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ start, want time.Time }{
		{time.Time{}, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)},
		{time.Unix(0, 0), time.Unix(0, 0)},
		{time.Date(1969, 7, 20, 20, 17, 40, 1, time.UTC), time.Date(1969, 7, 20, 20, 17, 40, 1, time.UTC)},
		{time.Date(1, 1, 1, 0, 0, 1, 0, time.UTC), time.Unix(0, math.MinInt64)},
		{time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), time.Unix(0, math.MaxInt64)},
	} {
		f := NewFake(row.start)
		for range 2 {
			wall, mono := f.Now()
			if wall != row.want.UnixNano() || mono != monoStart {
				t.Errorf("NewFake(%v).Now() = %d, %d, want %d, %d", row.start, wall, mono, row.want.UnixNano(), monoStart)
			}
		}
	}
}

func TestFakeTimeline(t *testing.T) {
	t.Parallel()
	f := NewFake(time.Time{})
	fast, slow := f.Node(time.Minute), f.Node(-time.Minute)
	for i, row := range []struct {
		do               func()
		fake, fast, slow reading
	}{
		{func() {}, reading{0, 0}, reading{60e9, 0}, reading{-60e9, 0}},
		{func() { f.Advance(time.Second) }, reading{1e9, 1e9}, reading{61e9, 1e9}, reading{-59e9, 1e9}},
		{func() { f.Advance(0) }, reading{1e9, 1e9}, reading{61e9, 1e9}, reading{-59e9, 1e9}},
		{func() { f.StepWall(-5 * time.Second) }, reading{-4e9, 1e9}, reading{56e9, 1e9}, reading{-64e9, 1e9}},
		{func() { f.Advance(1) }, reading{-4e9 + 1, 1e9 + 1}, reading{56e9 + 1, 1e9 + 1}, reading{-64e9 + 1, 1e9 + 1}},
		{func() { f.SetWall(fakeStart.Add(time.Hour)) }, reading{3600e9, 1e9 + 1}, reading{3660e9, 1e9 + 1}, reading{3540e9, 1e9 + 1}},
		{func() { fast.StepWall(-2 * time.Minute) }, reading{3600e9, 1e9 + 1}, reading{3540e9, 1e9 + 1}, reading{3540e9, 1e9 + 1}},
		{func() { slow.SetOffset(3) }, reading{3600e9, 1e9 + 1}, reading{3540e9, 1e9 + 1}, reading{3600e9 + 3, 1e9 + 1}},
		{func() { slow.StepWall(4) }, reading{3600e9, 1e9 + 1}, reading{3540e9, 1e9 + 1}, reading{3600e9 + 7, 1e9 + 1}},
		{func() { f.Advance(1e9 - 1) }, reading{3601e9 - 1, 2e9}, reading{3541e9 - 1, 2e9}, reading{3601e9 + 6, 2e9}},
	} {
		row.do()
		if got := read(f); got != row.fake {
			t.Errorf("row %d: clock shows %v, want %v", i, got, row.fake)
		}
		if got := read(fast); got != row.fast {
			t.Errorf("row %d: first node shows %v, want %v", i, got, row.fast)
		}
		if got := read(slow); got != row.slow {
			t.Errorf("row %d: second node shows %v, want %v", i, got, row.slow)
		}
	}
}

func TestFakeSaturates(t *testing.T) {
	t.Parallel()
	const end, begin = time.Duration(math.MaxInt64), time.Duration(math.MinInt64)
	f := NewFake(time.Unix(0, 0))
	n := f.Node(0)
	check := func(what string, wall, nodeWall, mono int64) {
		t.Helper()
		gotWall, gotMono := f.Now()
		gotNode, _ := n.Now()
		if gotWall != wall || gotMono != mono || gotNode != nodeWall {
			t.Errorf("%s: wall %d, node's wall %d, mono %d, want %d, %d, %d", what, gotWall, gotNode, gotMono, wall, nodeWall, mono)
		}
	}
	f.StepWall(end)
	check("step to the end", math.MaxInt64, math.MaxInt64, monoStart)
	f.StepWall(end)
	check("step beyond the end", math.MaxInt64, math.MaxInt64, monoStart)
	f.Advance(time.Second)
	check("advance at the wall's end", math.MaxInt64, math.MaxInt64, monoStart+1e9)
	f.StepWall(begin)
	check("step back from the end", -1, -1, monoStart+1e9)
	f.StepWall(begin)
	f.StepWall(-1)
	check("step before the beginning", math.MinInt64, math.MinInt64, monoStart+1e9)
	n.StepWall(-1)
	check("node before the beginning", math.MinInt64, math.MinInt64, monoStart+1e9)
	n.SetOffset(end)
	n.StepWall(end)
	check("node's offset beyond the end", math.MinInt64, -1, monoStart+1e9)
	f.SetWall(time.Unix(0, 5))
	n.SetOffset(begin)
	f.Advance(end)
	check("advance to the end of mono", math.MaxInt64, -1, math.MaxInt64)
	f.StepWall(-10)
	f.Advance(3)
	check("advance at the end of mono", math.MaxInt64-7, -8, math.MaxInt64)
}

// call is one call of a tick: whose, and when by the clock it was given.
type call struct {
	name string
	at   time.Duration
}

func TestFakeRunsTicksInOrderOfTimeThenRegistration(t *testing.T) {
	t.Parallel()
	f := NewFake(time.Time{})
	var got []call
	log := func(name string) func() { return func() { got = append(got, call{name, read(f).mono}) } }
	f.Tick(3*time.Second, log("a3"))
	f.Node(time.Hour).Tick(2*time.Second, log("b2"))
	f.Tick(time.Second, log("c1"))
	f.Advance(2*time.Second - 1)
	f.Tick(1, log("d")) // due every nanosecond from here on
	for i, row := range []struct {
		advance time.Duration
		want    []call
	}{
		{0, []call{{"c1", 1e9}}},
		{1, []call{{"b2", 2e9}, {"c1", 2e9}, {"d", 2e9}}},
		{1, []call{{"d", 2e9 + 1}}},
	} {
		f.Advance(row.advance)
		if !reflect.DeepEqual(got, row.want) {
			t.Errorf("row %d: Advance(%v) called %v, want %v", i, row.advance, got, row.want)
		}
		got = nil
	}

	f = NewFake(time.Time{})
	f.Tick(3*time.Second, log("a3"))
	f.Tick(2*time.Second, log("b2"))
	f.Tick(time.Second, log("c1"))
	f.Advance(6500 * time.Millisecond)
	want := []call{
		{"c1", 1e9},
		{"b2", 2e9},
		{"c1", 2e9},
		{"a3", 3e9},
		{"c1", 3e9},
		{"b2", 4e9},
		{"c1", 4e9},
		{"c1", 5e9},
		{"a3", 6e9},
		{"b2", 6e9},
		{"c1", 6e9},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("Advance(6.5s) called %v, want %v", got, want)
	}
	if at := read(f); at != (reading{6500e6, 6500e6}) {
		t.Errorf("after Advance(6.5s) the clock shows %v", at)
	}
}

func TestFakeTicksFollowMonoWhateverTheWallDoes(t *testing.T) {
	t.Parallel()
	f := NewFake(time.Time{})
	calls := 0
	f.Tick(time.Second, func() {
		calls++
		f.StepWall(-time.Hour)
	})
	f.StepWall(1000 * time.Hour)
	if calls != 0 {
		t.Errorf("a step of the wall made %d calls, want 0", calls)
	}
	f.Advance(10 * time.Second)
	if calls != 10 {
		t.Errorf("%d calls in 10 s, want 10", calls)
	}
	if got, want := read(f), (reading{990*time.Hour + 10*time.Second, 10 * time.Second}); got != want {
		t.Errorf("clock shows %v, want %v: steps made by a call add to the advance", got, want)
	}
}

func TestFakeTickMayRegisterAndStopTicks(t *testing.T) {
	t.Parallel()
	f := NewFake(time.Time{})
	var got []call
	log := func(name string) { got = append(got, call{name, read(f).mono}) }
	var stopSelf, stopOther, stopInner func()
	stopSelf = f.Tick(time.Second, func() {
		log("once")
		stopSelf()
		stopOther() // due at this very time: not called any more
		stopInner = f.Tick(500*time.Millisecond, func() { log("inner") })
	})
	stopOther = f.Tick(time.Second, func() { log("other") })
	f.Advance(2 * time.Second)
	want := []call{{"once", 1e9}, {"inner", 1500e6}, {"inner", 2e9}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("called %v, want %v", got, want)
	}
	stopInner()
	stopInner()
	stopOther()
	got = nil
	f.Advance(time.Hour)
	if len(got) != 0 {
		t.Errorf("after all were stopped: called %v", got)
	}
	if len(f.ticks) != 0 {
		t.Errorf("%d ticks left behind", len(f.ticks))
	}
}

func TestFakeStopRemovesTheRightTick(t *testing.T) {
	t.Parallel()
	const ticks = 50
	f := NewFake(time.Time{})
	calls := make([]int, ticks)
	stops := make([]func(), ticks)
	for i := range ticks {
		stops[i] = f.Tick(time.Duration(1+i*7%13)*time.Second, func() { calls[i]++ })
	}
	f.Advance(9 * time.Second)
	for i := 0; i < ticks; i += 3 {
		stops[i]()
	}
	f.Advance(100*time.Second - 9*time.Second)
	for i, got := range calls {
		interval := 1 + i*7%13
		want := 100 / interval
		if i%3 == 0 {
			want = 9 / interval
		}
		if got != want {
			t.Errorf("tick %d, every %d s: %d calls, want %d", i, interval, got, want)
		}
	}
}

func TestFakePanics(t *testing.T) {
	t.Parallel()
	f := NewFake(time.Time{})
	for _, row := range []struct {
		what string
		do   func()
		want string
	}{
		{"Advance(-1)", func() { f.Advance(-1) }, "time does not run backwards"},
		{"Tick(0)", func() { f.Tick(0, func() {}) }, "interval must be positive"},
		{"Tick(-1s)", func() { f.Node(0).Tick(-time.Second, func() {}) }, "interval must be positive"},
	} {
		if got := panicText(row.do); !strings.Contains(got, row.want) {
			t.Errorf("%s: panic %q, want one that says %q", row.what, got, row.want)
		}
	}

	var nested string
	stop := f.Tick(time.Second, func() { nested = panicText(func() { f.Advance(1) }) })
	f.Advance(time.Second)
	if !strings.Contains(nested, "inside another Advance") {
		t.Errorf("nested Advance: panic %q", nested)
	}
	stop()

	// A call that panics leaves a clock that works.
	stop = f.Tick(time.Second, func() { panic("from the call") })
	if got := panicText(func() { f.Advance(time.Minute) }); got != "from the call" {
		t.Errorf("panic %q, want the call's own", got)
	}
	stop()
	f.Advance(time.Second)
	if got, want := read(f).mono, 3*time.Second; got != want {
		t.Errorf("after a call panicked at 2 s, and another second: mono %v, want %v", got, want)
	}
}

func TestFakeEndOfTimeEndsTicks(t *testing.T) {
	t.Parallel()
	const end = time.Duration(math.MaxInt64)
	f := NewFake(time.Time{})
	calls := 0
	f.Tick(end/2, func() { calls++ })
	f.Tick(end, func() { t.Error("a tick due after the end of time was called") })
	f.Advance(end)
	f.Advance(end)
	if calls != 1 {
		t.Errorf("%d calls of a tick due once before the end of time, want 1", calls)
	}
	f.Tick(1, func() { t.Error("a tick registered at the end of time was called") })
	f.Advance(end)
	if len(f.ticks) != 0 {
		t.Errorf("%d ticks left that can never be due", len(f.ticks))
	}
}

func TestFakeIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	f := NewFake(time.Time{})
	n := f.Node(time.Second)
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			last := int64(0)
			for {
				select {
				case <-done:
					return
				default:
				}
				wall, mono := f.Now()
				if mono < last || wall-fakeStart.UnixNano() != mono-monoStart {
					t.Errorf("clock shows wall %d, mono %d after mono %d: not one moment's", wall, mono, last)
					return
				}
				last = mono
				n.Now()
				n.StepWall(1)
				f.Tick(time.Hour, func() {})()
			}
		})
	}
	calls := 0
	f.Tick(time.Millisecond, func() { calls++ })
	for range 1000 {
		f.Advance(7 * time.Millisecond)
	}
	close(done)
	readers.Wait()
	if calls != 7000 {
		t.Errorf("%d calls, want 7000", calls)
	}
}

func TestFakeHourOfAFleet(t *testing.T) {
	t.Parallel()
	f := NewFake(time.Time{})
	calls := make([]int, 100)
	for i := range calls {
		f.Node(0).Tick(time.Second, func() { calls[i]++ })
	}
	f.Advance(time.Hour)
	for i, got := range calls {
		if got != 3600 {
			t.Errorf("node %d ticked %d times in an hour, want 3600", i, got)
		}
	}
}
