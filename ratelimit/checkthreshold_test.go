package ratelimit_test

import (
	"errors"
	"testing"
	"time"

	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/testing/ratelimittest"
)

// Thresholds that come with the questions share the entity's count, and leave the configured one
// as it was.
func TestCheckThreshold(t *testing.T) {
	t.Parallel()
	cfg := ratelimit.DefaultConfig()
	cfg.GlobalThreshold, cfg.Window, cfg.Inclusive, cfg.StrictFirstContact = 4, ratelimit.WindowFixed, true, true
	cfg.CustomKeys = ratelimit.Overrides{"own": 1}
	clock := ratelimittest.NewClock()
	lim := ratelimittest.NewLimiter(t, clock, cfg)
	for row, step := range []struct {
		key       string
		units     uint64
		threshold uint64 // 99: Check
		allowed   bool
		level     float64
	}{
		{"new", 3, 2, false, 3},
		{"k", 2, 3, true, 2},
		{"k", 2, 3, false, 4},
		{"k", 2, 99, true, 4},
		{"k", 1, 5, true, 5},
		{"k", 1, 99, false, 6},
		{"k", 0, 0, false, 5},
		{"own", 1, 2, true, 1},
		{"own", 1, 99, false, 2},
		{"own", 1, 2, true, 2},
	} {
		var d ratelimit.Decision
		custom := true
		if step.threshold == 99 {
			d, custom = lim.Check(step.key, step.units), step.key == "own"
		} else {
			d = lim.CheckThreshold(step.key, step.units, step.threshold)
		}
		if d.Allowed() != step.allowed || d.Level() != step.level || d.Custom() != custom {
			t.Errorf("row %d: %s, %d by %d: got allowed %v, level %v, custom %v; want %v, %v, %v",
				row, step.key, step.units, step.threshold, d.Allowed(), d.Level(), d.Custom(), step.allowed, step.level, custom)
		}
	}
	clock.Advance(time.Minute)
	if d := lim.CheckThreshold("k", 3, 3); !d.Allowed() {
		t.Errorf("in the next window: got %v at level %v, want allowed", d.Verdict(), d.Level())
	}
}

// The fleet is asked by the threshold that comes with the question, and while it cannot be asked this
// node decides by it.
func TestCheckFleetThreshold(t *testing.T) {
	t.Parallel()
	cfg := ratelimit.DefaultConfig()
	cfg.GlobalThreshold, cfg.Window, cfg.Inclusive, cfg.StrictFirstContact = 100, ratelimit.WindowFixed, true, true
	clock := ratelimittest.NewClock()
	s := ratelimittest.NewStore(clock)
	one := ratelimittest.NewLimiter(t, clock, cfg, ratelimittest.WithStore(s))
	two := ratelimittest.NewLimiter(t, clock, cfg, ratelimittest.WithStore(s))
	for row, step := range []struct {
		lim       *ratelimit.Limiter
		units     uint64
		threshold uint64
		allowed   bool
	}{
		{one, 2, 3, true},
		{two, 2, 3, false},
		{two, 1, 3, true},
		{one, 1, 3, false},
		{one, 1, 4, true},
		{two, 1, 0, false},
	} {
		d, err := step.lim.CheckFleetThreshold(t.Context(), "k", step.units, step.threshold)
		if err != nil || d.Allowed() != step.allowed || d.Threshold() != step.threshold || !d.Custom() {
			t.Errorf("row %d: %d by %d: got %v by %d, error %v; want allowed %v",
				row, step.units, step.threshold, d.Verdict(), d.Threshold(), err, step.allowed)
		}
	}
	s.Fail(ratelimittest.Unreachable)
	for row, threshold := range []uint64{2, 1, 4} {
		d, err := one.CheckFleetThreshold(t.Context(), "other", 2, threshold)
		if !errors.Is(err, ratelimit.ErrNotFleet) || d.Allowed() != (threshold != 1) || d.Threshold() != threshold {
			t.Errorf("away, row %d: got %v by %d, error %v", row, d.Verdict(), d.Threshold(), err)
		}
	}
	s.Heal()
}
