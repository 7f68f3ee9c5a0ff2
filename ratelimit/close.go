package ratelimit

// This file ends a limiter without losing sight of a unit.

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// What Close lets a partition fail in a row, where its context does not say: for so long
// if that has no deadline, and so often on a clock that calls the ticks, whose time does
// not pass meanwhile.
const (
	closePatience = 5 * time.Second
	closeAttempts = 3
)

// closing is how far Close has come.
type closing struct {
	once   sync.Once
	onStop func()        // set before the first check; ends a driver's ticks
	done   chan struct{} // closed when err is final

	mu      sync.Mutex
	started bool  // guarded by mu
	err     error // immutable once done is closed
}

func (c *closing) begun() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.started
}

// A CloseError says what Close could not deliver, in units. They are counted as
// dropped: Undelivered as closed, Unknown as unknown.
type CloseError struct {
	Undelivered uint64 // in no store: unsent, or refused whenever they were sent
	Unknown     uint64 // sent, and perhaps applied, but never acknowledged
	Unreturned  uint64 // given back, and still or perhaps still counted in a store
}

// Error returns the counts.
func (e *CloseError) Error() string {
	text := fmt.Sprintf("ratelimit: closed with %d units undelivered and %d units of unknown fate", e.Undelivered, e.Unknown)
	if e.Unreturned > 0 {
		text += fmt.Sprintf("; %d given back are still counted", e.Unreturned)
	}
	return text
}

// Close ends the limiter: a Check that comes before is delivered or reported, one
// that comes after is still limited by what this node knows but counts nothing for
// the fleet. Close syncs what is left, and goes on trying, with pauses of up to 0.8 s,
// until ctx ends; what is left then is reported by a [*CloseError]. A reply that comes
// later still is ignored. So ctx says how long an outage may last that costs nothing:
// give it a deadline. Without one a partition is given up that made no headway for five
// seconds; on a clock that calls the ticks itself, as a fake one does, one that failed
// three times in a row, whatever ctx allows.
//
// The goroutines end within the connect timeout and a tick, a second or the reply
// timeout, whichever is longest, then the connections
// that New made are closed and the metrics unregistered; Close waits for that
// too, within ctx. Close may be called again, and at once: every call waits for
// the first one's result, or for its own ctx, whose error it then returns.
func (l *Limiter) Close(ctx context.Context) error {
	first := false
	l.closing.once.Do(func() { first = true })
	if first {
		l.shutdown(ctx)
	}
	select {
	case <-l.closing.done:
		return l.closing.err
	case <-ctx.Done():
		select { // the result, if both are there
		case <-l.closing.done:
			return l.closing.err
		default:
			return fmt.Errorf("ratelimit: waiting for another Close: %w", ctx.Err())
		}
	}
}

// shutdown closes the limiter. It runs once.
func (l *Limiter) shutdown(ctx context.Context) {
	l.closing.mu.Lock()
	l.closing.started = true
	l.closing.mu.Unlock()
	if l.closing.onStop != nil {
		l.closing.onStop()
	}
	for _, p := range l.partitions {
		p.fleet.shut(ErrClosed)
	}
	for i := range l.table.shards {
		l.table.shards[i].close()
	}

	var drains sync.WaitGroup
	for _, p := range l.partitions {
		drains.Go(func() { p.drain(ctx) })
	}
	wait(ctx, &drains)
	l.closing.err = l.settle()
	l.end()

	var end sync.WaitGroup
	end.Go(func() {
		drains.Wait()
		l.running.Wait()
		l.housekeep()
		if err := closeAll(l.stores); err != nil {
			l.logger.Warn("ratelimit: closing a store", "scope", l.cfg.Scope, "error", err)
		}
		l.unregister()
	})
	wait(ctx, &end)
	close(l.closing.done)
}

// wait waits for the group until ctx ends. A group that is done by then counts as
// done even if ctx has ended before.
func wait(ctx context.Context, group *sync.WaitGroup) {
	done := make(chan struct{})
	go func() { // ends with the group
		group.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// close stops counting for the fleet. Checks that found the shard open are over by then.
func (s *shard) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed.Store(true)
	for e := range s.entries.each() {
		e.awaitCheck()
	}
}

// awaitCheck returns when the check under way, if there is one, has let the entry go.
func (e *entry) awaitCheck() {
	e.lock()
	defer e.unlock()
}

// drain ticks until the partition has nothing left, or made no headway for too long, or
// ctx ends.
func (p *partition) drain(ctx context.Context) {
	select {
	case <-p.turn:
	case <-ctx.Done():
		return
	}
	defer p.endTurn()
	for failures, since := 0, time.Now(); ctx.Err() == nil; {
		before := p.backlog()
		err := p.tick(ctx, rankIdle)
		after := p.backlog()
		if after == 0 {
			return
		}
		if after < before { // only refused units come back
			failures, since = 0, time.Now()
			if err == nil {
				continue
			}
		}
		failures++
		if p.l.driven() {
			if failures >= closeAttempts {
				return
			}
			continue
		}
		wait := min(firstBackoff<<min(failures-1, 8), lastBackoff)
		if _, bounded := ctx.Deadline(); !bounded {
			if wait = min(wait, closePatience-time.Since(since)); wait <= 0 {
				return
			}
		}
		pause(ctx, wait)
	}
}

// backlog returns how many entities wait for a sync or for its answer.
func (p *partition) backlog() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.queue.len()
	if p.carrying {
		n += len(p.batch.items)
	}
	return n
}

// pause lets d pass, or ctx end.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// settle gives up all units that are not delivered: what a batch carries whose fate
// is not known as unknown, everything else as closed.
func (l *Limiter) settle() error {
	var left CloseError
	r := l.read()
	for _, p := range l.partitions {
		p.mu.Lock()
		if p.settled = true; p.carrying {
			units := p.batch.units()
			if p.batch.Retry || p.trying {
				left.Unknown += units + p.batch.asked()
			} else {
				left.Undelivered += units
			}
			left.Unreturned += p.batch.backs()
			p.abandonLocked(dropClosed, &r)
			p.batch.failCalls(ErrClosed)
		}
		p.mu.Unlock()
	}
	for i := range l.table.shards {
		s := &l.table.shards[i]
		s.mu.Lock()
		for e := range s.entries.each() {
			e.lock()
			left.Unreturned += e.dropOwedLocked()
			left.Undelivered += e.dropUnsentLocked(dropClosed)
			e.unlock()
		}
		s.mu.Unlock()
	}
	l.table.shrink(&r)
	if left == (CloseError{}) {
		return nil
	}
	return &left
}

// closeAll closes what New made.
func closeAll(stores []interface{ Close() error }) error {
	var errs []error
	for _, s := range stores {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}
