package clock

// This file is the clock of tests.

import (
	"container/heap"
	"fmt"
	"math"
	"sync"
	"time"
)

// fakeStart is where a fake clock starts unless told otherwise.
var fakeStart = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// A Fake is a clock that stands still until it is advanced, and calls what is
// due while it advances, on the caller's goroutine. Readings saturate at the ends
// of int64, the wall's and the mono's alike.
//
// A Fake is safe for concurrent use, save that only one Advance runs at a time.
type Fake struct {
	mu        sync.Mutex
	wall      int64     // guarded by mu
	mono      int64     // guarded by mu
	advancing bool      // guarded by mu
	ticks     tickQueue // guarded by mu
	nextOrder uint64    // guarded by mu
}

// NewFake returns a clock whose wall is start, or 2026-01-01T00:00:00Z if start
// is the zero time.
func NewFake(start time.Time) *Fake {
	if start.IsZero() {
		start = fakeStart
	}
	return &Fake{wall: unixNano(start), mono: monoStart}
}

// Now returns the time. While a tick's function runs, that is the time at which
// the tick was due.
func (f *Fake) Now() (wall, mono int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.wall, f.mono
}

// Advance moves wall and mono forward by d and calls the ticks that become due,
// each at its own time, in order of time; ticks due at one time run in the order
// of their registration. A tick that is registered meanwhile and due within d
// runs too. Advance returns when the last has returned.
//
// It panics if d is negative, and if another Advance runs: a tick's function may
// do anything with the clock but advance it.
func (f *Fake) Advance(d time.Duration) {
	if d < 0 {
		panic(fmt.Sprintf("clock: Advance(%v): time does not run backwards; StepWall moves the wall", d))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.advancing {
		panic("clock: Advance inside another Advance (called from a tick's function, or from a second goroutine)")
	}
	f.advancing = true
	defer func() { f.advancing = false }()

	target := addSaturating(f.mono, int64(d))
	// The wall is not bounded by the mono's end, so it gets what the mono was denied.
	rest := int64(d) - (target - f.mono)
	for len(f.ticks) > 0 && f.ticks[0].due <= target {
		next := f.ticks[0]
		f.moveLocked(next.due)
		f.rescheduleLocked(next)
		f.callUnlocked(next.call)
	}
	f.moveLocked(target)
	f.wall = addSaturating(f.wall, rest)
}

// moveLocked makes mono the time. It requires mu.
func (f *Fake) moveLocked(mono int64) {
	f.wall = addSaturating(f.wall, mono-f.mono)
	f.mono = mono
}

// rescheduleLocked sets the first tick's next time, or removes it if it is to be called
// once or there is none before the end of time. It requires mu.
func (f *Fake) rescheduleLocked(first *tick) {
	if first.interval == 0 || first.due > math.MaxInt64-first.interval {
		heap.Pop(&f.ticks)
		return
	}
	first.due += first.interval
	heap.Fix(&f.ticks, 0)
}

// callUnlocked releases mu, which it requires, for the duration of the call.
func (f *Fake) callUnlocked(call func()) {
	f.mu.Unlock()
	defer f.mu.Lock()
	call()
}

// StepWall moves the wall by d, either way, as an operator or a time daemon would.
// Mono and ticks are not affected.
func (f *Fake) StepWall(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wall = addSaturating(f.wall, int64(d))
}

// SetWall moves the wall to t. Mono and ticks are not affected.
func (f *Fake) SetWall(t time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wall = unixNano(t)
}

// Tick has call called every interval of mono time, the first time one interval
// from now. A call is never made by Tick itself, only by [Fake.Advance]. Once
// stop has returned no call begins; stop may be called again, and by the call
// itself. Tick panics if interval is not positive.
func (f *Fake) Tick(interval time.Duration, call func()) (stop func()) {
	if interval <= 0 {
		panic(fmt.Sprintf("clock: Tick(%v): the interval must be positive", interval))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	t := &tick{interval: int64(interval), order: f.nextOrder, call: call, index: -1}
	f.nextOrder++
	if f.mono <= math.MaxInt64-t.interval {
		t.due = f.mono + t.interval
		heap.Push(&f.ticks, t)
	}
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if t.index >= 0 {
			heap.Remove(&f.ticks, t.index)
		}
	}
}

// Next returns how long it takes until something is called next, if nothing is registered
// meanwhile. ok is false if nothing is registered.
func (f *Fake) Next() (d time.Duration, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.ticks) == 0 {
		return 0, false
	}
	return time.Duration(max(0, f.ticks[0].due-f.mono)), true
}

// Once has call called once, after d of mono time, by [Fake.Advance]; at once when that
// next runs if d is not positive. Once stop has returned it is not called; stop may be
// called again, and by the call itself.
func (f *Fake) Once(d time.Duration, call func()) (stop func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := &tick{order: f.nextOrder, call: call, index: -1}
	f.nextOrder++
	if wait := max(0, int64(d)); f.mono <= math.MaxInt64-wait {
		t.due = f.mono + wait
		heap.Push(&f.ticks, t)
	}
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if t.index >= 0 {
			heap.Remove(&f.ticks, t.index)
		}
	}
}

// unixNano is t.UnixNano, saturating where that overflows.
func unixNano(t time.Time) int64 {
	switch {
	case t.Before(time.Unix(0, math.MinInt64)):
		return math.MinInt64
	case t.After(time.Unix(0, math.MaxInt64)):
		return math.MaxInt64
	}
	return t.UnixNano()
}

// addSaturating is a + b, or the end of int64 that it would pass.
func addSaturating(a, b int64) int64 {
	sum := a + b
	switch {
	case b > 0 && sum < a:
		return math.MaxInt64
	case b < 0 && sum > a:
		return math.MinInt64
	}
	return sum
}
