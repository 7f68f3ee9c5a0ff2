package ratelimit

// This file tests reservations that ask the fleet.

import (
	"context"
	"errors"
	"testing"
)

// Reservations of a fleet never hold more than the limit together, and what they give back
// can be had by others.
func TestReservationsOfTheFleet(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var nodes []*node
	for range 4 {
		nodes = append(nodes, w.node(func(c *Config) { c.Window, c.Inclusive, c.GlobalThreshold = WindowFixed, true, 100 }))
	}
	reserve := func(i int, units uint64) *Reservation {
		n := nodes[i%4]
		res, err := n.ReserveFleet(context.Background(), "k", units)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	var open []*Reservation
	for i := range 8 {
		if res := reserve(i, 30); res.Decision().Allowed() {
			open = append(open, res)
		}
	}
	if len(open) != 3 {
		t.Fatalf("%d reservations of 30 units passed, want 3", len(open))
	}
	open[0].Commit(5)
	open[1].Cancel()
	for _, n := range nodes {
		n.sync()
	}
	if got := w.total(nodes[0], "k", nodes[0].epochAt(0)); got != 35 {
		t.Errorf("the store holds %d, want 35", got)
	}
	if !reserve(3, 65).Decision().Allowed() || reserve(2, 1).Decision().Allowed() {
		t.Error("want 65 more to pass, and not one beyond")
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	res, err := nodes[0].ReserveFleet(ended, "k", 1)
	if res == nil || !errors.Is(err, context.Canceled) || res.held != (holding{}) {
		t.Errorf("%+v, %v", res, err)
	}
	for _, n := range nodes {
		n.link.breaks(errTimeout, nil)
	}
	res, err = nodes[0].ReserveFleet(context.Background(), "other", 70)
	if !errors.Is(err, ErrNotFleet) || !res.Decision().Allowed() || nodes[0].Peek("other").Level() != 70 {
		t.Errorf("%v, %v", res.Decision().Verdict(), err)
	}
	if res.Cancel(); nodes[0].Peek("other").Level() != 0 {
		t.Errorf("level %v after Cancel", nodes[0].Peek("other").Level())
	}
}
