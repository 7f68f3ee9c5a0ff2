package clock

// This file holds the system clock to its word, most of it in bubbles where time
// passes only when everybody waits.

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// runSystem starts Run and returns how to end it.
func runSystem(s *System) (stop func()) {
	done := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Run(done)
	}()
	return func() {
		close(done)
		<-ended
	}
}

// sleepTo sleeps until at, a time since start, in bubble time.
func sleepTo(start time.Time, at time.Duration) { time.Sleep(time.Until(start.Add(at))) }

func TestSystemReadsPreciselyWhileItDoesNotRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		s := NewSystem()
		check := func(when string) {
			t.Helper()
			wall, mono := s.Now()
			if want := time.Now().UnixNano(); wall != want {
				t.Errorf("%s: wall = %d, want %d", when, wall, want)
			}
			if want := (monoStart + int64(time.Since(start))) &^ 1; mono != want {
				t.Errorf("%s: mono = %d, want %d", when, mono, want)
			}
		}
		check("before Run, at 0")
		time.Sleep(1234567)
		check("before Run, later")
		stop := runSystem(s)
		synctest.Wait()
		s.Now()
		time.Sleep(7 * time.Millisecond)
		stop()
		check("after Run")
		time.Sleep(1234567)
		check("after Run, later")
		stop = runSystem(s)
		synctest.Wait()
		check("in a second Run")
		stop()
	})
}

func TestSystemAdvancesEveryStepWhileInUse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := NewSystem()
		defer runSystem(s)()
		synctest.Wait()
		start := time.Now()
		_, first := s.Now() // wakes the clock
		for _, row := range []struct{ at, want time.Duration }{
			{1 * time.Millisecond, 0},
			{5*time.Millisecond - 1, 0},
			{5 * time.Millisecond, 5 * time.Millisecond},
			{9 * time.Millisecond, 5 * time.Millisecond},
			{13 * time.Millisecond, 10 * time.Millisecond},
			{199 * time.Millisecond, 195 * time.Millisecond},
			// Here the clock rests, and the reading that wakes it is precise.
			{202 * time.Millisecond, 202 * time.Millisecond},
			{206 * time.Millisecond, 202 * time.Millisecond},
			{207 * time.Millisecond, 207 * time.Millisecond},
			{211 * time.Millisecond, 207 * time.Millisecond},
		} {
			sleepTo(start, row.at)
			synctest.Wait()
			wall, mono := s.Now()
			if got := time.Duration(mono - first); got != row.want {
				t.Errorf("at %v: mono = first + %v, want + %v", row.at, got, row.want)
			}
			if want := start.Add(row.want).UnixNano(); wall != want {
				t.Errorf("at %v: wall = %d, want %d", row.at, wall, want)
			}
		}
	})
}

// countingSource counts readings of the time; each but the readers' own is a
// wake-up of Run.
func countingSource(reads *atomic.Int64) func() (wall, mono int64) {
	start := time.Now()
	return func() (wall, mono int64) {
		reads.Add(1)
		now := time.Now()
		return now.UnixNano(), monoStart + int64(now.Sub(start))
	}
}

// Glance answers what Now would, if it need not read the time for that; and it never
// keeps the clock from resting.
func TestSystemGlance(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := NewSystem()
		if _, _, ok := s.Glance(); ok {
			t.Error("a clock that does not run answers at a glance")
		}
		stop := runSystem(s)
		defer stop()
		synctest.Wait()
		if _, _, ok := s.Glance(); ok {
			t.Error("a clock that rests answers at a glance")
		}
		s.Now()
		for range burst - 1 {
			wall, mono, ok := s.Glance()
			if wantWall, wantMono := s.wall.Load(), s.mono.Load(); !ok || wall != wantWall || mono != wantMono {
				t.Fatalf("Glance = %d, %d, %v; want %d, %d", wall, mono, ok, wantWall, wantMono)
			}
			time.Sleep(step)
		}
		time.Sleep(2 * step)
		synctest.Wait()
		if _, _, ok := s.Glance(); ok {
			t.Error("Glance kept the clock from resting")
		}
	})
}

func TestSystemRestsWhenNobodyAsks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Int64
		s := newSystem(countingSource(&reads))
		defer runSystem(s)()
		time.Sleep(time.Hour)
		if got := reads.Load(); got != 0 {
			t.Errorf("never asked: %d readings in an hour, want 0", got)
		}
		s.Now()
		time.Sleep(time.Hour)
		if got, want := reads.Load(), int64(1+burst+1); got != want {
			t.Errorf("asked once: %d readings in an hour, want %d: one by the caller, a burst, the one that rests", got, want)
		}
		before := reads.Load()
		for range 1000 {
			time.Sleep(time.Second)
			s.Precise()
		}
		if got, want := reads.Load()-before, int64(1000); got != want {
			t.Errorf("Precise once a second: %d readings, want %d: Precise must not wake the clock", got, want)
		}
	})
}

func TestSystemStopsWhileAdvancingAndWhileResting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := NewSystem()
		stop := runSystem(s)
		synctest.Wait()
		before := time.Now()
		stop()
		stop = runSystem(s)
		synctest.Wait()
		s.Now()
		stop()
		if waited := time.Since(before); waited != 0 {
			t.Errorf("Run took %v to stop, want 0", waited)
		}
	})
}

func TestSystemPicksUpAWallStepAtTheNextAdvance(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var offset atomic.Int64
		start := time.Now()
		s := newSystem(func() (wall, mono int64) {
			now := time.Now()
			return now.UnixNano() + offset.Load(), monoStart + int64(now.Sub(start))
		})
		defer runSystem(s)()
		synctest.Wait()
		s.Now()
		at := time.Duration(0)
		for _, step := range []time.Duration{time.Hour, -100 * 365 * 24 * time.Hour, 1, 200 * 365 * 24 * time.Hour} {
			offset.Add(int64(step))
			at += 5 * time.Millisecond
			sleepTo(start, at)
			synctest.Wait()
			wall, mono := s.Now()
			if want := start.Add(at).UnixNano() + offset.Load(); wall != want {
				t.Errorf("after a step of %v: wall = %d, want %d", step, wall, want)
			}
			if want := monoStart + int64(at); mono != want {
				t.Errorf("after a step of %v: mono = %d, want %d: the wall's steps are not the mono's", step, mono, want)
			}
		}
	})
}

// A precise reading must never be followed by an older coarse one, whoever makes
// them, and neither may be followed by one of a stopped clock.
func TestSystemMonoNeverDecreases(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := NewSystem()
		last := int64(0)
		check := func(when string, read func() (int64, int64)) {
			t.Helper()
			_, mono := read()
			if mono < last {
				t.Errorf("%s: mono = %d after %d", when, mono, last)
			}
			last = mono
		}
		for round := range 3 {
			name := fmt.Sprintf("round %d, ", round)
			check(name+"stopped", s.Now)
			stop := runSystem(s)
			synctest.Wait()
			check(name+"started", s.Now)
			for i := range 500 {
				time.Sleep(333 * time.Microsecond)
				if i%3 == 0 {
					check(name+"precise", s.Precise)
				}
				check(name+"coarse", s.Now)
			}
			time.Sleep(time.Second)
			check(name+"resting, precise", s.Precise)
			check(name+"resting", s.Now)
			time.Sleep(3 * time.Millisecond)
			check(name+"precise", s.Precise)
			stop()
			check(name+"stopped", s.Now)
		}
	})
}

// The same on real goroutines: every reading is handed to the others through one
// atomic maximum, which no later reading may be below.
func TestSystemMonoNeverDecreasesBetweenGoroutines(t *testing.T) {
	t.Parallel()
	s := NewSystem()
	var highest atomic.Int64
	var readers sync.WaitGroup
	done := make(chan struct{})
	for reader := range 4 {
		readers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				default:
				}
				floor := highest.Load()
				read := s.Now
				if (i+reader)%64 == 0 {
					read = s.Precise
				}
				if _, mono := read(); mono < floor {
					t.Errorf("reader %d: mono = %d, want at least %d, which another goroutine has read", reader, mono, floor)
					return
				} else if mono > floor {
					highest.CompareAndSwap(floor, mono)
				}
			}
		})
	}
	for range 200 {
		stop := runSystem(s)
		for range 20 {
			s.Now()
		}
		stop()
	}
	close(done)
	readers.Wait()
}

func TestSystemRunTwiceAtOncePanics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := NewSystem()
		stop := runSystem(s)
		synctest.Wait()
		func() {
			defer func() {
				if got := recover(); got != "clock: Run is already running" {
					t.Errorf("second Run: recovered %v, want the panic that says it is running", got)
				}
			}()
			s.Run(nil)
		}()
		s.Now()
		time.Sleep(5 * time.Millisecond)
		synctest.Wait()
		if _, mono := s.Now(); mono != monoStart+int64(5*time.Millisecond) {
			t.Errorf("after the panic the first Run no longer advances: mono = %d", mono)
		}
		stop()
	})
}

func TestSystemNowDoesNotAllocate(t *testing.T) {
	s := NewSystem()
	if got := testing.AllocsPerRun(100, func() { s.Now() }); got != 0 {
		t.Errorf("precise Now: %v allocations, want 0", got)
	}
	defer runSystem(s)()
	if got := testing.AllocsPerRun(100, func() { s.Now() }); got != 0 {
		t.Errorf("coarse Now: %v allocations, want 0", got)
	}
}
