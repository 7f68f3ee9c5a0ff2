package ratelimit

// This file waits until units may pass.

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrNever is what [Limiter.Wait] answers, wrapped, to a request that no wait helps: it
// alone exceeds the threshold, or the threshold is 0.
var ErrNever = errors.New("ratelimit: the request never passes")

// Wait blocks until n units of the entity named key may pass, counts them, and returns
// nil. Otherwise it counts none, and returns an error
//
//   - that wraps ctx.Err() if ctx ends first;
//   - that wraps [context.DeadlineExceeded], at once, if the units would pass only after the
//     deadline of ctx, as far as this node knows by now;
//   - that wraps [ErrNever], at once, if they never pass.
//
// Requests of one key wait in line, on this node: the first to come is the first to pass,
// and a large one is not overtaken by small ones. Calls of [Limiter.Check] do not stand in
// line. Units given back, another threshold and what other nodes count are noticed within a
// tick, and waits that they shorten or lengthen with them.
//
// A request of no units waits until one unit would pass. In a dry run, and for a key seen
// for the first time, Wait does not block where [Limiter.Check] would allow. A call counts
// as one decision, allowed or limited, however long it takes; Config.CountLimited does not
// make it count units that did not pass.
//
// Waits are on the limiter's clock: on one that tests drive, they end while it advances,
// and deadlines are compared with its wall. After Close waits go on, by what this process
// counts. Wait is safe for concurrent use. (docs/design.md, conservation)
func (l *Limiter) Wait(ctx context.Context, key string, n uint64) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("ratelimit: waiting for %d units: %w", n, err)
	}
	if l.dryRun {
		l.Check(key, n)
		return nil
	}
	w := &waiter{key: key, units: units(n), done: make(chan error, 1)}
	w.deadline, w.bounded = ctx.Deadline()
	line := l.waits.join(l, w)
	line.serve()
	select {
	case err := <-w.done:
		return err
	case <-ctx.Done():
	}
	if err, settled := line.leave(w); settled {
		return err
	}
	l.countRefusal(key, w.units)
	return fmt.Errorf("ratelimit: waiting for %d units: %w", n, ctx.Err())
}

// A waiter is one call of Wait.
type waiter struct {
	key      string     // immutable
	units    uint64     // immutable
	deadline time.Time  // immutable; if bounded
	bounded  bool       // immutable
	done     chan error // immutable; gets the answer, once
}

// An attempt is what came of looking after a waiter.
type attempt struct {
	over   bool          // the call has its answer
	answer error         // of Wait
	held   holding       // that was counted
	mono   int64         // when this was
	wait   time.Duration // from then on, at least, if it is not over
}

// attempt decides about the waiter's units.
func (l *Limiter) attempt(w *waiter) attempt {
	r := l.read()
	c := l.checkOf(w.key, w.units, &r)
	held, d := l.passOrLook(&c)
	if d.verdict != VerdictLimited {
		return attempt{over: true, held: held, mono: r.mono}
	}
	a := attempt{over: true, mono: r.mono}
	wait, left := d.RetryAfter(), w.deadline.Sub(time.Unix(0, r.wall))
	switch {
	case wait == Never:
		a.answer = fmt.Errorf("%w: %d units, and the threshold is %d", ErrNever, w.units, d.threshold)
	case w.bounded && wait > left:
		a.answer = fmt.Errorf("ratelimit: waiting for %d units: they pass in %v at the earliest, and the deadline is in %v: %w",
			w.units, wait, left, context.DeadlineExceeded)
	default:
		return attempt{mono: r.mono, wait: max(1, wait)}
	}
	l.countRefusal(w.key, w.units)
	return a
}

// passOrLook decides about a check and counts it if it may pass. Otherwise it leaves no
// trace.
func (l *Limiter) passOrLook(c *check) (held holding, d Decision) {
	s := c.shard
	s.mu.Lock()
	open, wake, created := !s.closed.Load(), false, false
	e := s.usedLocked(&c.request, c.hash, c.name, &c.at)
	switch {
	case e != nil:
		l.setThresholdLocked(e, &c.request, c.overrides, c.key)
		d = l.lookFor(c.units)
		if l.lookLocked(&d, e, &c.at, open) {
			d = Decision{}
			wake = l.decideLocked(&d, s, e, &c.request, &c.at, open)
		}
		e.unlock()
	case l.refusesAnew(c):
		d = l.lookFor(c.units)
		d.threshold = c.threshold
	default:
		s.counts.misses++
		if e = l.firstContactLocked(&d, c, open); e != nil {
			created = true
			e.unlock()
		}
	}
	s.mu.Unlock()
	if wake {
		e.partition.wakeUp()
	}
	if created {
		l.table.makeRoom(c.hash, e, &c.at)
	}
	if e != nil && c.units > 0 && d.verdict != VerdictLimited {
		held = holding{entry: e, epoch: c.epoch, mono: c.at.mono, units: c.units, fleet: open}
	}
	return held, d
}

// refusesAnew is refusesUnknown for a check whose threshold need not be known yet.
func (l *Limiter) refusesAnew(c *check) bool {
	if !c.resolved {
		c.threshold, c.custom = l.thresholds.lookup(c.overrides, c.key)
		c.resolved = true
	}
	return l.refusesUnknown(&c.request)
}

// countRefusal counts a decision that was limited, about a key that need not be known.
func (l *Limiter) countRefusal(key string, units uint64) {
	name := l.KeyName(key)
	s := l.table.shardOf(l.table.hash(name))
	l.table.refusals.add(name, units)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts.limited++
}
