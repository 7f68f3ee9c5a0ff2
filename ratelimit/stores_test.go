package ratelimit

// This file tests where a limiter's partitions come from: URLs, pools, or stores.

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/VictoriaMetrics/metrics"
	"github.com/gomodule/redigo/redis"
	"github.com/google/go-cmp/cmp"

	"github.com/hanzoai/limiters/internal/clock"
	"github.com/hanzoai/limiters/internal/memstore"
	"github.com/hanzoai/limiters/internal/redisstore"
)

// opened makes a limiter on a fake clock and returns its partitions' names.
func opened(t *testing.T, urls []string, opts ...Option) (l *Limiter, names []string, err error) {
	t.Helper()
	cfg := DefaultConfig()
	cfg.RedisURLs = urls
	l, err = New(cfg, append([]Option{
		WithClock(clock.NewFake(start)), WithMetricsSet(metrics.NewSet()), WithLogger(slog.New(slog.DiscardHandler)),
	}, opts...)...)
	if err != nil {
		return nil, nil, err
	}
	t.Cleanup(func() { l.Close(context.Background()) })
	for _, p := range l.partitions {
		names = append(names, p.name)
	}
	return l, names, nil
}

func TestPartitionsFromURLs(t *testing.T) {
	t.Parallel()
	l, names, err := opened(t, []string{"redis://a.example:6380/2", "blue=rediss://user:secret@b.example", "unix:///run/redis.sock"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a.example:6380/2", "blue", "/run/redis.sock/0"}, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	for i, want := range []string{"*redisstore.Store", "*redisstore.Store", "*redisstore.Store"} {
		if got := fmt.Sprintf("%T", l.partitions[i].store); got != want {
			t.Errorf("partition %d has a %s, want a %s", i, got, want)
		}
	}
	if len(l.stores) != 3 {
		t.Errorf("%d stores to close, want the three that hold connections", len(l.stores))
	}
}

// A Redis that cannot be reached is no error: the limiter decides on its own.
func TestALimiterStartsWithoutItsRedis(t *testing.T) {
	t.Parallel()
	l, _, err := opened(t, []string{"redis://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if !l.Allow("a") {
			t.Error("limited")
		}
	}
	if s := l.Stats(); s.Counted != 5 || s.Partitions[0].Up {
		t.Errorf("%+v", s)
	}
	ended, end := context.WithCancel(context.Background())
	end()
	l.Close(ended)
}

func TestStoresThatCannotBe(t *testing.T) {
	t.Parallel()
	mem := memstore.New(nil)
	pool := &redis.Pool{}
	for _, c := range []struct {
		name string
		urls []string
		opts []Option
		want string
	}{
		{"none", nil, nil, "GLOBAL_RATE_LIMIT_REDIS_URLS"},
		{"a malformed URL", []string{"redis://u:secret@host:x"}, nil, "GLOBAL_RATE_LIMIT_REDIS_URLS"},
		{"one of several malformed", []string{"memory://", "http://u:secret@host"}, nil, "GLOBAL_RATE_LIMIT_REDIS_URLS"},
		{"the same twice", []string{"redis://a:6379", "redis://a:6379/0"}, nil, "a:6379"},
		{"stores of one name", nil, []Option{WithPartitions(Partition{Name: "p", Store: mem}, Partition{Name: "p", Store: mem})}, `"p"`},
		{"no store", nil, []Option{WithPartitions(Partition{Name: "p", Store: mem}, Partition{Name: "q"})}, `partition 1 ("q")`},
		{"no pool", nil, []Option{WithPools(Pool{Name: "p"})}, `pool 0 ("p")`},
		{"a hash tag in braces", nil, []Option{WithPartitions(Partition{Name: "p", Store: mem, HashTag: "{a}"})}, `"{a}"`},
		{"a hash tag that Redis takes for none", nil, []Option{WithPools(Pool{Name: "p", Pool: pool, HashTag: "}a"})}, `"}a"`},
		{"both", nil, []Option{WithPartitions(Partition{Name: "p", Store: mem}), WithPools(Pool{Name: "q", Pool: pool})}, "exclude each other"},
	} {
		_, _, err := opened(t, c.urls, c.opts...)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "ratelimit: ") {
			t.Errorf("%s: %v, want an error that says %q", c.name, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error shows a secret: %v", c.name, err)
		}
	}
}

// What the caller brings is the caller's: it wins over URLs, and is not closed.
func TestPoolsAndStoresOfTheCaller(t *testing.T) {
	t.Parallel()
	pool := &redis.Pool{Dial: func() (redis.Conn, error) { return nil, fmt.Errorf("no such place") }}
	defer pool.Close()
	l, names, err := opened(t, []string{"memory://"}, WithPools(Pool{Name: "mine", Pool: pool, HashTag: "t"}))
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := l.partitions[0].store.(*redisstore.Store); !ok || len(names) != 1 || names[0] != "mine" || len(l.stores) != 0 {
		t.Errorf("partitions %q on a %T, %d to close", names, l.partitions[0].store, len(l.stores))
	}
	if want := "{t}" + l.cfg.RedisKeyPrefix; l.partitions[0].prefix != want {
		t.Errorf("prefix %q, want %q", l.partitions[0].prefix, want)
	}
	mem := memstore.New(nil)
	l, names, err = opened(t, nil, WithPartitions(Partition{Name: "x", Store: mem}, Partition{Name: "y", Store: mem}))
	if err != nil || len(names) != 2 || len(l.stores) != 0 {
		t.Errorf("%q, %d to close, %v", names, len(l.stores), err)
	}
}

// The stores that New made are closed once, when no tick uses them any more.
func TestCloseClosesWhatNewMade(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(nil)
	made := &closer{}
	n.stores = append(n.stores, made)
	n.check("a", 1)
	n.ends(context.Background(), "healthy", nil)
	n.ends(context.Background(), "again", nil)
	if made.closed != 1 {
		t.Errorf("closed %d times, want once", made.closed)
	}
	if got := n.lines(); len(got) != 1 || !strings.Contains(got[0], "closing a store") {
		t.Errorf("the log says %q, want that closing failed", got)
	}
}

// A closer counts how often it is closed, which fails.
type closer struct{ closed int }

func (c *closer) Close() error {
	c.closed++
	return fmt.Errorf("it would not")
}
