package ratelimit

// This file keeps the requests of a key that wait in line, and serves the first.

import (
	"sync"
	"sync/atomic"
	"time"
)

// waitLines are those of a limiter: one for each key that somebody waits for. The zero value is
// empty.
type waitLines struct {
	calls   atomic.Int64 // in all lines
	resting atomic.Int64 // of them, in lines that the clock is told to serve

	mu    sync.Mutex
	byKey map[string]*waitLine // guarded by mu; by the representation of the key
}

// A waitLine is the calls that wait for one key, the first to come first. It is served by
// whoever joins it, and then by the limiter's clock: by one at a time.
//
// Lock order: the lines' mu, then a line's. No other lock is taken inside, and nothing is
// decided under them.
type waitLine struct {
	l    *Limiter // immutable
	name string   // immutable

	mu      sync.Mutex
	waiters []*waiter // guarded by mu
	serving bool      // guarded by mu; somebody serves
	again   bool      // guarded by mu; and has to look again
	resting int64     // guarded by mu; calls that were told of as resting
	stop    func()    // guarded by mu; of the alarm; may be nil
	turn    uint64    // guarded by mu; of that alarm, so that one that comes late is known
}

// join puts a waiter at the end of its key's line.
func (ls *waitLines) join(l *Limiter, w *waiter) *waitLine {
	name := l.KeyName(w.key)
	ls.mu.Lock()
	defer ls.mu.Unlock()
	line := ls.byKey[name]
	if line == nil {
		line = &waitLine{l: l, name: name}
		if ls.byKey == nil {
			ls.byKey = map[string]*waitLine{}
		}
		ls.byKey[name] = line
	}
	line.mu.Lock()
	defer line.mu.Unlock()
	line.waiters = append(line.waiters, w)
	ls.calls.Add(1)
	return line
}

// wakeUp serves the line of a key that may pass sooner than was known. No lock may be held.
func (ls *waitLines) wakeUp(name string) {
	if ls.calls.Load() == 0 {
		return
	}
	ls.mu.Lock()
	line := ls.byKey[name]
	ls.mu.Unlock()
	if line != nil {
		line.serve()
	}
}

// serve answers the waiters that have an answer now, and has the clock call when the first
// of the others may. If somebody serves already, that one looks again.
func (line *waitLine) serve() {
	line.mu.Lock()
	if line.serving {
		line.again = true
		line.mu.Unlock()
		return
	}
	line.serving = true
	line.silenceLocked()
	line.mu.Unlock()
	for line.serveFirst() {
	}
}

// serveFirst serves the first of the line, and reports whether to go on. It requires that
// this goroutine serves.
func (line *waitLine) serveFirst() (more bool) {
	line.mu.Lock()
	line.again = false
	if len(line.waiters) == 0 {
		line.serving = false
		line.mu.Unlock()
		line.retire()
		return false
	}
	w := line.waiters[0]
	line.mu.Unlock()

	a := line.l.attempt(w)
	if a.over {
		line.mu.Lock()
		left := len(line.waiters) == 0 || line.waiters[0] != w
		if !left {
			line.removeLocked(0)
			w.done <- a.answer
		}
		line.mu.Unlock()
		if left { // it left meanwhile, and counts nothing
			line.l.giveBack(&a.held, a.held.units)
		}
		return true
	}
	return line.rest(a.mono, min(a.wait, line.l.cfg.TickInterval))
}

// rest has the clock serve the line after a wait from a reading of it on, and ends serving.
// It reports whether there is something to do at once instead.
func (line *waitLine) rest(mono int64, wait time.Duration) (more bool) {
	line.mu.Lock()
	if line.again {
		line.mu.Unlock()
		return true
	}
	line.turn++
	turn := line.turn
	line.serving = false
	line.mu.Unlock()

	stop := line.l.after(wait, func() { line.alarm(turn) })
	_, now := line.l.precise()
	line.mu.Lock()
	defer line.mu.Unlock()
	if line.turn != turn {
		stop() // somebody served meanwhile
		return false
	}
	line.stop = stop
	line.resting = int64(len(line.waiters))
	line.l.waits.resting.Add(line.resting)
	if line.l.driven() && now != mono { // the clock went on before it knew of the alarm
		line.silenceLocked()
		line.serving = true
		return true
	}
	return false
}

// alarm is called by the clock, whose copy should not be behind then.
func (line *waitLine) alarm(turn uint64) {
	line.l.renewClock()
	line.mu.Lock()
	due := line.turn == turn
	line.mu.Unlock()
	if due {
		line.serve()
	}
}

// silenceLocked ends the alarm, if there is one.
func (line *waitLine) silenceLocked() {
	line.turn++
	line.l.waits.resting.Add(-line.resting)
	line.resting = 0
	if line.stop != nil {
		line.stop()
		line.stop = nil
	}
}

// leave takes a waiter out of the line whose ctx has ended. It returns the waiter's answer
// instead if it has got that already.
func (line *waitLine) leave(w *waiter) (answer error, settled bool) {
	line.mu.Lock()
	at := -1
	for i, other := range line.waiters {
		if other == w {
			at = i
			line.removeLocked(i)
			break
		}
	}
	line.mu.Unlock()
	if at < 0 {
		return <-w.done, true
	}
	if at == 0 {
		line.serve() // the next one, or nobody any more
	}
	return nil, false
}

func (line *waitLine) removeLocked(i int) {
	last := len(line.waiters) - 1
	if line.resting > 0 {
		line.resting--
		line.l.waits.resting.Add(-1)
	}
	copy(line.waiters[i:], line.waiters[i+1:])
	line.waiters[last] = nil
	line.waiters = line.waiters[:last]
	line.l.waits.calls.Add(-1)
}

// retire forgets the line if nobody is in it.
func (line *waitLine) retire() {
	ls := &line.l.waits
	ls.mu.Lock()
	defer ls.mu.Unlock()
	line.mu.Lock()
	defer line.mu.Unlock()
	if len(line.waiters) == 0 && !line.serving && ls.byKey[line.name] == line {
		delete(ls.byKey, line.name)
	}
}
