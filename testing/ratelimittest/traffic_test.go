package ratelimittest_test

// This file tests loads, the way traffic is divided, and the recorder, on a target
// that remembers what it is offered.

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/hanzoai/limiters/testing/ratelimittest"
)

// A target remembers offers, and allows those that allow says.
type target struct {
	nodes   int
	now     time.Duration
	at      []time.Duration
	byNode  []int
	byKey   map[string]int
	allowed func(n int) bool // of the n-th offer, from 0
}

func newTarget(nodes int) *target {
	return &target{nodes: nodes, byNode: make([]int, nodes), byKey: map[string]int{}, allowed: func(int) bool { return true }}
}

func (g *target) Len() int                             { return g.nodes }
func (g *target) Limit(string) (uint64, time.Duration) { return 10, time.Minute }
func (g *target) Advance(d time.Duration)              { g.now += d }

func (g *target) Offer(node int, key string, _ uint64) bool {
	g.at = append(g.at, g.now)
	g.byNode[node]++
	g.byKey[key]++
	return g.allowed(len(g.at) - 1)
}

func TestLoads(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		load ratelimittest.Load
		want []float64 // at 0, 10, 20 … seconds
	}{
		{"Steady", ratelimittest.Steady(3), []float64{3, 3, 3, 3, 3}},
		{"OnOff", ratelimittest.OnOff(3, 20*time.Second, 10*time.Second), []float64{3, 3, 0, 3, 3}},
		{"Spikes", ratelimittest.Spikes(1, 5, 30*time.Second, 10*time.Second), []float64{5, 1, 1, 5, 1}},
		{"Burst", ratelimittest.Burst(4, 15*time.Second), []float64{4, 4, 0, 0, 0}},
		{"Jump", ratelimittest.Jump(1, 2, 20*time.Second), []float64{1, 1, 2, 2, 2}},
		{"Ramp", ratelimittest.Ramp(2, 8, 30*time.Second), []float64{2, 4, 6, 8, 8}},
	} {
		for i, want := range c.want {
			at := time.Duration(i) * 10 * time.Second
			if got := c.load(at); math.Abs(got-want) > 1e-9 {
				t.Errorf("%s at %v: %v, want %v", c.name, at, got, want)
			}
		}
	}
}

func TestTrafficIsOfferedWhenItIsDue(t *testing.T) {
	t.Parallel()
	g := newTarget(1)
	r := ratelimittest.Start(g, ratelimittest.Traffic{Load: ratelimittest.Steady(0.5), Step: time.Second, Units: 2})
	r.Advance(7500 * time.Millisecond)
	r.Advance(4500 * time.Millisecond)
	want := []time.Duration{3 * time.Second, 7500 * time.Millisecond, 11500 * time.Millisecond}
	if !slices.Equal(g.at, want) || r.Elapsed() != 12*time.Second {
		t.Errorf("2 units every 4 s were offered at %v until %v, want %v", g.at, r.Elapsed(), want)
	}
	if got := r.Report("key"); got.Offered != 6 || got.Admitted != 6 {
		t.Errorf("offered %d, admitted %d; want 6", got.Offered, got.Admitted)
	}
}

func TestTrafficIsDividedAsAsked(t *testing.T) {
	t.Parallel()
	keys := []string{"a", "b", "c", "d"}
	const n = 10_000
	offer := func(traffic ratelimittest.Traffic) *target {
		g := newTarget(4)
		traffic.Load, traffic.Keys, traffic.Step = ratelimittest.Steady(n), keys, time.Second
		ratelimittest.Start(g, traffic).Advance(time.Second)
		return g
	}
	near := func(what string, got, want int) {
		t.Helper()
		if got < want-300 || got > want+300 {
			t.Errorf("%s: %d of %d requests, want about %d", what, got, n, want)
		}
	}
	alike := offer(ratelimittest.Traffic{Seed: 1})
	for i, key := range keys {
		near("node of all alike", alike.byNode[i], n/4)
		near("key of all alike", alike.byKey[key], n/4)
	}
	skewed := offer(ratelimittest.Traffic{Skew: 0.7, Seed: 1})
	near("node 0 with a skew of 0.7", skewed.byNode[0], 7000)
	near("node 3 with a skew of 0.7", skewed.byNode[3], 1000)
	popular := offer(ratelimittest.Traffic{Zipf: 2, Seed: 1}) // 1 : 1/4 : 1/9 : 1/16
	near("the most popular key", popular.byKey["a"], 7024)
	near("the least popular key", popular.byKey["d"], 439)
	if again := offer(ratelimittest.Traffic{Zipf: 2, Seed: 1}); !slices.Equal(again.byNode, popular.byNode) {
		t.Errorf("the same seed reached nodes %v, then %v", popular.byNode, again.byNode)
	}
	if other := offer(ratelimittest.Traffic{Zipf: 2, Seed: 2}); slices.Equal(other.byNode, popular.byNode) {
		t.Errorf("another seed reached the same nodes %v", other.byNode)
	}
}

func TestRecorderJudgesByTheSlidingWindow(t *testing.T) {
	t.Parallel()
	r := ratelimittest.NewRecorder(time.Minute)
	const s = time.Second
	for _, row := range []struct {
		at      time.Duration
		units   uint64
		allowed bool
	}{
		{0, 4, true},
		{10 * s, 3, true},
		{30 * s, 2, false}, // 9 of 10 offered in the window: false
		{59 * s, 1, false}, // 10 of 10: not false
		{60 * s, 5, true},  // the first 4 have left: 8 in the window
		{69 * s, 1, true},  // 9: the worst window
		{71 * s, 1, true},
		{200 * s, 2, true},
	} {
		r.Record(row.at, "k", 10, row.units, row.allowed)
	}
	want := ratelimittest.Report{
		Offered: 19, Admitted: 16, Worst: 9, Mean: 2.0 * 60 / 80, FalseLimits: 1, Limited: 2, FirstLimit: 30 * s,
	}
	if got := r.Report("k"); got != want {
		t.Errorf("report %+v, want %+v", got, want)
	}
	if got := r.Report("other"); got != (ratelimittest.Report{}) {
		t.Errorf("report of an unknown key: %+v", got)
	}
}

// The mean leaves out the first two windows, if there are more.
func TestTheMeanIsOfTheSteadyPart(t *testing.T) {
	t.Parallel()
	g := newTarget(1)
	r := ratelimittest.Start(g, ratelimittest.Traffic{Load: ratelimittest.Jump(2, 1, 2*time.Minute), Step: time.Second})
	r.Advance(2 * time.Minute)
	if got := r.Report("key").Mean; got != 120 {
		t.Errorf("mean %v after two windows, want 120", got)
	}
	r.Advance(4 * time.Minute)
	if got := r.Report("key").Mean; got != 60 {
		t.Errorf("mean %v after six windows, want 60", got)
	}
}
