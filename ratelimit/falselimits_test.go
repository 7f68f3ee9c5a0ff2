package ratelimit

// This file tests that requests which fit are not refused for what the other nodes
// might be counting.

import (
	"fmt"
	"testing"
	"time"
)

// A burst on one node says nothing of what others will do: once it has been learned,
// requests that fit pass, and just those.
func TestABurstOfOneNodeRefusesNothingThatFitsOnAnother(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ threshold, before, burst uint64 }{
		{3200, 10, 2500}, {1000, 1, 900}, {50_000, 3, 40_000},
	} {
		t.Run(fmt.Sprint(row.burst, " of ", row.threshold), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			configure := func(cfg *Config) { cfg.GlobalThreshold = row.threshold }
			a, b := w.node(configure), w.node(configure)
			counted := uint64(0) // in this window, by both
			for range 3 {
				a.check("k", row.before)
				counted += row.before
				w.clock.Advance(time.Second)
			}
			b.check("k", row.burst)
			counted += row.burst
			w.clock.Advance(time.Second)
			for counted+row.before < row.threshold {
				if d := a.check("k", row.before); !d.Allowed() {
					t.Fatalf("%d units are refused at level %v of %d, though all that passed are %d",
						row.before, d.Level(), row.threshold, counted)
				}
				if counted += row.before; counted%7 == 0 {
					w.clock.Advance(100 * time.Millisecond) // ticks in between
				}
			}
		})
	}
}

// A fleet that shrinks to one node leaves it a load that fits: nothing of that is
// refused, however many others there were.
func TestAFleetThatShrinksToOneNodeRefusesNothingThatFits(t *testing.T) {
	t.Parallel()
	const nodes, threshold = 100, 60_000
	for _, load := range []float64{0.97, 0.995} {
		t.Run(fmt.Sprint(load), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			var fleet []*node
			for range nodes {
				fleet = append(fleet, w.node(func(cfg *Config) { cfg.GlobalThreshold = threshold }))
			}
			// In slices of 50 ms, spread evenly over whoever is there.
			const slice = 50 * time.Millisecond
			offered, sent := 0.0, 0
			step := func(fleet []*node) {
				for offered += load * threshold * float64(slice) / float64(time.Minute); sent < int(offered); sent++ {
					if d := fleet[sent%len(fleet)].check("k", 1); !d.Allowed() {
						t.Fatalf("unit %d is refused at level %v", sent, d.Level())
					}
				}
				w.clock.Advance(slice)
			}
			for range 3 * time.Minute / slice {
				step(fleet)
			}
			for range 3 * time.Minute / slice {
				step(fleet[:1])
			}
		})
	}
}
