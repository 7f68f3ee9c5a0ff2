// This file is the time of the fault suite. It is real time that does not run away
// from a process, or from a fleet, that a busy machine holds up: what a scenario
// costs is the fault's doing, never the machine's.

package integration

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	// beat is how often the clock advances, and longestBeat by how much at most.
	beat        = 3 * time.Millisecond
	longestBeat = 6 * time.Millisecond
	// behind is how long a node may be without an answer before the wall waits.
	behind = 3 * ticks
	// patience is how long the wall waits, in real time, before it goes on, which
	// fails the test.
	patience = time.Minute
)

// An elastic clock passes pace times slower than real time, and slower still where
// this process does not run. Its wall stands still besides while it is held. It is
// safe for concurrent use.
type elastic struct {
	start int64        // immutable; wall
	pace  float64      // immutable; at least 1
	mono  atomic.Int64 // ns from start
	wall  atomic.Int64 // ns from start
	held  atomic.Bool
}

// newElastic starts a clock that runs until the test ends.
func newElastic(t *testing.T, pace float64) *elastic {
	e := &elastic{start: time.Now().UnixNano(), pace: pace}
	every(t, beat, func(passed time.Duration) {
		step := int64(float64(min(passed, longestBeat)) / pace)
		e.mono.Add(step)
		if !e.held.Load() {
			e.wall.Add(step)
		}
	})
	return e
}

// every calls do again and again until the test ends, with the time that passed
// since the call before.
func every(t *testing.T, interval time.Duration, do func(passed time.Duration)) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() { // ends with the test
		defer close(stopped)
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for last := time.Now(); ; {
			select {
			case <-stop:
				return
			case <-ticker.C:
			}
			now := time.Now()
			do(now.Sub(last))
			last = now
		}
	}()
	t.Cleanup(func() {
		close(stop)
		<-stopped
	})
}

// sleep lets d of monotonic time pass.
func (e *elastic) sleep(d time.Duration) { e.await(&e.mono, d) }

// pass lets d pass on the wall.
func (e *elastic) pass(d time.Duration) { e.await(&e.wall, d) }

func (e *elastic) await(reading *atomic.Int64, d time.Duration) {
	end := reading.Load() + int64(d)
	for left := d; left > 0; left = time.Duration(end - reading.Load()) {
		time.Sleep(max(e.real(left), beat))
	}
}

// real is how long d lasts at least.
func (e *elastic) real(d time.Duration) time.Duration { return time.Duration(float64(d) * e.pace) }

// epoch is the wall's.
func (e *elastic) epoch() int64 { return (e.start + e.wall.Load()) / int64(window) }

// A nodeClock is the clock as one node sees it: on a wall of its own.
type nodeClock struct {
	*elastic
	offset atomic.Int64 // ns
}

// Now implements ratelimit.Clock.
func (c *nodeClock) Now() (wall, mono int64) {
	mono = c.mono.Load()
	return c.start + c.wall.Load() + c.offset.Load(), mono
}

// step moves the node's wall by d, either way.
func (c *nodeClock) step(d time.Duration) { c.offset.Add(int64(d)) }

// A governor holds the wall while a node of the fleet has something to send and no
// answer: but not while a fault lasts.
type governor struct {
	clock *elastic

	mu      sync.Mutex
	members map[*member]bool // guarded by mu; those that must keep up
	faulty  int              // guarded by mu; faults that last
	healed  int64            // guarded by mu; mono; when the last fault ended
	waiting time.Duration    // guarded by mu; real time for which the wall has stood still
}

func newGovernor(t *testing.T, c *elastic) *governor {
	g := &governor{clock: c, members: map[*member]bool{}}
	every(t, 4*beat, func(passed time.Duration) {
		g.mu.Lock()
		defer g.mu.Unlock()
		late := g.lateLocked()
		c.held.Store(late != nil && g.waiting < patience)
		switch {
		case late == nil:
			g.waiting = 0
		case g.waiting < patience && g.waiting+passed >= patience:
			t.Errorf("%s has not recovered within %v: %+v", late.name, patience, late.Stats())
			fallthrough
		default:
			g.waiting += passed
		}
	})
	return g
}

// lateLocked returns a node that does not keep up, nil if all do.
func (g *governor) lateLocked() *member {
	if g.faulty > 0 {
		return nil
	}
	due := max(g.healed, g.clock.mono.Load()-int64(behind))
	for m := range g.members {
		for i, w := range m.witnesses {
			if w.answered.Load() >= due {
				continue
			}
			if p := m.Stats().Partitions[i]; p.Queued > 0 || p.InFlight > 0 {
				return m
			}
		}
	}
	return nil
}

// watch has a node keep up from now on, or not any more.
func (g *governor) watch(m *member, on bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if on {
		g.members[m] = true
	} else {
		delete(g.members, m)
	}
}

// fault begins or ends a fault.
func (g *governor) fault(on bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if on {
		g.faulty++
		g.clock.held.Store(false)
		return
	}
	if g.faulty--; g.faulty == 0 {
		g.healed = g.clock.mono.Load()
		g.clock.held.Store(true)
	}
}
