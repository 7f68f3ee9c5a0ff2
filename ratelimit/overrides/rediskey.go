package overrides

// This file is the Redis source.

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gomodule/redigo/redis"

	"github.com/hanzoai/limiters/internal/scriptcall"
)

// RedisKey returns the source that is a Redis string with the JSON object that
// [Parse] reads. A key that does not exist, or holds the empty string, is absent.
//
// The pool stays the caller's; its connections should have dial and read timeouts
// beside ctx. A Redis user needs +getrange on the key, and nothing else.
//
// Keep the key where it is not evicted: without a TTL, and on a server whose
// maxmemory-policy evicts nothing or only keys that have one.
func RedisKey(pool *redis.Pool, key string) Source {
	return SourceFunc(func(ctx context.Context) (map[string]uint64, error) {
		conn, err := pool.GetContext(ctx)
		if err != nil {
			return nil, fmt.Errorf("overrides: %w", safe(err))
		}
		defer func() { _ = conn.Close() }()
		// GETRANGE bounds what is sent; GET would send a value of any size.
		text, err := redis.Bytes(redis.DoContext(conn, ctx, "GETRANGE", key, 0, MaxBytes))
		return FromRedis(key, text, err)
	})
}

// FromRedis is what a source on another Redis client makes of the answer to
// GETRANGE key 0 [MaxBytes]: the overrides, or the error of the right kind.
func FromRedis(key string, text []byte, err error) (map[string]uint64, error) {
	err = safe(err)
	switch {
	case err != nil && isWrongType(err):
		return nil, malformed("key %s: %v", shown(key), err)
	case err != nil:
		return nil, fmt.Errorf("overrides: key %s: %w", shown(key), err)
	case len(text) == 0:
		return nil, fmt.Errorf("%w: key %s", ErrAbsent, shown(key))
	}
	parsed, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("key %s: %w", shown(key), err)
	}
	return parsed, nil
}

// isWrongType reports that a key holds something else than a string.
func isWrongType(err error) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		if strings.HasPrefix(err.Error(), "WRONGTYPE ") {
			return true
		}
	}
	return false
}

// safe is an error without what a server quoted in it: one that does not know a command
// repeats its arguments, a password among them.
func safe(err error) error {
	var text string
	var redigo redis.Error
	var other interface { // go-redis'
		error
		RedisError()
	}
	switch {
	case errors.As(err, &redigo):
		text = string(redigo)
	case errors.As(err, &other):
		text = other.Error()
	default:
		return err
	}
	if said := scriptcall.Shown(text); said != text {
		return redis.Error(said)
	}
	return err
}
