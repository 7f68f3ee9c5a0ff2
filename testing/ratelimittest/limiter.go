package ratelimittest

// This file makes a limiter for a test.

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"

	"github.com/VictoriaMetrics/metrics"

	"github.com/hanzoai/limiters/ratelimit"
)

// A TB is what the kit needs of a testing.TB. nil stands for none, in an example
// or a program: a failure then panics, and nothing is closed at the end.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	Cleanup(f func())
}

// NewLimiter returns a limiter on the clock that is closed when the test ends. Its
// ticks run inside [Clock.Advance]. Unless options say otherwise it has a new
// [Store] of its own, and keeps its log and metrics to itself; Config.RedisURLs is
// not used. A configuration that is not valid fails the test.
//
// A test that wants a look at the store, or two limiters on one, gives [WithStore].
func NewLimiter(t TB, clock *Clock, cfg ratelimit.Config, opts ...ratelimit.Option) *ratelimit.Limiter {
	if t != nil {
		t.Helper()
	}
	if clock == nil {
		fail(t, "ratelimittest: NewLimiter without a clock")
		return nil
	}
	return newLimiter(t, clock, NewStore(clock), cfg, opts)
}

// WithStore has a limiter use the stores, one partition each, instead of Redis. The
// partitions' names follow from the order.
func WithStore(stores ...*Store) ratelimit.Option {
	partitions := make([]ratelimit.Partition, len(stores))
	for i, s := range stores {
		partitions[i] = ratelimit.Partition{Name: "memory-" + strconv.Itoa(i), Store: s}
	}
	return ratelimit.WithPartitions(partitions...)
}

// newLimiter makes a limiter; clock nil is its ordinary one.
func newLimiter(t TB, clock ratelimit.Clock, s *Store, cfg ratelimit.Config, opts []ratelimit.Option) *ratelimit.Limiter {
	if t != nil {
		t.Helper()
	}
	all := append([]ratelimit.Option{
		ratelimit.WithClock(clock), ratelimit.WithMetricsSet(metrics.NewSet()),
		ratelimit.WithLogger(slog.New(slog.DiscardHandler)), WithStore(s),
	}, opts...)
	l, err := ratelimit.New(cfg, all...)
	if err != nil {
		fail(t, "ratelimittest: %v", err)
		return nil
	}
	if t != nil {
		t.Cleanup(func() { closeNow(l) })
	}
	return l
}

// closeNow ends a limiter without waiting for anything. What it could not deliver is
// nobody's loss any more.
func closeNow(l *ratelimit.Limiter) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	l.Close(ended)
}

// fail ends the test, or panics where there is none.
func fail(t TB, format string, args ...any) {
	if t == nil {
		panic(fmt.Sprintf(format, args...))
	}
	t.Helper()
	t.Fatalf(format, args...)
}
