package goredis

// This file reads a limiter's overrides through a go-redis client.

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/hanzoai/limiters/ratelimit/overrides"
)

// OverridesKey returns the source that is a Redis string with a JSON object, as
// [overrides.RedisKey] does for redigo. The client may be any, and stays the
// caller's; its timeouts bound a Load.
func OverridesKey(client redis.UniversalClient, key string) overrides.Source {
	return overrides.SourceFunc(func(ctx context.Context) (map[string]uint64, error) {
		text, err := client.GetRange(ctx, key, 0, overrides.MaxBytes).Bytes()
		return overrides.FromRedis(key, text, err)
	})
}
