// Package ratelimittest tests services that limit, and limiters, in time that only
// moves when the test says so.
//
// A [Clock] stands still until [Clock.Advance]. A limiter on it ([NewLimiter]) has
// no goroutine: its ticks run inside Advance, in the order of time, so "a minute
// later" takes microseconds and comes out the same every time. A [Store] keeps the
// fleet's counts in memory in place of Redis; it can be made to refuse, to be
// unreachable, to lose replies or to be slow, and it counts what it is asked.
//
//	clock := ratelimittest.NewClock()
//	lim := ratelimittest.NewLimiter(t, clock, cfg)
//	…
//	clock.Advance(time.Minute)
//
// # A fleet
//
// [NewFleet] makes any number of limiters on one clock and one store; each can be
// cut off, and have a wall clock of its own. [Start] offers [Traffic] to a fleet and
// records, per key, what was admitted in the worst window ([Report]).
// [NewDocumentFleet] is the same for the schedule that this library improves on, to
// compare with.
//
// # Stores
//
// [TestStore] says whether an implementation of store.Store keeps the contract.
//
// # With testing/synctest
//
// The kit needs no bubble. Where the rest of a test has one, a limiter with its
// ordinary clock and goroutines works in it, on the time of the bubble: give it
// [WithStore] of a [NewStore] without a clock, or use [NewFleetInBubble].
//
// # Concurrency
//
// Everything here may be used by parallel tests, each with its own clock. Limiters
// may be called from any goroutine. Of one clock, one Advance runs at a time.
package ratelimittest
