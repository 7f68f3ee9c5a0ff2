package goredis

// This file changes a server's password under a fleet that counts: the recipe of
// docs/redis.md with go-redis' credentials provider.

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hanzoai/limiters/ratelimit"
)

func TestCredentialsThatRotate(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := startServer(t)
	admin := server.client(t)
	var current atomic.Int64
	var asked atomic.Int64
	password := func(n int64) string { return fmt.Sprint("token-", n) }
	rotate := func(n int64) {
		t.Helper()
		if err := admin.Do(ctx, "ACL", "SETUSER", "app", "reset", "on", ">"+password(n), "~rotating:*", "+@all").Err(); err != nil {
			t.Error(err)
		}
		if err := admin.Do(ctx, "CLIENT", "KILL", "USER", "app").Err(); err != nil {
			t.Error(err)
		}
		time.Sleep(50 * time.Millisecond) // until then the provider gives what the server refuses
		current.Store(n)
	}
	rotate(0)
	f := startFleet(t, "rotating", 2, func() []ratelimit.Partition {
		client := redis.NewClient(&redis.Options{
			Addr: server.addr, DialTimeout: time.Second, DialerRetries: 1,
			ReadTimeout: 100 * time.Millisecond, WriteTimeout: 100 * time.Millisecond,
			CredentialsProviderContext: func(context.Context) (username, secret string, err error) {
				asked.Add(1)
				return "app", password(current.Load()), nil
			},
		})
		t.Cleanup(func() { _ = client.Close() })
		s, err := New(client)
		if err != nil {
			t.Fatal(err)
		}
		return []ratelimit.Partition{{Name: "main", Store: s}}
	})
	for n := range int64(4) {
		time.Sleep(1500 * time.Millisecond)
		rotate(n + 1)
	}
	f.awaitHeard(time.Now(), nil)
	if l := f.finish(admin); l.held != l.counted || l.unknown != 0 {
		t.Errorf("%+v, want every unit held", l)
	}
	if asked.Load() < 8 {
		t.Errorf("a token was asked for %d times: nothing was tested", asked.Load())
	}
}
