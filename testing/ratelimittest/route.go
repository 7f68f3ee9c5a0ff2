package ratelimittest

// This file says which node a request reaches.

import (
	"math/rand/v2"
	"time"
)

// A Route says which of some nodes a request reaches, at a time since the traffic
// began; random is the traffic's own. The answer is from 0 to nodes − 1.
type Route func(at time.Duration, nodes int, random *rand.Rand) (node int)

// Hop sends all requests to one node for a while, then all to the next, and so on in a
// circle: what a load balancer with sticky connections does to one busy client.
func Hop(every time.Duration) Route {
	return func(at time.Duration, nodes int, _ *rand.Rand) int {
		return int(at / every % time.Duration(nodes))
	}
}

// Shrink sends each request to any node until a time, and from then on to any of the
// first few: what is left of a fleet that was scaled down.
func Shrink(to int, when time.Duration) Route {
	return func(at time.Duration, nodes int, random *rand.Rand) int {
		if at >= when {
			nodes = min(nodes, to)
		}
		return random.IntN(nodes)
	}
}
