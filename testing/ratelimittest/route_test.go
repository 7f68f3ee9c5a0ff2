package ratelimittest_test

// This file tests which nodes requests reach.

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hanzoai/limiters/testing/ratelimittest"
)

func TestRoutes(t *testing.T) {
	t.Parallel()
	const s = time.Second
	for _, c := range []struct {
		name  string
		route ratelimittest.Route
		at    time.Duration
		want  []int // the nodes that are reached, of four
	}{
		{"Hop at first", ratelimittest.Hop(7 * s), 0, []int{0}},
		{"Hop before it hops", ratelimittest.Hop(7 * s), 7*s - 1, []int{0}},
		{"Hop", ratelimittest.Hop(7 * s), 7 * s, []int{1}},
		{"Hop around", ratelimittest.Hop(7 * s), 28 * s, []int{0}},
		{"Shrink before", ratelimittest.Shrink(2, 5*s), 5*s - 1, []int{0, 1, 2, 3}},
		{"Shrink after", ratelimittest.Shrink(2, 5*s), 5 * s, []int{0, 1}},
		{"Shrink to more than there are", ratelimittest.Shrink(9, 5*s), 5 * s, []int{0, 1, 2, 3}},
	} {
		random := rand.New(rand.NewPCG(1, 2))
		var got []int
		for range 200 {
			if node := c.route(c.at, 4, random); !slices.Contains(got, node) {
				got = append(got, node)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: reaches %v, want %v", c.name, got, c.want)
		}
	}
}

func TestTrafficGoesByItsRoute(t *testing.T) {
	t.Parallel()
	g := newTarget(3)
	traffic := ratelimittest.Traffic{Load: ratelimittest.Steady(10), Step: time.Second, Route: ratelimittest.Hop(2 * time.Second)}
	ratelimittest.Start(g, traffic).Advance(5 * time.Second)
	if want := []int{20, 20, 10}; !slices.Equal(g.byNode, want) {
		t.Errorf("nodes were offered %v, want %v", g.byNode, want)
	}
}

// A route that names a node that there is not is the caller's mistake, and said so.
func TestARouteToNowherePanics(t *testing.T) {
	t.Parallel()
	for _, node := range []int{-1, 3} {
		func() {
			defer func() {
				if text, ok := recover().(string); !ok || !strings.Contains(text, "Traffic.Route") {
					t.Errorf("node %d: %q, want a panic that names Traffic.Route", node, text)
				}
			}()
			route := func(time.Duration, int, *rand.Rand) int { return node }
			ratelimittest.Start(newTarget(3), ratelimittest.Traffic{Load: ratelimittest.Steady(1), Route: route}).Advance(time.Minute)
		}()
	}
}
