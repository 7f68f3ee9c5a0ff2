// This file breaks nodes rather than servers: they restart, die, stand still, and
// have clocks that differ, step and leap.

package integration

import (
	"fmt"
	"time"
)

var nodeScenarios = []scenario{
	{name: "node-restarts", run: nodeRestarts},
	{name: "node-dies", run: nodeDies},
	{name: "node-paused", run: nodePaused, stale: true, unknown: true},
	{name: "clocks-apart", change: apart, run: atRequests(anyAction)},
	{name: "clock-steps-back", run: clockSteps(-window / 3)},
	{name: "clock-steps-back-windows", run: clockSteps(-3 * window), stale: true, unknown: true},
	{name: "clock-leaps", run: clockSteps(5 * window), stale: true, unknown: true},
	{name: "clock-leaps-years", run: clockSteps(3 * 365 * 24 * time.Hour), stale: true, unknown: true},
}

// nodeRestarts ends nodes as a deployment does, while requests fail, and starts
// others in their place.
func nodeRestarts(f *fleet) {
	f.run(0.7)
	for i := range 3 {
		node := f.present()[0]
		f.during(brief, func() {
			for _, b := range f.servers {
				b.strike(f.rng, 0.2, anyAction)
			}
			node.endIn(10 * time.Second) // it may fail, but not report wrongly
			f.start(fmt.Sprintf("restarted %d", i))
		}, func() {
			for _, b := range f.servers {
				b.proxy.Handle(nil)
			}
		})
		f.run(0.7)
	}
}

// nodeDies ends a node's process with units that were not sent: those alone are
// missing.
func nodeDies(f *fleet) {
	f.run(0.7)
	b := f.any()
	f.during(brief, func() { b.strike(f.rng, 0.5, anyAction) }, func() { b.proxy.Handle(nil) })
	f.run(0.7)
	victim := f.present()[0]
	victim.die()
	f.run(2)
}

// nodePaused stops a node for two windows and more, wherever it is.
func nodePaused(f *fleet) {
	f.run(0.7)
	for range 2 {
		node := f.present()[f.rng.IntN(2)]
		var resume func()
		f.during(9*window/4, func() { resume = node.pause() }, func() { resume() })
		f.run(0.7)
	}
}

// apart has the nodes' clocks differ by up to four seconds.
func apart(f *fleet) {
	f.offset = func(node int) time.Duration {
		return []time.Duration{-2, 2, 0, 1, -1, 0}[node%6] * time.Second
	}
}

// clockSteps moves the wall of one node, thrice.
func clockSteps(by time.Duration) func(*fleet) {
	return func(f *fleet) {
		f.run(0.7)
		for range 3 {
			node := f.present()[f.rng.IntN(2)]
			f.during(brief, func() { node.clock.step(by) }, func() {})
			f.run(0.7)
		}
	}
}
