package ratelimit

// This file tests reservations of several limiters.

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/hanzoai/limiters/internal/clock"
)

// taken is what the nodes hold counted: less what was given back, delivered or not.
func taken(nodes ...*node) (units []float64) {
	for _, n := range nodes {
		sum := 0.0
		for _, key := range []string{"k0", "k1", "k2"} {
			sum += n.Peek(key).Level()
		}
		units = append(units, sum)
	}
	return units
}

func TestReserveAllIsGivenBackAsAWhole(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name         string
		items        [3]uint64 // k0 of the first, k1 of the second, k0 of the first again
		change       func(*Config)
		want         string
		held, after  []float64 // by each limiter, before and after Cancel
		commit, rest []float64 // after a Commit(1) of the first instead
	}{
		{"all pass", [3]uint64{3, 5, 4}, nil, "aaa", []float64{7, 5}, []float64{0, 0}, []float64{1, 5}, []float64{1, 0}},
		{"refused", [3]uint64{3, 100, 4}, nil, "ala", []float64{0, 0}, []float64{0, 0}, []float64{1, 0}, []float64{1, 0}},
		{
			"what is counted all the same is held",
			[3]uint64{3, 100, 4},
			func(c *Config) { c.CountLimited = true }, "ala",
			[]float64{7, 100},
			[]float64{0, 0},
			[]float64{1, 100},
			[]float64{1, 0},
		},
	} {
		for _, commit := range []bool{false, true} {
			shared := clock.NewFake(start)
			change := func(c *Config) {
				c.Window, c.StrictFirstContact = WindowFixed, true
				if row.change != nil {
					row.change(c)
				}
			}
			a, b := apart(t, shared, change), apart(t, shared, change)
			rs := a.ReserveAll([]Item{{Key: "k0", Units: row.items[0]}, {Key: "k1", Units: row.items[1], Limiter: b.Limiter}, {Key: "k0", Units: row.items[2]}})
			shared.Advance(1500 * time.Millisecond) // delivered
			if got := verdicts(rs.Decisions()); got != row.want || rs[0] != rs[2] {
				t.Errorf("%s: verdicts %q, want %q; equal keys share one: %v", row.name, got, row.want, rs[0] == rs[2])
			}
			if got := taken(a, b); !slices.Equal(got, row.held) {
				t.Errorf("%s: held %v, want %v", row.name, got, row.held)
			}
			want := row.after
			if commit {
				rs[0].Commit(1)
				if got := taken(a, b); !slices.Equal(got, row.commit) {
					t.Errorf("%s: after Commit(1) held %v, want %v", row.name, got, row.commit)
				}
				want = row.rest
			}
			rs.Cancel()
			rs.Cancel()
			shared.Advance(1500 * time.Millisecond)
			if got := taken(a, b); !slices.Equal(got, want) {
				t.Errorf("%s: after Cancel held %v, want %v", row.name, got, want)
			}
		}
	}
	if rs := apart(t, clock.NewFake(start), nil).ReserveAll(nil); len(rs) != 0 || !rs.Decisions().Allowed() {
		t.Errorf("of no items: %v", rs)
	}
}

// However groups and what is given back of them interleave, nothing but what was committed
// stays counted.
func TestReserveAllConserves(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	shared := clock.NewFake(start)
	large := func(c *Config) {
		c.GlobalThreshold, c.Window, c.WindowInterval = 60, WindowFixed, time.Hour
	}
	nodes := []*node{apart(t, shared, large), apart(t, shared, large), apart(t, shared, large)}
	var open []Reservations
	kept := map[*node]uint64{}
	for range 600 {
		var items []Item
		for range 1 + random.IntN(4) {
			items = append(items, Item{Key: fmt.Sprint("k", random.IntN(3)), Units: uint64(random.IntN(9)), Limiter: nodes[random.IntN(3)].Limiter})
		}
		open = append(open, nodes[0].ReserveAll(items))
		if random.IntN(3) > 0 {
			i := random.IntN(len(open))
			if r := open[i][0]; r.Decision().Verdict() == VerdictAllowed && random.IntN(9) == 0 && open[i].Decisions().Allowed() {
				r.Commit(1)
				for _, n := range nodes {
					if n.Limiter == r.limiter {
						kept[n]++
					}
				}
			}
			open[i].Cancel()
			open = slices.Delete(open, i, i+1)
		}
		if random.IntN(4) == 0 {
			shared.Advance(time.Duration(random.Int64N(int64(2 * time.Second))))
		}
	}
	for _, rs := range open {
		rs.Cancel()
	}
	shared.Advance(5 * time.Second)
	for i, n := range nodes {
		s := n.Stats()
		if s.Counted == 0 || s.Counted-s.Returned.Taken != kept[n] || s.Delivered != kept[n] || s.Undelivered != 0 {
			t.Errorf("seed %d: limiter %d counted %d, taken back %d, delivered %d, undelivered %d; want %d kept",
				seed, i, s.Counted, s.Returned.Taken, s.Delivered, s.Undelivered, kept[n])
		}
	}
}
