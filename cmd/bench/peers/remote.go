package main

// This file is the contestant that asks a Redis about every request.

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"

	"github.com/hanzoai/limiters/cmd/bench/localredis"
)

// openRemote returns redis_rate on the Redis at an address, or on a server that it
// starts if there is none, and that server's address. Call stop at the end.
func openRemote(address string) (c contestant, at string, stop func(), err error) {
	stop = func() {}
	if address == "" {
		server, err := localredis.Start()
		if err != nil {
			return c, "", stop, err
		}
		address = server.Address()
		stop = func() { _ = server.Stop() }
	}
	client := redis.NewClient(&redis.Options{Addr: address})
	if err := client.Ping(context.Background()).Err(); err != nil {
		client.Close()
		stop()
		return c, "", func() {}, fmt.Errorf("no Redis at %s: %w", address, err)
	}
	open := func(int) (*instance, error) { return openRedisRate(client), nil }
	end := stop
	return contestant{name: "redis_rate", remote: true, open: open}, address, func() {
		client.Close()
		end()
	}, nil
}

// openRedisRate opens redis_rate; what it leaves behind expires within a second.
func openRedisRate(client *redis.Client) *instance {
	l := redis_rate.NewLimiter(client)
	limit := redis_rate.PerSecond(plenty)
	return &instance{check: func(key string) bool {
		r, err := l.Allow(context.Background(), key, limit)
		return err == nil && r.Allowed > 0
	}}
}

// errRefused is an instance that refuses although nothing is limited.
var errRefused = errors.New("it refused, though nothing is limited")
