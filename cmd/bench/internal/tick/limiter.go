package tick

// This file is our side of a tick run: a limiter as shipped, but on a clock that
// the run advances.

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hanzoai/limiters/cmd/bench/internal/backend"
	"github.com/hanzoai/limiters/internal/clock"
	"github.com/hanzoai/limiters/internal/redisurl"
	"github.com/hanzoai/limiters/ratelimit"
)

// A syncer is one way to keep a node and Redis informed of each other. Its methods
// are for one goroutine.
type syncer interface {
	// offer counts what arrives before the next tick, the tick-th of the run.
	offer(tick int)
	// sync makes that tick; it moves the syncer's time by one interval.
	sync() error
	// bytes is what went over the wire so far.
	bytes() (sent, received uint64)
	// roundTrips is how often a reply was awaited so far.
	roundTrips() uint64
	close() error
}

// A tickedLimiter is the syncer that is the library.
type tickedLimiter struct {
	o       *options
	names   []string
	clock   *clock.Fake
	limiter *ratelimit.Limiter
	servers *backend.Servers
}

// configOf is the library's default configuration for a run's entities.
func configOf(o *options, prefix string, entities int) ratelimit.Config {
	config := ratelimit.DefaultConfig()
	config.GlobalThreshold = threshold
	config.WindowInterval = o.window
	config.TickInterval = o.tick
	config.SyncByUnits = false // it is the tick that is measured
	config.RedisKeyPrefix = prefix
	config.Scope = prefix
	config.LocalCacheMaxEntries = max(config.LocalCacheMaxEntries, entities)
	config.MaxSyncKeysPerTick = max(config.MaxSyncKeysPerTick, entities)
	config.ChannelCapacity = max(config.ChannelCapacity, entities)
	config.GlobalReadTimeout, config.GlobalWriteTimeout, config.ConnectTimeout = backend.Patience, backend.Patience, backend.Patience
	return config
}

// newTickedLimiter returns a limiter whose time begins at start.
func newTickedLimiter(o *options, target redisurl.Target, prefix string, names []string, start time.Time) (*tickedLimiter, error) {
	servers, err := backend.NewServers([]redisurl.Target{target})
	if err != nil {
		return nil, err
	}
	t := &tickedLimiter{o: o, names: names, clock: clock.NewFake(start), servers: servers}
	config := configOf(o, prefix, len(names))
	options, err := servers.Options(config)
	if err == nil {
		t.limiter, err = ratelimit.New(config, append(options, ratelimit.WithClock(t.clock))...)
	}
	if err != nil {
		return nil, errors.Join(err, servers.Close())
	}
	return t, nil
}

func (t *tickedLimiter) offer(tick int) {
	for i, name := range t.names {
		t.limiter.Check(name, unitsOf(i, tick, t.o.ticksPerWindow()))
	}
}

// sync lets one interval pass: the clock calls the tick, and all that goes with it.
func (t *tickedLimiter) sync() error {
	t.clock.Advance(t.o.tick)
	s := t.limiter.Stats()
	if p := s.Partitions[0]; !p.Up || p.Retries > 0 || s.Undelivered > 0 {
		return fmt.Errorf("the tick failed: up %t, %d retries, %d units undelivered", p.Up, p.Retries, s.Undelivered)
	}
	return nil
}

func (t *tickedLimiter) bytes() (sent, received uint64) { return t.servers.Bytes() }

func (t *tickedLimiter) roundTrips() uint64 { return t.limiter.Stats().Partitions[0].RoundTrips }

func (t *tickedLimiter) close() error {
	err := t.limiter.Close(context.Background())
	return errors.Join(err, t.servers.Close())
}
