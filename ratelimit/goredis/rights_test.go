package goredis

// This file takes rights from a cluster's user: docs/redis.md lists what suffices.

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/ratelimit/store"
)

// rights are what a user of a single server needs, and clusterRights what a
// cluster's needs besides.
var (
	rights        = []string{"+evalsha", "+eval", "+get", "+set", "+incrby", "+pexpire", "+mget", "+exists", "+time"}
	clusterRights = []string{"+cluster|slots", "+asking"}
)

func TestTheLeastRightsInACluster(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	setUser := func(pattern string, rights ...string) {
		t.Helper()
		for _, n := range c.nodes {
			args := []any{"ACL", "SETUSER", "limiter", "reset", "on", ">pw", "~" + pattern}
			for _, right := range rights {
				args = append(args, right)
			}
			n.must(t, args...)
		}
	}
	open := func() (*ratelimit.Limiter, redis.UniversalClient) {
		t.Helper()
		client := c.client(t, func(o *redis.ClusterOptions) { o.Username, o.Password = "limiter", "pw" })
		parts, err := Partitions(client, 4)
		if err != nil {
			t.Fatal(err)
		}
		return newLimiter(t, "p", parts), client
	}
	all := slices.Concat(rights, clusterRights)
	setUser("{*}p:*", all...)
	lim, _ := open()
	for i := range 100 {
		lim.Check(strings.Repeat("x", i), 1)
	}
	if err := lim.Sync(context.Background()); err != nil {
		t.Errorf("with all rights: %v", err)
	}
	if s := lim.Stats(); s.Delivered != 100 {
		t.Errorf("delivered %d of 100 units", s.Delivered)
	}
	for _, right := range []string{"+cluster|slots", "+evalsha", "+get", "+set"} {
		setUser("{*}p:*", slices.DeleteFunc(slices.Clone(all), func(r string) bool { return r == right })...)
		lim, _ := open()
		lim.Check("a", 1)
		err := lim.Sync(context.Background())
		var failed *store.Error
		if !errors.As(err, &failed) || failed.Cause != store.CausePermission || lim.Stats().Undelivered != 1 {
			t.Errorf("without %s: %v, want a permission error", right, err)
		}
	}
	setUser("p:*", all...)
	lim, _ = open()
	lim.Check("a", 1)
	err := lim.Sync(context.Background())
	var failed *store.Error
	if !errors.As(err, &failed) || failed.Fate != store.Denied || failed.Cause != store.CausePermission {
		t.Errorf("a pattern without the hash tag: %v, want a denial", err)
	}
}

func TestTheRightsAreDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/redis.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, right := range slices.Concat(rights, clusterRights) {
		if !strings.Contains(string(text), right) {
			t.Errorf("docs/redis.md does not list %s", right)
		}
	}
}
