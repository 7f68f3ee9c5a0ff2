package ratelimit

// This file counts a cost before it is known, and corrects it afterwards.

import (
	"context"
	"sync/atomic"
)

// A Reservation is units that were counted for something whose cost is known only later.
// [Limiter.Reserve] and [Limiter.ReserveFleet] make one. Settle it once, by [Reservation.Commit] or
// [Reservation.Cancel]; what is not settled stays counted. It is safe for concurrent use.
// The zero value is a settled reservation of nothing.
type Reservation struct {
	limiter  *Limiter // immutable
	key      string   // immutable
	decision Decision // immutable
	held     holding  // of the one that settles it
	settled  atomic.Bool
}

// Reserve decides about n units of the entity named key, and counts them if they may pass,
// as [Limiter.Check] does: n is what the request is expected to cost, rather too much than
// too little. Once the cost is known, settle the reservation:
//
//	res := lim.Reserve(tenant, most)
//	if !res.Decision().Allowed() {
//		return refuse(res.Decision().RetryAfter())
//	}
//	defer res.Cancel() // does nothing after Commit
//	answer, err := model.Ask(prompt)
//	if err != nil {
//		return err
//	}
//	res.Commit(answer.Tokens)
//
// If the request is limited the reservation holds nothing (with Config.CountLimited: what was
// counted). n = 0 looks, and holds nothing; n is taken as at most 2^53 − 1. Reserve never
// returns nil. (docs/design.md, conservation)
func (l *Limiter) Reserve(key string, n uint64) *Reservation {
	res := &Reservation{limiter: l, key: key}
	res.decision, res.held = l.decideHolding(key, n, told{})
	return res
}

// ReserveFleet is [Limiter.Reserve] that decides as [Limiter.CheckFleet] does, by the fleet's
// counters at this moment, for one round trip: reservations of the whole fleet never hold
// more than the limit together. The error is CheckFleet's, with what it says of the decision:
// one that wraps [ErrNotFleet] comes with a reservation that this node decided about, or
// that holds nothing because ctx ended first. The reservation is never nil, and settled like
// any other: [Reservation.Commit] and [Reservation.Cancel] do no I/O, and the fleet learns
// of what they give back within a tick.
func (l *Limiter) ReserveFleet(ctx context.Context, key string, n uint64) (*Reservation, error) {
	res := &Reservation{limiter: l, key: key}
	var err error
	res.decision, res.held, err = l.askFleet(ctx, key, n, told{})
	return res, err
}

// Decision returns the answer to the request that the reservation was made for. It does
// not change when the reservation is settled.
func (r *Reservation) Decision() Decision { return r.decision }

// Commit settles the reservation at what the request did cost: if that is less than what
// the reservation holds, the rest is given back; if it is more, what is missing is recorded
// now, as [Limiter.Record] does. actual is in units, and taken as at most 2^53 − 1. On a
// settled reservation Commit does nothing.
//
// Units given back belong to the window in which they were counted: this node's checks find
// them gone at once, the fleet's within a tick. If no check can see that window any more,
// or the fleet's counter has lost them, there is nothing to give back; [Stats] counts such
// units as clamped. Commit does no I/O.
func (r *Reservation) Commit(actual uint64) {
	if r.limiter == nil || r.settled.Swap(true) {
		return
	}
	actual = units(actual)
	if held := r.held.units; actual < held {
		r.limiter.giveBack(&r.held, held-actual)
	} else {
		r.limiter.Record(r.key, actual-held)
	}
	r.held = holding{} // lets go of the entry
}

// Cancel settles the reservation at no cost: it gives all back. On a settled reservation it
// does nothing, so it may be deferred beside a Commit.
func (r *Reservation) Cancel() { r.Commit(0) }
