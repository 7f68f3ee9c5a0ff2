package main

// This file is where the fleet's counts are during a run.

import (
	"github.com/hanzoai/limiters/internal/redisurl"
	"github.com/hanzoai/limiters/ratelimit"
)

// A backend holds the counts of a fleet: real servers, an embedded one, or memory.
type backend interface {
	counterReader
	// kind is embedded, redis or memory.
	kind() string
	// partitions is how many there are.
	partitions() int
	// options makes a limiter use this backend, as a node of its own.
	options(config ratelimit.Config) ([]ratelimit.Option, error)
	// bytes is what all nodes have sent and received, reading back excluded.
	bytes() (sent, received uint64)
	// clean deletes what the run with this prefix left.
	clean(prefix string) error
	// close is called after the limiters were closed.
	close() error
}

// newBackend returns the backend that the configuration's URLs name; without any
// it is an embedded server. The URLs of the configuration are then its.
//
// Every limiter that is given memory:// has a memory of its own, which nobody can
// read back: the nodes of a bench share one store in its place.
func newBackend(config *ratelimit.Config) (backend, error) {
	targets, err := redisurl.ParseList(config.RedisURLs)
	if err != nil {
		return nil, err
	}
	switch {
	case len(targets) == 0:
		return newEmbedded(config)
	case targets[0].Memory: // then all are
		return newMemory(len(targets)), nil
	default:
		return newServers(targets)
	}
}
