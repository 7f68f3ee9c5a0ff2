package plans

// This file has the limiters of one process share a pool for each Redis.

import (
	"errors"
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/hanzoai/limiters/internal/memstore"
	"github.com/hanzoai/limiters/internal/redisstore"
	"github.com/hanzoai/limiters/internal/redisurl"
	"github.com/hanzoai/limiters/ratelimit"
)

// A pool keeps as many connections as scripts run at once most of the time, for limiters tick at
// times of their own. It has no more than the second: on a busy machine or a slow server all limits
// would else connect at once. Who finds none free waits for one, within the connect timeout.
const (
	idleConnections = 8
	mostConnections = 16
)

// pools are connections to each Redis of a configuration. They are immutable.
type pools struct {
	targets  []redisurl.Target
	pools    []*redis.Pool     // of the targets; nil for one in memory
	memories []*memstore.Store // of the targets in memory, else nil: counts outlive a limiter
	timeouts redisstore.Timeouts
}

func openPools(cfg ratelimit.Config, o *options) (*pools, error) {
	targets, err := redisurl.ParseList(cfg.RedisURLs)
	if err != nil {
		return nil, fmt.Errorf("plans: RedisURLs: %w", err)
	}
	cfg = cfg.Resolved()
	p := &pools{
		targets: targets, pools: make([]*redis.Pool, len(targets)), memories: make([]*memstore.Store, len(targets)),
		timeouts: redisstore.Timeouts{
			Connect: cfg.ConnectTimeout, Reply: max(cfg.GlobalReadTimeout, cfg.GlobalWriteTimeout), Write: cfg.GlobalWriteTimeout,
		},
	}
	for i, target := range targets {
		if target.Memory {
			p.memories[i] = memstore.New(func() int64 {
				if o.clock == nil {
					return time.Now().UnixNano()
				}
				wall, _ := o.clock.Now()
				return wall
			})
			continue
		}
		p.pools[i] = redisstore.NewPool(target, redisstore.Options{Timeouts: p.timeouts, TLS: o.tls})
		p.pools[i].MaxIdle, p.pools[i].IdleTimeout = idleConnections, time.Minute
		p.pools[i].MaxActive, p.pools[i].Wait = mostConnections, true
	}
	return p, nil
}

// partitions are those of one limiter: a store sends one batch at a time, so each limiter has
// stores of its own over the pools.
func (p *pools) partitions() []ratelimit.Partition {
	parts := make([]ratelimit.Partition, len(p.targets))
	for i, target := range p.targets {
		parts[i].Name = target.Name
		if p.memories[i] != nil {
			parts[i].Store = p.memories[i]
		} else {
			parts[i].Store = redisstore.New(p.pools[i], p.timeouts)
		}
	}
	return parts
}

// close closes the pools, after the limiters.
func (p *pools) close() error {
	var errs []error
	for _, pool := range p.pools {
		if pool != nil {
			errs = append(errs, pool.Close())
		}
	}
	return errors.Join(errs...)
}
