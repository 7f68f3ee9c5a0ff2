package ratelimit

// This file measures that a decision costs the same while Redis hangs.

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/hanzoai/limiters/internal/memstore"
	"github.com/hanzoai/limiters/ratelimit/store"
)

// A hungStore answers nothing within the usual timeout.
type hungStore struct{}

func (hungStore) Apply(ctx context.Context, _ *store.Batch, _ *store.Reply) error {
	timer := time.NewTimer(100 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		return errTimeout
	case <-ctx.Done():
		return &store.Error{Fate: store.Unknown, Step: store.StepReply, Cause: store.CauseCanceled, Err: ctx.Err()}
	}
}

// maxHungRatio is what a decision may cost with Redis hung, beside one with Redis
// healthy.
const maxHungRatio = 1.1

// BenchmarkCheckRedisHung checks the same keys by two limiters in turn, one of
// which has a store that hangs, and reports the median ratio of their times. It
// fails if that is above 1.1, once there were enough turns to tell.
func BenchmarkCheckRedisHung(b *testing.B) {
	const keys, turn = 10_000, 50_000
	open := func(s store.Store) *Limiter {
		return benchLimiter(b, nil, WithPartitions(Partition{Name: "one", Store: s}))
	}
	order := uniform(benchKeys(keys))
	healthy, hung := open(memstore.New(nil)), open(hungStore{})
	next := 0
	spend := func(l *Limiter) time.Duration {
		began := time.Now()
		for i := range turn {
			l.Check(order[(next+i)%keys], 1)
		}
		return time.Since(began)
	}
	for range 2 { // what is met for the first time costs more
		spend(healthy)
		spend(hung)
	}
	var ratios []float64
	var sum time.Duration
	for b.Loop() {
		var took [2]time.Duration
		for i := range took { // each goes first in every other turn
			if (i+len(ratios))%2 == 0 {
				took[0] = spend(healthy)
			} else {
				took[1] = spend(hung)
			}
		}
		ratios = append(ratios, took[1].Seconds()/took[0].Seconds())
		sum += took[1]
		next += turn
	}
	slices.Sort(ratios)
	ratio := ratios[len(ratios)/2]
	b.ReportMetric(ratio, "hung/healthy")
	b.ReportMetric(float64(sum.Nanoseconds())/float64(turn*len(ratios)), "ns/check")
	b.ReportMetric(0, "ns/op")
	if len(ratios) >= 20 && ratio > maxHungRatio {
		b.Errorf("a decision with Redis hung takes %.2f times that with Redis healthy, at most %.1f is allowed", ratio, maxHungRatio)
	}
}
