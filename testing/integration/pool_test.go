// This file reaches a server in each of the ways that a configuration can name, and
// through a pool of the caller's.

package integration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/gomodule/redigo/redis"

	"github.com/hanzoai/limiters/internal/clock"
	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/ratelimit/store"
	"github.com/hanzoai/limiters/testing/redistest"
)

// limiterAt returns a limiter under prefix whose time stands still, so that it syncs
// when it is told to. url is "" if the options name the partitions.
func limiterAt(t *testing.T, url, prefix string, opts ...ratelimit.Option) *ratelimit.Limiter {
	t.Helper()
	cfg := ratelimit.DefaultConfig()
	cfg.RedisKeyPrefix = prefix
	cfg.ConnectTimeout, cfg.GlobalReadTimeout, cfg.GlobalWriteTimeout = 10*time.Second, 10*time.Second, 10*time.Second
	if url != "" {
		cfg.RedisURLs = []string{url}
	}
	opts = append([]ratelimit.Option{
		ratelimit.WithClock(clock.NewFake(time.Time{})), ratelimit.WithLogger(nil), ratelimit.WithMetricsSet(metrics.NewSet()),
	}, opts...)
	lim, err := ratelimit.New(cfg, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = lim.Close(ctx) // what is left is the test's to judge
	})
	return lim
}

// countFive checks a key for 5 units and syncs.
func countFive(lim *ratelimit.Limiter) error {
	lim.Check("team", 5)
	return lim.Sync(context.Background())
}

// expectSynced counts 5 units and checks that the server holds them, as conn sees it.
func expectSynced(t *testing.T, lim *ratelimit.Limiter, conn redis.Conn, prefix string) {
	t.Helper()
	if err := countFive(lim); err != nil {
		t.Fatal(err)
	}
	if s := lim.Stats(); s.Delivered != s.Counted || s.Counted == 0 {
		t.Errorf("counted %d, delivered %d", s.Counted, s.Delivered)
	}
	keys, err := redis.Strings(conn.Do("KEYS", prefix+":team:*"))
	if err != nil || len(keys) != 1 {
		t.Fatalf("counters %q, %v, want one", keys, err)
	}
	if n, err := redis.Uint64(conn.Do("GET", keys[0])); err != nil || n != lim.Stats().Counted {
		t.Errorf("the server holds %d, %v, counted %d", n, err, lim.Stats().Counted)
	}
}

// expectSyncError counts 5 units and checks how the sync fails.
func expectSyncError(t *testing.T, what string, lim *ratelimit.Limiter, fate store.Fate, cause string) {
	t.Helper()
	err := countFive(lim)
	var failed *ratelimit.PartitionError
	if !errors.As(err, &failed) {
		t.Errorf("%s: %v, want a *ratelimit.PartitionError", what, err)
		return
	}
	expectError(t, what, failed.Err, fate, cause)
	if s := lim.Stats(); s.Undelivered != s.Counted || s.Partitions[0].Up {
		t.Errorf("%s: counted %d, undelivered %d, partition up: %v", what, s.Counted, s.Undelivered, s.Partitions[0].Up)
	}
}

func TestADatabaseNumber(t *testing.T) {
	t.Parallel()
	s := realServer(t, "--databases 8")
	conn := s.Conn()
	if _, err := conn.Do("SELECT", 5); err != nil {
		t.Fatal(err)
	}
	expectSynced(t, limiterAt(t, "redis://"+s.Addr()+"/5", "p"), conn, "p")
	if n, err := redis.Int(s.Conn().Do("DBSIZE")); err != nil || n != 0 {
		t.Errorf("database 0 holds %d keys, %v", n, err)
	}
	expectSyncError(t, "a database that does not exist", limiterAt(t, "redis://"+s.Addr()+"/8", "p"), store.NotSent, store.CauseOther)
}

// processServer starts a program on PATH with these arguments, for what a container
// does not share: files. It skips the test if there is none, or none that can do
// this.
func processServer(t *testing.T, args ...string) *redistest.Server {
	t.Helper()
	s, err := redistest.TryStart(t, redistest.Only(redistest.Process), redistest.WithArgs(args...))
	if err != nil {
		t.Log(err)
		skip(t, "needs redis-server or valkey-server on PATH, with TLS and unix sockets")
	}
	return s
}

func TestAUnixSocket(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "s") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "redis.sock")
	s := processServer(t, "--unixsocket "+path, "--user bob on >p,w ~p:* +@all")
	conn := s.Conn()
	lim := limiterAt(t, "unix://"+path, "p")
	expectSynced(t, lim, conn, "p")
	if name := lim.Stats().Partitions[0].Name; name != path+"/0" {
		t.Errorf("the partition is called %q", name)
	}
	if _, err := conn.Do("SELECT", 2); err != nil {
		t.Fatal(err)
	}
	expectSynced(t, limiterAt(t, "unix://bob:p%2Cw@"+path+"?db=2", "p"), conn, "p")
	s.Kill()
	expectSyncError(t, "a socket that nobody listens on", limiterAt(t, "unix://"+path, "p"), store.NotSent, store.CauseUnreachable)
}

func TestAPoolOfTheCallers(t *testing.T) {
	t.Parallel()
	s := realServer(t, "--databases 8")
	dials := 0
	pool := &redis.Pool{MaxIdle: 1, MaxActive: 1, Dial: func() (redis.Conn, error) {
		dials++
		return redis.Dial("tcp", s.Addr(), redis.DialDatabase(3), redis.DialClientName("caller"),
			redis.DialConnectTimeout(10*time.Second), redis.DialReadTimeout(10*time.Second), redis.DialWriteTimeout(10*time.Second))
	}}
	t.Cleanup(func() { _ = pool.Close() })
	prefix := "p"
	lim := limiterAt(t, "", prefix, ratelimit.WithPools(ratelimit.Pool{Name: "main", Pool: pool}))
	conn := s.Conn()
	if _, err := conn.Do("SELECT", 3); err != nil {
		t.Fatal(err)
	}
	expectSynced(t, lim, conn, prefix)
	expectSynced(t, lim, conn, prefix)
	if dials != 1 {
		t.Errorf("%d connections for two ticks, want one that goes back to the pool", dials)
	}
	if lim.Stats().Partitions[0].Name != "main" {
		t.Errorf("the partition is called %q", lim.Stats().Partitions[0].Name)
	}

	held := pool.Get() // the pool's only connection
	if err := countFive(lim); err == nil || !strings.Contains(err.Error(), store.CausePoolExhausted) {
		t.Errorf("an exhausted pool: %v", err)
	}
	_ = held.Close()
	expectSynced(t, lim, conn, prefix)

	if err := lim.Close(context.Background()); err != nil {
		t.Error(err)
	}
	mine := pool.Get()
	defer func() { _ = mine.Close() }()
	if name, err := redis.String(mine.Do("CLIENT", "GETNAME")); err != nil || name != "caller" {
		t.Errorf("the pool after Close: %q, %v, want it open", name, err)
	}
}

// Two pools with hash tags are two partitions, each with keys of its own.
func TestPoolsWithHashTags(t *testing.T) {
	t.Parallel()
	s := realServer(t, "--databases 2")
	pool := func() *redis.Pool {
		p := &redis.Pool{Dial: func() (redis.Conn, error) {
			return redis.Dial("tcp", s.Addr(), redis.DialReadTimeout(10*time.Second), redis.DialWriteTimeout(10*time.Second))
		}}
		t.Cleanup(func() { _ = p.Close() })
		return p
	}
	lim := limiterAt(t, "", "p", ratelimit.WithPools(
		ratelimit.Pool{Name: "one", Pool: pool(), HashTag: "1"}, ratelimit.Pool{Name: "two", Pool: pool(), HashTag: "2"},
	))
	for i := range 100 {
		lim.Check(fmt.Sprint("team", i), 1)
	}
	if err := lim.Sync(context.Background()); err != nil {
		t.Fatal(err)
	}
	counters := 0
	for _, tag := range []string{"{1}p", "{2}p"} {
		keys, err := redis.Strings(s.Conn().Do("KEYS", tag+":team*"))
		if err != nil || len(keys) < 20 {
			t.Errorf("%d counters begin with %s, %v, want about half of 100", len(keys), tag, err)
		}
		counters += len(keys)
	}
	if counters != 100 {
		t.Errorf("%d counters with tags, want 100", counters)
	}
}
