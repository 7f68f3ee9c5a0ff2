package clock

// This file is the clock of production.

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// step is the time between two advances while the clock is in use: half of
	// the 10 ms that a limiter allows, the other half being for a late timer.
	step = 5 * time.Millisecond
	// burst is how many advances follow one request for the time before the
	// clock waits for the next request: 200 ms.
	burst = 40
)

// A System is the operating system's clock, readable in a nanosecond or two
// where time.Now takes forty.
//
// While [System.Run] runs, readings are those of the last advance: at most 5 ms
// old plus however late the process's timers are. With time to spare that is
// nothing; when every core is busy with goroutines that never block, it is one
// or two of the scheduler's slices of 10 ms (BenchmarkAge: 10 ms on average, 20 ms
// at worst on an otherwise idle machine). Whoever reads very often can bound
// that too: [System.Precise] renews the reading for all, so one call of it in
// every few hundred keeps the age below the time that those take. While Run does
// not run, every reading is precise. Like time.Now's, mono stands still while the
// machine is suspended.
//
// A System is safe for concurrent use. The zero value is not usable.
type System struct {
	// mono is the last published reading, always even, plus restFlag if readers
	// may not use it. wall belongs to it, or is newer. Both are atomic, written
	// under mu, wall first.
	mono atomic.Int64
	wall atomic.Int64
	_    [112]byte // what follows is written by slow readers; keep it off their cache line

	source func() (wall, mono int64) // immutable

	mu   sync.Mutex
	wake chan struct{} // guarded by mu; nil while Run does not run
}

// restFlag marks a published reading as one that no reader may use: the clock
// does not run, or it rests until somebody asks for the time.
const restFlag = 1

// NewSystem returns a clock that reads precisely until [System.Run] is called.
func NewSystem() *System {
	start := time.Now()
	return newSystem(func() (wall, mono int64) {
		now := time.Now()
		return now.UnixNano(), monoStart + int64(now.Sub(start))
	})
}

func newSystem(source func() (wall, mono int64)) *System {
	s := &System{source: source}
	s.mono.Store(restFlag)
	return s
}

// Now returns the time as of the last advance, or reads it precisely if the
// clock rests or does not run. Mono never decreases from one call to a later
// one, on whichever goroutines and whether Now or Precise; a step of the wall is
// seen at the next advance.
func (s *System) Now() (wall, mono int64) {
	if wall, mono, ok := s.Glance(); ok {
		return wall, mono
	}
	return s.awaken()
}

// Glance is Now where it can answer at once; where it cannot, ok is false and the
// readings mean nothing. It is small enough to be inlined.
func (s *System) Glance() (wall, mono int64, ok bool) {
	mono = s.mono.Load()
	return s.wall.Load(), mono, mono&restFlag == 0
}

// Precise reads the time now. It neither wakes a resting clock nor keeps one
// from resting, so that a periodic caller leaves an idle process idle.
func (s *System) Precise() (wall, mono int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.publishLocked(s.mono.Load() & restFlag)
}

// awaken reads the time precisely and lets Run advance it from here on, if Run
// runs.
func (s *System) awaken() (wall, mono int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wake == nil {
		return s.publishLocked(restFlag)
	}
	select {
	case s.wake <- struct{}{}:
	default: // another reader was first
	}
	return s.publishLocked(0)
}

// publishLocked reads the time and makes it the last reading. Reading and
// publishing under one lock is what keeps mono from decreasing. It requires mu.
func (s *System) publishLocked(flag int64) (wall, mono int64) {
	wall, mono = s.source()
	mono &^= restFlag
	s.wall.Store(wall)
	s.mono.Store(mono | flag)
	return wall, mono
}

// Run advances the clock every 5 ms until stop is closed. Each request for the
// time that finds the clock resting keeps it going for 200 ms; then it rests
// again, without timers, so that an idle process is never woken. It panics if
// Run runs already.
func (s *System) Run(stop <-chan struct{}) {
	// Made here and not in NewSystem: a testing/synctest bubble waits only for
	// channels that were made inside it.
	wake := make(chan struct{}, 1)
	s.begin(wake)
	defer s.end()

	ticker := time.NewTicker(step)
	defer ticker.Stop()
	for {
		ticker.Stop()
		select {
		case <-stop:
			return
		case <-wake:
		}
		ticker.Reset(step)
		for range burst {
			select {
			case <-stop:
				return
			case <-ticker.C:
			}
			s.Precise()
		}
		s.rest()
	}
}

func (s *System) begin(wake chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wake != nil {
		panic("clock: Run is already running")
	}
	s.wake = wake
}

func (s *System) rest() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.publishLocked(restFlag)
}

func (s *System) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wake = nil
	s.publishLocked(restFlag)
}
