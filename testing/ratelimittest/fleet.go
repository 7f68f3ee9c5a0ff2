package ratelimittest

// This file is a fleet: many limiters, one clock, one store.

import (
	"sync/atomic"
	"time"

	"github.com/hanzoai/limiters/ratelimit"
)

// A Fleet is limiters that share a clock and a store, as a service's nodes share a
// Redis. Nodes may be called from any goroutine; Advance from one.
type Fleet struct {
	clock *Clock // immutable; nil in a bubble
	store *Store // immutable
	nodes []*Node
	cfg   ratelimit.Config // immutable; resolved
}

// NewFleet returns n limiters of one configuration, on a new [Clock] and a new
// [Store], closed when the test ends. Their ticks are spread evenly over the tick
// interval, in the order of the nodes, as chance spreads them in production.
// Options apply to every node. Same calls, same results.
func NewFleet(t TB, n int, cfg ratelimit.Config, opts ...ratelimit.Option) *Fleet {
	if t != nil {
		t.Helper()
	}
	return NewFleetAt(t, time.Time{}, n, cfg, opts...)
}

// NewFleetAt is [NewFleet] on a clock that starts at a time of the caller's choice.
func NewFleetAt(t TB, start time.Time, n int, cfg ratelimit.Config, opts ...ratelimit.Option) *Fleet {
	if t != nil {
		t.Helper()
	}
	return newFleet(t, NewClockAt(start), n, cfg, opts)
}

// NewFleetInBubble returns n limiters on one new [Store], with the clock and the
// goroutines they have in production, for use inside a testing/synctest bubble: its
// time is theirs. [Fleet.Advance] sleeps; synctest.Wait then waits for ticks due at
// that very moment. The fleet has no [Clock]. Nodes cannot have a wall of their own.
func NewFleetInBubble(t TB, n int, cfg ratelimit.Config, opts ...ratelimit.Option) *Fleet {
	if t != nil {
		t.Helper()
	}
	return newFleet(t, nil, n, cfg, opts)
}

func newFleet(t TB, c *Clock, n int, cfg ratelimit.Config, opts []ratelimit.Option) *Fleet {
	if t != nil {
		t.Helper()
	}
	if n < 1 {
		fail(t, "ratelimittest: a fleet of %d nodes; want at least 1", n)
		return nil
	}
	f := &Fleet{clock: c, store: NewStore(c), cfg: cfg.Resolved()}
	for i := range n {
		node := &Node{Link: f.store.Link()}
		var own ratelimit.Clock
		if c != nil {
			node.clock = &nodeClock{clock: c, phase: spread(i, n)}
			own = node.clock
		}
		node.Limiter = newLimiter(t, own, node.Link, cfg, opts)
		f.nodes = append(f.nodes, node)
	}
	return f
}

// spread is the phase of the ticks of node i of n, as a part of their interval.
func spread(i, n int) float64 { return float64(i) / float64(n) }

// Advance lets d pass on the clock: every node's due ticks run, in the order of time.
func (f *Fleet) Advance(d time.Duration) {
	if f.clock == nil {
		time.Sleep(d)
		return
	}
	f.clock.Advance(d)
}

// Clock returns the fleet's clock; nil in a bubble.
func (f *Fleet) Clock() *Clock { return f.clock }

// Store returns what all nodes share. What fails there fails for all.
func (f *Fleet) Store() *Store { return f.store }

// Len returns the number of nodes.
func (f *Fleet) Len() int { return len(f.nodes) }

// Node returns node i, from 0.
func (f *Fleet) Node(i int) *Node { return f.nodes[i] }

// Nodes returns all nodes. The slice is the fleet's own.
func (f *Fleet) Nodes() []*Node { return f.nodes }

// Offer has a node check units of a key, and reports whether they may pass. It is
// how [Traffic] meets a fleet.
func (f *Fleet) Offer(node int, key string, units uint64) (allowed bool) {
	d := f.nodes[node].Check(key, units)
	return d.Allowed()
}

// Limit returns a key's threshold, as Config gives it, and the window.
func (f *Fleet) Limit(key string) (threshold uint64, window time.Duration) {
	if own, ok := f.cfg.CustomKeys[key]; ok {
		return own, f.cfg.WindowInterval
	}
	return f.cfg.GlobalThreshold, f.cfg.WindowInterval
}

// Requests returns the sum of what the nodes asked of the store.
func (f *Fleet) Requests() Requests {
	var sum Requests
	for _, n := range f.nodes {
		r := n.Link.Requests()
		sum.Attempts += r.Attempts
		sum.Answered += r.Answered
		sum.Writes += r.Writes
		sum.Reads += r.Reads
	}
	return sum
}

// Asked returns how often the store was asked to write and to read counters of a
// key, by all nodes together.
func (f *Fleet) Asked(key string) (writes, reads uint64) {
	return f.store.requestsOf(f.cfg.RedisKeyPrefix + ":" + key)
}

// Close closes all limiters, for a fleet without a test. It delivers nothing.
func (f *Fleet) Close() {
	for _, n := range f.nodes {
		closeNow(n.Limiter)
	}
}

// A Node is one limiter of a [Fleet] and its way to the store.
type Node struct {
	*ratelimit.Limiter
	// Link is this node's own way to the fleet's store.
	Link *Store

	clock *nodeClock // immutable; nil in a bubble
}

// CutOff makes the store unreachable for this node alone.
func (n *Node) CutOff() { n.Link.Fail(Unreachable) }

// Reconnect ends what [Node.CutOff], or any failure or delay of the node's link,
// began.
func (n *Node) Reconnect() { n.Link.Heal() }

// SetOffset puts this node's wall ahead of the fleet's by d, or behind if d is
// negative.
func (n *Node) SetOffset(d time.Duration) { n.clock.offset.Store(int64(d)) }

// A nodeClock is the fleet's clock as one node sees it.
type nodeClock struct {
	clock  *Clock       // immutable
	phase  float64      // immutable; of its ticks, as a part of their interval
	offset atomic.Int64 // of its wall, ns
}

// Now implements ratelimit.Clock.
func (c *nodeClock) Now() (wall, mono int64) {
	wall, mono = c.clock.Now()
	return wall + c.offset.Load(), mono
}

// Tick drives the node's limiter.
func (c *nodeClock) Tick(interval time.Duration, f func()) (stop func()) {
	first := interval + time.Duration(c.phase*float64(interval))
	return c.clock.tickAfter(first, interval, f)
}

// Parked implements what [Clock.Parked] is for.
func (c *nodeClock) Parked() bool { return c.clock.Parked() }

// After calls what the limiter does between its ticks.
func (c *nodeClock) After(d time.Duration, f func()) (stop func()) { return c.clock.After(d, f) }
