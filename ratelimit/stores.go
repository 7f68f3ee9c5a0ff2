package ratelimit

// This file turns addresses, pools and stores into partitions.

import (
	"fmt"
	"strings"

	"github.com/hanzoai/limiters/internal/memstore"
	"github.com/hanzoai/limiters/internal/redisstore"
	"github.com/hanzoai/limiters/internal/redisurl"
)

// openStores returns the partitions that the options or else the configured URLs
// name, and what New made and must close. It connects to nothing.
func openStores(cfg Config, o *options) (parts []Partition, made []interface{ Close() error }, err error) {
	timeouts := redisstore.Timeouts{
		Connect: cfg.ConnectTimeout,
		Reply:   max(cfg.GlobalReadTimeout, cfg.GlobalWriteTimeout),
		Write:   cfg.GlobalWriteTimeout,
	}
	warnOf := func(partition string) func(string) {
		return func(text string) {
			o.logger.Warn("ratelimit: "+text, "scope", cfg.Scope, "partition", partition)
		}
	}
	switch {
	case len(o.partitions) > 0 && len(o.pools) > 0:
		return nil, nil, fmt.Errorf("ratelimit: WithPartitions and WithPools exclude each other")
	case len(o.partitions) > 0:
		for i, p := range o.partitions {
			if p.Store == nil {
				return nil, nil, fmt.Errorf("ratelimit: WithPartitions: partition %d (%q) has no store", i, p.Name)
			}
			if err := checkHashTag(p.Name, p.HashTag); err != nil {
				return nil, nil, err
			}
		}
		return o.partitions, nil, nil
	case len(o.pools) > 0:
		for i, p := range o.pools {
			if p.Pool == nil {
				return nil, nil, fmt.Errorf("ratelimit: WithPools: pool %d (%q) is nil", i, p.Name)
			}
			if err := checkHashTag(p.Name, p.HashTag); err != nil {
				return nil, nil, err
			}
			parts = append(parts, Partition{Name: p.Name, Store: redisstore.New(p.Pool, timeouts).Warn(warnOf(p.Name)), HashTag: p.HashTag})
		}
		return parts, nil, nil
	}
	targets, err := redisurl.ParseList(cfg.RedisURLs)
	if err != nil {
		return nil, nil, fmt.Errorf("ratelimit: RedisURLs (%s): %w", cfg.variable(fieldRedisURLs), err)
	}
	for _, target := range targets {
		if target.Memory {
			s := memstore.New(func() int64 { wall, _ := o.clock.Now(); return wall })
			parts = append(parts, Partition{Name: target.Name, Store: s})
			continue
		}
		s := redisstore.Open(target, redisstore.Options{Timeouts: timeouts, TLS: o.tls, Warn: warnOf(target.Name)})
		parts, made = append(parts, Partition{Name: target.Name, Store: s}), append(made, s)
	}
	return parts, made, nil
}

// checkHashTag refuses a tag with a brace of its own: Redis ends the tag at the first
// closing one, and an empty tag is none.
func checkHashTag(partition, tag string) error {
	if strings.ContainsAny(tag, "{}") {
		return fmt.Errorf("ratelimit: partition %q: hash tag %q: want it without braces", partition, tag)
	}
	return nil
}
