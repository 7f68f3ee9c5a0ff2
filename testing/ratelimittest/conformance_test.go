package ratelimittest_test

// This file runs the conformance suite on the library's own stores.

import (
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/gomodule/redigo/redis"

	"github.com/hanzoai/limiters/internal/redisstore"
	"github.com/hanzoai/limiters/ratelimit/store"
	"github.com/hanzoai/limiters/testing/ratelimittest"
)

func TestMemoryStoreConforms(t *testing.T) {
	t.Parallel()
	ratelimittest.TestStore(t, func(*testing.T) (store.Store, func(time.Duration)) {
		c := ratelimittest.NewClock()
		return ratelimittest.NewStore(c), c.Advance
	})
}

func TestLinkConforms(t *testing.T) {
	t.Parallel()
	c := ratelimittest.NewClock()
	s := ratelimittest.NewStore(c)
	ratelimittest.TestStore(t, func(*testing.T) (store.Store, func(time.Duration)) { return s.Link(), c.Advance })
}

func TestRedisStoreConforms(t *testing.T) {
	t.Parallel()
	ratelimittest.TestStore(t, func(t *testing.T) (store.Store, func(time.Duration)) {
		server := miniredis.RunT(t)
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		server.SetTime(now)
		pool := &redis.Pool{Dial: func() (redis.Conn, error) {
			return redis.Dial("tcp", server.Addr(), redis.DialWriteTimeout(10*time.Second))
		}}
		t.Cleanup(func() { _ = pool.Close() })
		s := redisstore.New(pool, redisstore.Timeouts{Reply: 10 * time.Second, Write: 10 * time.Second})
		return s, func(d time.Duration) {
			now = now.Add(d)
			server.SetTime(now)
			server.FastForward(d)
		}
	})
}
