// Package backend is where the fleet's counts are during a run.
package backend

import (
	"time"

	"github.com/hanzoai/limiters/internal/redisurl"
	"github.com/hanzoai/limiters/ratelimit"
)

// Patience is the least read and write timeout with which the bench runs by its
// own configuration: the load takes every core, and a reply that waits for one is
// not a network that hangs.
const Patience = 2 * time.Second

// A Backend holds the counts of a fleet: real servers, an embedded one, or memory.
type Backend interface {
	CounterReader
	// Kind is embedded, redis or memory.
	Kind() string
	// Partitions is how many there are.
	Partitions() int
	// Options makes a limiter use this backend, as a node of its own.
	Options(config ratelimit.Config) ([]ratelimit.Option, error)
	// Bytes is what all nodes have sent and received, reading back excluded.
	Bytes() (sent, received uint64)
	// Clean deletes what the run with this prefix left.
	Clean(prefix string) error
	// Close is called after the limiters were closed.
	Close() error
}

// A CounterReader reads counters wherever they are: it adds to totals[i] what
// every store holds under keys[i], missing keys being 0.
type CounterReader interface {
	Read(keys []string, totals []uint64) error
}

// New returns the backend that the configuration's URLs name; without any
// it is an embedded server. The URLs of the configuration are then its.
//
// Every limiter that is given memory:// has a memory of its own, which nobody can
// read back: the nodes of a bench share one store in its place.
func New(config *ratelimit.Config) (Backend, error) {
	targets, err := redisurl.ParseList(config.RedisURLs)
	if err != nil {
		return nil, err
	}
	switch {
	case len(targets) == 0:
		return newEmbedded(config)
	case targets[0].Memory: // then all are
		return NewMemory(len(targets)), nil
	default:
		return NewServers(targets)
	}
}
