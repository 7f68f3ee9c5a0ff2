package ratelimit

import (
	"testing"
	"time"
)

func TestSecondNodeLimitsToo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.node(nil), w.node(nil)
	if got := a.allowed("k", 1000); got != 99 {
		t.Fatalf("first node admitted %d units of a threshold of 100, want 99", got)
	}
	b.check("k", 1) // first contact
	w.clock.Advance(time.Second)
	w.conserves(a, b)
	d := b.check("k", 1)
	if d.Allowed() || d.Basis() != BasisFleet {
		t.Fatalf("second node: %v on %v, level %v", d.Verdict(), d.Basis(), d.Level())
	}
	w.clock.Advance(10 * time.Minute)
	w.conserves(a, b)
	if d := b.check("k", 1); !d.Allowed() {
		t.Fatalf("ten minutes later: %v at level %v", d.Verdict(), d.Level())
	}
}
