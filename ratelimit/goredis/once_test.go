package goredis

// This file tests that a unit counts once, whatever a connection does and however
// the client would like to retry.

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hanzoai/limiters/internal/clock"
	"github.com/hanzoai/limiters/ratelimit"
)

// A breaker makes connections that lose answers: while it is armed, a call of the
// script reaches the server and is executed, and then its connection is reset.
type breaker struct {
	mu     sync.Mutex
	armed  int // guarded by mu; how many answers are still to be lost
	broken int // guarded by mu; how many were
}

func (b *breaker) arm(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.armed = n
}

// lost returns how many answers were lost.
func (b *breaker) lost() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.broken
}

// take reports whether an answer is to be lost.
func (b *breaker) take() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.armed == 0 {
		return false
	}
	b.armed--
	b.broken++
	return true
}

func (b *breaker) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &brittle{Conn: c, breaker: b}, nil
}

// A brittle is a connection of a breaker.
type brittle struct {
	net.Conn
	breaker *breaker
	calling bool // a call of the script was written, and not answered
}

func (c *brittle) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("\r\nevalsha\r\n")) || bytes.Contains(p, []byte("\r\neval\r\n")) {
		c.calling = true
	}
	return c.Conn.Write(p)
}

func (c *brittle) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if !c.calling || err != nil || bytes.HasPrefix(p[:n], []byte("-")) {
		return n, err // not an answer of the script
	}
	c.calling = false
	if !c.breaker.take() {
		return n, nil
	}
	_ = c.Conn.Close()
	return 0, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
}

// newLimiter returns a limiter on the partitions that limits nothing, and whose
// time stands still: it syncs when it is told to.
func newLimiter(t *testing.T, prefix string, partitions []ratelimit.Partition) *ratelimit.Limiter {
	t.Helper()
	cfg := ratelimit.DefaultConfig()
	cfg.GlobalThreshold = 1 << 50
	cfg.RedisKeyPrefix = prefix
	lim, err := ratelimit.New(cfg,
		ratelimit.WithPartitions(partitions...), ratelimit.WithClock(clock.NewFake(time.Time{})), ratelimit.WithLogger(nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = lim.Close(ctx) // what is left is the test's to judge
	})
	return lim
}

// deliver syncs until everything counted has an answer.
func deliver(t *testing.T, lim *ratelimit.Limiter) {
	t.Helper()
	eventually(t, "delivering", func() error {
		err := lim.Sync(context.Background())
		if left := lim.Stats().Undelivered; left > 0 {
			return fmt.Errorf("%d units undelivered: %w", left, err)
		}
		return nil
	})
}

// counters returns the sums of all counters under prefix by entity.
func counters(t *testing.T, client redis.UniversalClient, prefix string) map[string]uint64 {
	t.Helper()
	ctx := context.Background()
	var mu sync.Mutex
	sums := map[string]uint64{}
	read := func(ctx context.Context, c *redis.Client) error {
		keys := c.Scan(ctx, 0, "*"+prefix+":*", 1000).Iterator()
		for keys.Next(ctx) {
			_, name, _ := strings.Cut(keys.Val(), prefix+":")
			entity, epoch, ok := strings.Cut(name, ":")
			if !ok || epoch == "seq" {
				continue // the window key, or a sequence key
			}
			n, err := c.Get(ctx, keys.Val()).Uint64()
			if err != nil {
				return fmt.Errorf("%s: %w", keys.Val(), err)
			}
			mu.Lock()
			sums[entity] += n
			mu.Unlock()
		}
		return keys.Err()
	}
	var err error
	if cluster, ok := client.(*redis.ClusterClient); ok {
		cluster.ReloadState(ctx)
		err = cluster.ForEachMaster(ctx, read)
	} else {
		err = read(ctx, client.(*redis.Client))
	}
	if err != nil {
		t.Fatal(err)
	}
	return sums
}

// checkLostAnswers counts while answers are lost, one after another or several at
// once, through a client that would retry on its own.
func checkLostAnswers(t *testing.T, client redis.UniversalClient, b *breaker, partitions int) {
	t.Helper()
	parts, err := Partitions(client, partitions)
	if err != nil {
		t.Fatal(err)
	}
	lim := newLimiter(t, "lost", parts)
	want := map[string]uint64{}
	for round := range 12 {
		for key := range 20 {
			name := fmt.Sprintf("key%d", key)
			lim.Check(name, uint64(round+1))
			want[name] += uint64(round + 1)
		}
		b.arm(round % 4)
		_ = lim.Sync(context.Background()) // what fails is sent again
	}
	b.arm(0)
	deliver(t, lim)
	if b.lost() < 10 {
		t.Errorf("only %d answers were lost", b.lost())
	}
	for name, got := range counters(t, client, "lost") {
		if got != want[name] {
			t.Errorf("%s: Redis holds %d, counted %d", name, got, want[name])
		}
		delete(want, name)
	}
	if len(want) > 0 {
		t.Errorf("not in Redis: %v", want)
	}
	s := lim.Stats()
	if s.Delivered != s.Counted || s.Dropped.Total() != 0 {
		t.Errorf("counted %d, delivered %d, dropped %+v", s.Counted, s.Delivered, s.Dropped)
	}
}

func TestALostAnswerCountsOnceThoughTheClientWouldRetry(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	for _, retries := range []int{-1, 0, 10} {
		t.Run(fmt.Sprintf("MaxRetries=%d", retries), func(t *testing.T) {
			var b breaker
			client := redis.NewClient(&redis.Options{
				Addr: server.addr, Dialer: b.dial, MaxRetries: retries, MinRetryBackoff: time.Millisecond,
			})
			t.Cleanup(func() { _ = client.Close() })
			if err := client.FlushAll(context.Background()).Err(); err != nil {
				t.Fatal(err)
			}
			checkLostAnswers(t, client, &b, 1)
		})
	}
}

func TestALostAnswerCountsOnceInACluster(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	var b breaker
	client := c.client(t, func(o *redis.ClusterOptions) {
		o.Dialer, o.MaxRetries, o.MaxRedirects, o.MinRetryBackoff = b.dial, 10, 10, time.Millisecond
	})
	checkLostAnswers(t, client, &b, 8)
}
