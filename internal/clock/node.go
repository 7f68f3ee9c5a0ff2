package clock

// This file lets the machines of a simulated fleet disagree about the wall.

import (
	"sync/atomic"
	"time"
)

// A Node is what one machine of a fleet sees of a [Fake]: the same time passing,
// on a wall of its own. It is safe for concurrent use.
type Node struct {
	fake   *Fake        // immutable
	offset atomic.Int64 // wall of this node minus wall of the fake clock
}

// Node returns a view whose wall is ahead of the clock's by offset, or behind it
// if offset is negative.
func (f *Fake) Node(offset time.Duration) *Node {
	n := &Node{fake: f}
	n.offset.Store(int64(offset))
	return n
}

// Now returns the clock's time, the wall moved by the node's offset.
func (n *Node) Now() (wall, mono int64) {
	wall, mono = n.fake.Now()
	return addSaturating(wall, n.offset.Load()), mono
}

// Tick is [Fake.Tick].
func (n *Node) Tick(interval time.Duration, call func()) (stop func()) {
	return n.fake.Tick(interval, call)
}

// After is [Fake.Once].
func (n *Node) After(d time.Duration, call func()) (stop func()) { return n.fake.Once(d, call) }

// SetOffset makes this node's wall differ from the clock's by offset.
func (n *Node) SetOffset(offset time.Duration) { n.offset.Store(int64(offset)) }

// StepWall moves this node's wall alone by d, either way.
func (n *Node) StepWall(d time.Duration) {
	for {
		old := n.offset.Load()
		if n.offset.CompareAndSwap(old, addSaturating(old, int64(d))) {
			return
		}
	}
}
