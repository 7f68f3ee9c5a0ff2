package ratelimit

// This file is the calls that ask a partition's counters, and how they wait.

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hanzoai/limiters/internal/clock"
	"github.com/hanzoai/limiters/ratelimit/store"
)

// mostFleetCalls is how many calls may wait for a script of one partition.
const mostFleetCalls = 4096

// The fate of a call is settled once, by whoever comes first: the answer, or the caller
// that waits no longer.
const (
	fateOpen     uint32 = iota
	fateAnswered        // done gets a value as soon as the answer is complete
	fateGone            // what the store still grants is given back
)

// A fleetCall is one call of CheckFleet.
type fleetCall struct {
	check                // immutable, but for what encoding it finds out
	partition *partition // immutable
	fate      atomic.Uint32
	done      chan struct{} // gets one value when decision, held and err are final

	// Of the holder of turn, until the call is answered.

	next     *fleetCall // of the same ask
	granted  bool
	decision Decision
	held     holding
	err      error // why the fleet did not decide
}

func newFleetCall(l *Limiter, key string, n uint64, by told) *fleetCall {
	r := l.read()
	c := &fleetCall{check: l.checkOf(key, n, &r), done: make(chan struct{}, 1)}
	by.tell(&c.check)
	c.partition = l.table.owner(c.name)
	return c
}

// settle decides the call's fate, and reports whether it was open.
func (c *fleetCall) settle(fate uint32) bool { return c.fate.CompareAndSwap(fateOpen, fate) }

// fail tells the caller that the fleet did not decide.
func (c *fleetCall) fail(err error) {
	if c.settle(fateAnswered) {
		c.err = err
		c.done <- struct{}{}
	}
}

// leave ends the waiting of the caller for a reason, unless the answer is there.
func (c *fleetCall) leave(err error) error {
	if c.settle(fateGone) {
		return err
	}
	<-c.done
	return c.err
}

// refusal is the decision of a call that nobody waits for any more.
func (c *fleetCall) refusal() Decision {
	l := c.partition.l
	threshold, custom := c.threshold, c.custom
	if !c.resolved {
		threshold, custom = l.thresholds.lookup(c.overrides, c.key)
	}
	return Decision{
		verdict: VerdictLimited, basis: BasisLocal, dryRun: l.dryRun, custom: custom, kind: fixed, inclusive: l.inclusive,
		threshold: threshold, units: c.units,
	}
}

// A fleetQueue holds the calls that wait for a partition's next script.
type fleetQueue struct {
	wake chan struct{} // immutable; wakes the loop; holds one value at most

	mu    sync.Mutex
	calls []*fleetCall // guarded by mu; oldest first
	why   error        // guarded by mu; why none may wait; nil: they may

	// Of the holder of turn.

	taken []*fleetCall
	found map[string]int32 // of the batch's asks, by the name of the entity
}

func (q *fleetQueue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.calls)
}

// join has a call wait. It returns why it may not.
func (q *fleetQueue) join(c *fleetCall) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.why != nil:
		return q.why
	case len(q.calls) >= mostFleetCalls:
		return errTooManyCalls
	}
	q.calls = append(q.calls, c)
	return nil
}

// take moves up to limit calls that still wait from the queue to taken.
func (q *fleetQueue) take(limit int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	clear(q.taken)
	clear(q.found)
	q.taken = q.taken[:0]
	n := 0
	for ; n < len(q.calls) && len(q.taken) < limit; n++ {
		if c := q.calls[n]; c.fate.Load() == fateOpen {
			q.taken = append(q.taken, c)
		}
	}
	left := copy(q.calls, q.calls[n:])
	clear(q.calls[left:])
	q.calls = q.calls[:left]
}

// asksFor reports whether the batch under way asks for the entity of a name. It requires the
// turn.
func (q *fleetQueue) asksFor(name string) bool {
	_, ok := q.found[name]
	return ok
}

// again has calls wait once more, before all others.
func (q *fleetQueue) again(calls []*fleetCall) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.calls = append(append([]*fleetCall(nil), calls...), q.calls...)
}

// shut fails all that wait, and all that come, until open. A closed queue stays closed.
func (q *fleetQueue) shut(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.why != ErrClosed {
		q.why = err
	}
	for _, c := range q.calls {
		c.fail(err)
	}
	clear(q.calls)
	q.calls = q.calls[:0]
}

// open lets calls wait again.
func (q *fleetQueue) open() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.why != ErrClosed {
		q.why = nil
	}
}

// ask has a call answered. It returns why the fleet did not decide.
func (p *partition) ask(ctx context.Context, c *fleetCall) error {
	if err := p.fleet.join(c); err != nil {
		c.settle(fateGone)
		return err
	}
	if p.l.driven() {
		return p.askDriven(ctx, c)
	}
	p.wakeFleet()
	timer := time.NewTimer(p.l.cfg.GlobalReadTimeout)
	defer timer.Stop()
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
		return c.leave(ctx.Err())
	case <-timer.C:
		return c.leave(errNoAnswer)
	}
}

// wakeFleet has the loop make a script for the calls that wait.
func (p *partition) wakeFleet() {
	select {
	case p.fleet.wake <- struct{}{}:
	default:
	}
}

// A parker is a driver whose ticks may wait for a reply while it stands still.
type parker interface{ Parked() bool }

// parkedAgain is how often a call on a clock that stands still looks whether what it waits
// for does so, too.
const parkedAgain = 5 * time.Millisecond

// askDriven has a call answered on a clock that calls the ticks: by the caller itself, at
// this moment of that clock.
func (p *partition) askDriven(ctx context.Context, c *fleetCall) error {
	stands, parks := p.l.clock.(parker)
	var look <-chan time.Time
	if parks {
		ticker := time.NewTicker(parkedAgain)
		defer ticker.Stop()
		look = ticker.C
	}
	for {
		select {
		case <-c.done:
			return c.err
		case <-p.turn:
			p.syncFleet(clock.AtOnce(p.l.life))
			p.endTurn()
			continue
		default:
		}
		if parks && stands.Parked() {
			return c.leave(errSuspended)
		}
		select {
		case <-c.done:
			return c.err
		case <-p.turn:
			p.syncFleet(clock.AtOnce(p.l.life))
			p.endTurn()
		case <-ctx.Done():
			return c.leave(ctx.Err())
		case <-look:
		}
	}
}

// syncFleetIfFree makes one script for calls that wait, unless another is under way: the end
// of its turn wakes the loop again.
func (p *partition) syncFleetIfFree() {
	select {
	case <-p.turn:
	default:
		return
	}
	defer p.endTurn()
	runtime.Gosched() // callers who were just answered may ask again, in the same script
	p.syncFleet(p.l.life)
}

// syncFleet sends one batch of calls that wait, if there are some. It requires the turn.
func (p *partition) syncFleet(ctx context.Context) {
	if p.fleet.len() == 0 {
		return
	}
	if p.isCarrying() {
		p.fleet.shut(errGivenUp) // it failed: see conclude
		return
	}
	p.taken = p.taken[:0]
	if p.encode() {
		p.deliver(ctx) // the error is in the metrics and the log
	}
}

// fleetCalls is how many calls a script may answer.
func (p *partition) fleetCalls() int { return min(store.MaxAmounts, p.l.cfg.MaxKeysPerScript) }
