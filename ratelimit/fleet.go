package ratelimit

// This file asks the fleet: decisions by its counters at this moment, made in the store
// (docs/design.md, ask the fleet).

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrNotFleet is what [Limiter.CheckFleet] and [Limiter.PeekFleet] wrap when the decision
// they return is not the fleet's.
var ErrNotFleet = errors.New("ratelimit: not decided by the fleet")

var (
	errTooManyCalls = errors.New("too many calls wait for this partition")
	errNoAnswer     = errors.New("no answer within the read timeout")
	errSuspended    = errors.New("a script is under way, and the clock stands still")
	errGivenUp      = errors.New("the batch was given up")
	errUnusable     = errors.New("the counter cannot be read or added to")
)

// CheckFleet decides whether n units of the entity named key may pass now, by what the whole
// fleet has counted at this moment, and counts them if so. It costs one round trip to Redis,
// where [Limiter.Check] costs none: it is for low limits and for what is precious, such as
// log-ins or messages that cost money. Calls that come while a script is under way share
// the next one, so that a partition never has more than one script per round trip.
//
// With a nil error the decision is exact: units granted by CheckFleet in an epoch never
// exceed the limit of a fixed window; in a leaky or sliding one the two-counter estimate at
// that moment never does, and with Config.WindowStrict no window does. Units that nodes
// counted by Check or Record come in addition, as far as Redis does not know them yet. A
// key that nobody has counted gets no free pass, and Config.BurstInterval does not decide.
// RetryAfter is when the same call of CheckFleet would pass, if nothing else is counted.
//
// An error that wraps [ErrNotFleet] comes with another decision:
//
//   - Redis cannot be asked, did not answer within Config.GlobalReadTimeout, its counter is
//     unusable, too many calls wait (4,096 for each partition), or the limiter is closed:
//     what [Limiter.Check] decides and counts, on this node. While a partition repeats a batch that failed,
//     calls get this at once.
//   - ctx ended first, which the error wraps, too: a limited decision; nothing is counted.
//
// Units that the store granted to a call that had its answer by then are given back. With
// n = 0 it only looks, as [Limiter.PeekFleet] does; n is taken as at most 2^53 − 1. It is
// safe for concurrent use. On a clock that drives the limiter it asks at once, and no time
// passes. (docs/fleet.md)
func (l *Limiter) CheckFleet(ctx context.Context, key string, n uint64) (Decision, error) {
	d, _, err := l.askFleet(ctx, key, n, told{})
	return d, err
}

// PeekFleet is [Limiter.CheckFleet] of no units: it tells the fleet's level at this moment
// and whether one unit would be limited, and counts nothing.
func (l *Limiter) PeekFleet(ctx context.Context, key string) (Decision, error) {
	return l.CheckFleet(ctx, key, 0)
}

// askFleet is CheckFleet. It also returns where the units were counted, if they were.
func (l *Limiter) askFleet(ctx context.Context, key string, n uint64, by told) (Decision, holding, error) {
	_, began := l.precise()
	c := newFleetCall(l, key, n, by)
	err := ctx.Err()
	if err != nil {
		c.fate.Store(fateGone)
	} else {
		err = c.partition.ask(ctx, c)
	}
	d, h := c.decision, c.held
	result := &l.fleetCounts[fleetLimited]
	switch {
	case err == nil && d.verdict != VerdictLimited:
		result = &l.fleetCounts[fleetAllowed]
	case err == nil:
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		result = &l.fleetCounts[fleetCanceled]
		d, h = c.refusal(), holding{}
	default:
		result = &l.fleetCounts[fleetLocal]
		d, h = l.decideHolding(key, n, by)
	}
	result.Add(1)
	_, ended := l.precise()
	l.metrics.fleetCheckMS.Update(float64(max(0, ended-began)) / float64(time.Millisecond))
	if err != nil {
		err = fmt.Errorf("%w: partition %s: %w", ErrNotFleet, c.partition.name, err)
	}
	return d, h, err
}

// decideHolding decides on this node, as Check does, and returns where it counted.
func (l *Limiter) decideHolding(key string, n uint64, by told) (d Decision, h holding) {
	r := l.read()
	c := l.checkOf(key, n, &r)
	by.tell(&c)
	e, open := l.decideAnew(&d, &c)
	if c.units > 0 && e != nil && (d.verdict != VerdictLimited || l.countLimited) {
		h = holding{entry: e, epoch: r.epoch, mono: r.mono, units: c.units, fleet: open}
	}
	return d, h
}

// What a call of CheckFleet came to.
const (
	fleetAllowed = iota
	fleetLimited
	fleetLocal
	fleetCanceled
	fleetResults
)

// FleetStats counts calls of [Limiter.CheckFleet] and [Limiter.PeekFleet].
type FleetStats struct {
	Allowed, Limited uint64 // by the fleet
	Local            uint64 // decided by this node: the fleet could not be asked
	Canceled         uint64 // the context ended first
	Waiting          int    // wait for a script
}

// fleetStats returns the counts.
func (l *Limiter) fleetStats() FleetStats {
	s := FleetStats{
		Allowed: l.fleetCounts[fleetAllowed].Load(), Limited: l.fleetCounts[fleetLimited].Load(),
		Local: l.fleetCounts[fleetLocal].Load(), Canceled: l.fleetCounts[fleetCanceled].Load(),
	}
	for _, p := range l.partitions {
		s.Waiting += p.fleet.len()
	}
	return s
}
