// This file asks the fleet on real servers: what is granted is exact, and through a network
// that loses, delays and cuts it is never more.

package integration

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/gomodule/redigo/redis"

	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/testing/integration/faultproxy"
)

// monthly counts from one month's beginning to the next, so that no boundary comes up.
func monthly(c *ratelimit.Config) {
	c.Window, c.WindowCalendar, c.WindowInterval = ratelimit.WindowFixed, ratelimit.CalendarMonth, 0
	c.GlobalThreshold, c.Inclusive = 50, true
}

// Twenty limiters, eight callers each, one key, a threshold of 50: 50 are granted.
func TestTwentyLimitersGrantExactlyTheLimit(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	var granted atomic.Int64
	var callers sync.WaitGroup
	for range 20 {
		n := s.looping(monthly)
		for range 8 {
			callers.Go(func() {
				for range 4 {
					d, err := n.CheckFleet(context.Background(), "login", 1)
					if err != nil {
						t.Error(err)
					} else if d.Allowed() {
						granted.Add(1)
					}
				}
			})
		}
	}
	callers.Wait()
	if granted.Load() != 50 {
		t.Errorf("%d granted, want 50", granted.Load())
	}
	if sum := s.sum(0, "login"); sum != 50 {
		t.Errorf("the server holds %d, want 50", sum)
	}
}

// Replies that come late, cut or not at all: calls that returned no ErrNotFleet were granted
// no more than the limit, and the server holds what was counted less what was given back.
func TestCallsThroughABadNetworkAreGrantedNoMore(t *testing.T) {
	t.Parallel()
	const threshold, readTimeout = 400, 60 * time.Millisecond
	b := newBackend(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	actions := rand.New(rand.NewPCG(seed, 1)) // of the proxy, which calls one hook at a time
	faulty := func(faultproxy.Request) faultproxy.Action {
		switch actions.IntN(12) {
		case 0:
			return faultproxy.CutBefore
		case 1:
			return faultproxy.CutAfter
		case 2:
			return faultproxy.CutReply
		case 3:
			return faultproxy.Twice
		case 4:
			return faultproxy.Delay(time.Duration(actions.Int64N(int64(3 * readTimeout))))
		case 5:
			return faultproxy.Hold(time.Duration(actions.Int64N(int64(3 * readTimeout))))
		}
		return faultproxy.Pass
	}
	var limiters []*ratelimit.Limiter
	for range 6 {
		cfg := ratelimit.DefaultConfig()
		monthly(&cfg)
		cfg.GlobalThreshold = threshold
		cfg.RedisURLs, cfg.RedisKeyPrefix = []string{"redis://" + b.proxy.Addr()}, "bad"
		cfg.TickInterval, cfg.GlobalReadTimeout, cfg.GlobalWriteTimeout = 50*time.Millisecond, readTimeout, readTimeout
		l, err := ratelimit.New(cfg, ratelimit.WithMetricsSet(metrics.NewSet()), ratelimit.WithLogger(slog.New(slog.DiscardHandler)))
		if err != nil {
			t.Fatal(err)
		}
		limiters = append(limiters, l)
	}
	b.proxy.Handle(faulty)
	var granted, local, left, perhaps atomic.Uint64 // units
	var callers sync.WaitGroup
	for i, l := range limiters {
		for j := range 8 {
			callers.Go(func() {
				rng := rand.New(rand.NewPCG(seed, uint64(2+8*i+j)))
				for range 60 {
					ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rng.Int64N(int64(2*readTimeout))))
					n := 1 + rng.Uint64N(3)
					d, err := l.CheckFleet(ctx, "login", n)
					switch {
					case errors.Is(err, context.DeadlineExceeded):
						left.Add(n)
					case errors.Is(err, ratelimit.ErrNotFleet) && d.Allowed():
						local.Add(n)
					case err != nil && !errors.Is(err, ratelimit.ErrNotFleet):
						t.Error(err)
					case err == nil && d.Allowed():
						granted.Add(n)
					}
					cancel()
				}
			})
		}
	}
	callers.Wait()
	b.proxy.Handle(nil)
	var counted, taken uint64
	for _, l := range limiters {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		if err := l.Close(ctx); err != nil {
			t.Error(err)
		}
		cancel()
		s := l.Stats()
		if s.Undelivered != 0 || s.Returned.Waiting != 0 || s.Returned.Unknown != 0 || s.Dropped.Stale+s.Dropped.Closed+s.Dropped.Overflow+s.Dropped.Poisoned != 0 {
			t.Errorf("after Close: %+v", s)
		}
		counted, taken = counted+s.Counted, taken+s.Returned.Taken
		perhaps.Add(s.Dropped.Unknown)
	}
	b.proxy.Settle()
	names, err := redis.Strings(b.do(t, "KEYS", "bad:login:*"), nil)
	if err != nil || len(names) != 1 {
		t.Fatalf("counters %v, %v", names, err)
	}
	held, err := redis.Uint64(b.do(t, "GET", names[0]), nil)
	if err != nil {
		t.Fatal(err)
	}
	if held > counted-taken || held < counted-taken-perhaps.Load() {
		t.Errorf("the server holds %d; counted are %d, taken back %d, unknown %d", held, counted, taken, perhaps.Load())
	}
	if got := granted.Load() + local.Load(); counted-taken-perhaps.Load() > got || counted < got {
		t.Errorf("callers were granted %d and counted %d themselves; the limiters counted %d, taken back %d, unknown %d",
			granted.Load(), local.Load(), counted, taken, perhaps.Load())
	}
	if granted.Load() > threshold {
		t.Errorf("%d granted of %d", granted.Load(), threshold)
	}
	t.Logf("%d granted, %d counted by nodes, %d left; %d taken back, %d unknown", granted.Load(), local.Load(), left.Load(), taken, perhaps.Load())
}

// A server that hangs: callers are answered by their node within the read timeout.
func TestAServerThatHangsIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	cfg := ratelimit.DefaultConfig()
	monthly(&cfg)
	cfg.RedisURLs, cfg.RedisKeyPrefix, cfg.GlobalReadTimeout = []string{"redis://" + b.proxy.Addr()}, "hangs", 300*time.Millisecond
	l, err := ratelimit.New(cfg, ratelimit.WithMetricsSet(metrics.NewSet()), ratelimit.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		_ = l.Close(ctx) // what the server does not take is lost
	}()
	if err := l.Ping(context.Background()); err != nil {
		t.Fatal(err)
	}
	b.proxy.Handle(func(faultproxy.Request) faultproxy.Action { return faultproxy.Hang })
	var callers sync.WaitGroup
	for range 100 {
		callers.Go(func() {
			began := time.Now()
			d, err := l.CheckFleet(context.Background(), "login", 0)
			if !errors.Is(err, ratelimit.ErrNotFleet) || !d.Allowed() {
				t.Errorf("%v, %v", d.Verdict(), err)
			}
			if took := time.Since(began); took > cfg.GlobalReadTimeout+closeSlack {
				t.Errorf("took %v", took)
			}
		})
	}
	callers.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := l.Ping(ctx); err == nil {
		t.Error("Ping of a server that hangs: nil")
	}
}
