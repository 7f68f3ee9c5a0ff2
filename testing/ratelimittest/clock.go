package ratelimittest

// This file is the clock of a test, which calls the ticks of limiters on it.

import (
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hanzoai/limiters/internal/clock"
)

// A Clock stands still until it is advanced. It is a ratelimit.Clock that drives
// the limiters on it: their ticks run inside [Clock.Advance], on the goroutine that
// calls it. It is safe for concurrent use, save that one Advance runs at a time.
type Clock struct {
	fake *clock.Fake // immutable

	// delays says that some store holds replies back, so that ticks must be able
	// to wait; running is the tick that does what it does now, if so.
	delays  atomic.Bool
	parked  atomic.Int64 // calls that wait
	running atomic.Pointer[waiter]
}

// NewClock returns a clock at the start of 2026, UTC: a time at which every window
// that divides a day begins.
func NewClock() *Clock { return NewClockAt(time.Time{}) }

// NewClockAt returns a clock at a time of the caller's choice. The zero time is
// that of [NewClock].
func NewClockAt(start time.Time) *Clock { return &Clock{fake: clock.NewFake(start)} }

// Now returns the wall as nanoseconds since the Unix epoch, and the monotonic
// reading, in nanoseconds since an arbitrary time.
func (c *Clock) Now() (wall, mono int64) { return c.fake.Now() }

// Time returns the wall as a time.Time, in UTC.
func (c *Clock) Time() time.Time {
	wall, _ := c.fake.Now()
	return time.Unix(0, wall).UTC()
}

// Advance lets d pass. Whatever becomes due runs at its own time, in the order of
// time, and has returned when Advance returns, unless it waits for a reply that a
// [Store] holds back for longer. Advance panics if d is negative, and if it is
// called from a tick or while another Advance runs.
func (c *Clock) Advance(d time.Duration) { c.fake.Advance(d) }

// Parked reports whether a tick waits for a reply that a [Store] holds back, for as long as
// the clock stands still. Limiters ask.
func (c *Clock) Parked() bool { return c.parked.Load() > 0 }

// StepWall moves the wall alone by d, either way, as an operator or a time daemon
// would. No time passes.
func (c *Clock) StepWall(d time.Duration) { c.fake.StepWall(d) }

// SetWall moves the wall alone to t. No time passes.
func (c *Clock) SetWall(t time.Time) { c.fake.SetWall(t) }

// Tick has f called every interval from one interval on, inside Advance. A call that
// still waits for a store's reply when the next is due covers that one too. Once
// stop has returned no call begins, and one that waits has ended. A limiter calls
// Tick itself; so can a test, for what else should happen as time passes.
func (c *Clock) Tick(interval time.Duration, f func()) (stop func()) {
	return c.tickAfter(interval, interval, f)
}

// After has f called once, after d, inside Advance. Once stop has returned it does not
// begin, and if it waits for a store's reply it has ended. A limiter calls After itself; so
// can a test.
func (c *Clock) After(d time.Duration, f func()) (stop func()) {
	w := &waiter{clock: c}
	return w.stopBy(c.fake.Once(d, func() { w.call(f) }))
}

// tickAfter is Tick with another wait before the first call.
func (c *Clock) tickAfter(first, interval time.Duration, f func()) (stop func()) {
	w := &waiter{clock: c}
	call := func() { w.call(f) }
	if first == interval {
		return w.stopBy(c.fake.Tick(interval, call))
	}
	var mu sync.Mutex
	var stopped bool
	var stopTicks func()
	mu.Lock()
	defer mu.Unlock()
	stopTicks = c.fake.Tick(first, func() {
		mu.Lock()
		if stopped {
			mu.Unlock()
			return
		}
		stopTicks()
		stopTicks = c.fake.Tick(interval, call)
		mu.Unlock()
		call()
	})
	return w.stopBy(func() {
		mu.Lock()
		defer mu.Unlock()
		stopped = true
		stopTicks()
	})
}

// wait lets d pass for the tick that calls it, while Advance goes on with others.
// It reports false if the tick was stopped meanwhile. Outside a tick it returns at
// once: there nothing can let time pass.
func (c *Clock) wait(d time.Duration) bool {
	w := c.running.Load()
	if w == nil || d <= 0 {
		return true
	}
	return w.yield(d)
}

// A waiter calls one function over and over, as a coroutine if it may have to
// wait, so that all is on one timeline and in one order every time.
type waiter struct {
	clock *Clock // immutable

	mu      sync.Mutex
	stopped bool // guarded by mu
	busy    bool // guarded by mu; a call has not returned
	parked  bool // guarded by mu; it waits

	// Of the one that runs or resumes the call.
	next  func() (time.Duration, bool)
	end   func()
	yield func(time.Duration) bool
}

// call calls f unless the call before has not returned.
func (w *waiter) call(f func()) {
	if !w.clock.delays.Load() {
		f()
		return
	}
	w.mu.Lock()
	if w.stopped || w.busy {
		w.mu.Unlock()
		return
	}
	w.busy = true
	w.mu.Unlock()
	w.next, w.end = iter.Pull(func(yield func(time.Duration) bool) {
		w.yield = yield
		f()
	})
	w.resume()
}

// resume lets the call go on until it waits again or returns.
func (w *waiter) resume() {
	before := w.clock.running.Swap(w)
	d, waits := w.next()
	w.clock.running.Store(before)

	w.mu.Lock()
	defer w.mu.Unlock()
	if !waits {
		w.busy = false
		return
	}
	if w.stopped {
		w.abortLocked()
		return
	}
	w.parked = true
	w.clock.parked.Add(1)
	var stop func()
	stop = w.clock.fake.Tick(d, func() {
		stop()
		w.mu.Lock()
		parked := w.parked
		if w.parked = false; parked {
			w.clock.parked.Add(-1)
		}
		w.mu.Unlock()
		if parked {
			w.resume()
		}
	})
}

// abortLocked ends a call that waits: its wait reports false. It requires w.mu.
func (w *waiter) abortLocked() {
	before := w.clock.running.Swap(nil)
	w.end()
	w.clock.running.Store(before)
	if w.parked {
		w.clock.parked.Add(-1)
	}
	w.parked, w.busy = false, false
}

// stopBy returns a function that ends the ticks, by stop, and a call that waits.
func (w *waiter) stopBy(stop func()) func() {
	return func() {
		stop()
		w.mu.Lock()
		defer w.mu.Unlock()
		w.stopped = true
		if w.parked {
			w.abortLocked()
		}
	}
}
