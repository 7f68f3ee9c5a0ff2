package goredis

import (
	"context"
	"errors"
	"maps"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/hanzoai/limiters/ratelimit/overrides"
)

func TestOverridesKey(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := startServer(t).client(t)
	s := OverridesKey(client, "limits")
	expect := func(when string, want map[string]uint64, sentinel error) {
		t.Helper()
		got, err := s.Load(ctx)
		if !errors.Is(err, sentinel) || sentinel == nil && err != nil || !maps.Equal(got, want) {
			t.Errorf("%s: %v, %v, want %v, %v", when, got, err, want, sentinel)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	expect("no key", nil, overrides.ErrAbsent)
	must(client.Set(ctx, "limits", `{"a":18446744073709551615}`, 0).Err())
	expect("a key", map[string]uint64{"a": 1<<64 - 1}, nil)
	must(client.Set(ctx, "limits", `{"a":1.5}`, 0).Err())
	expect("malformed", nil, overrides.ErrMalformed)
	must(client.Del(ctx, "limits").Err())
	must(client.LPush(ctx, "limits", "x").Err())
	expect("a list", nil, overrides.ErrMalformed)
	closed := redis.NewClient(&redis.Options{})
	must(closed.Close())
	if _, err := OverridesKey(closed, "limits").Load(ctx); err == nil || errors.Is(err, overrides.ErrAbsent) || errors.Is(err, overrides.ErrMalformed) {
		t.Errorf("a closed client: %v, want unreachable", err)
	}
}
