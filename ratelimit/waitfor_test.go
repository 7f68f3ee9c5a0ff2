package ratelimit_test

import (
	"context"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/testing/ratelimittest"
)

// After the wait that is answered for a number of units a request of so many passes, in
// every kind of window, ticks included. In a fixed one it does not a moment before.
func TestWhatWaitForAnswersPasses(t *testing.T) {
	t.Parallel()
	for _, kind := range []ratelimit.WindowKind{ratelimit.WindowLeaky, ratelimit.WindowSliding, ratelimit.WindowFixed} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(rt *rapid.T) { waitsAndPasses(rt, kind) })
		})
	}
}

func waitsAndPasses(t *rapid.T, kind ratelimit.WindowKind) {
	cfg := ratelimit.DefaultConfig()
	cfg.Window, cfg.StrictFirstContact = kind, true
	cfg.GlobalThreshold = rapid.Uint64Range(2, 50).Draw(t, "threshold")
	cfg.Inclusive = rapid.Bool().Draw(t, "inclusive")
	into := time.Duration(rapid.Int64Range(0, int64(time.Minute)-1).Draw(t, "into the window"))
	gaps := rapid.SliceOfN(rapid.Int64Range(0, int64(20*time.Second)), 1, 8).Draw(t, "gaps")
	asked := rapid.SliceOfN(rapid.Uint64Range(1, 20), len(gaps), len(gaps)).Draw(t, "units")
	n := rapid.Uint64Range(0, 60).Draw(t, "n")
	run := func() (*ratelimit.Limiter, *ratelimittest.Clock) {
		clock := ratelimittest.NewClock()
		lim := ratelimittest.NewLimiter(nil, clock, cfg)
		clock.Advance(into)
		for i, gap := range gaps {
			clock.Advance(time.Duration(gap))
			lim.Check("k", asked[i])
		}
		return lim, clock
	}
	passes := func(lim *ratelimit.Limiter) bool {
		defer lim.Close(context.Background())
		return lim.Check("k", max(n, 1)).Allowed()
	}
	lim, clock := run()
	before := lim.Stats()
	wait := lim.WaitFor("k", n)
	if after := lim.Stats(); after.Counted != before.Counted || after.Allowed+after.Limited != before.Allowed+before.Limited {
		t.Fatalf("WaitFor counted: %+v, then %+v", before, after)
	}
	if wait == ratelimit.Never {
		if most := cfg.GlobalThreshold; max(n, 1) < most || cfg.Inclusive && n == most {
			t.Fatalf("WaitFor(%d) is Never at a threshold of %d", n, most)
		}
		return
	}
	clock.Advance(wait)
	if !passes(lim) {
		t.Fatalf("%d units are limited after the wait of %v", n, wait)
	}
	if wait == 0 || kind != ratelimit.WindowFixed {
		return
	}
	lim, clock = run()
	clock.Advance(wait - 1)
	if passes(lim) {
		t.Fatalf("%d units pass 1 ns before the wait of %v is over", n, wait)
	}
}

// WaitFor answers what the refusal of such a request does.
func TestWaitForIsTheRetryAfterOfThatRequest(t *testing.T) {
	t.Parallel()
	for _, kind := range []ratelimit.WindowKind{ratelimit.WindowLeaky, ratelimit.WindowSliding, ratelimit.WindowFixed} {
		for _, n := range []uint64{1, 4, 9, 10, 11} {
			cfg := ratelimit.DefaultConfig()
			cfg.GlobalThreshold, cfg.Inclusive, cfg.Window = 10, true, kind
			clock := ratelimittest.NewClock()
			lim := ratelimittest.NewLimiter(t, clock, cfg)
			lim.Check("k", 6)
			clock.Advance(7 * time.Second)
			lim.Check("k", 4)
			clock.Advance(5 * time.Second)
			if got, want := lim.WaitFor("k", n), lim.Check("k", n).RetryAfter(); got != want || want == 0 {
				t.Errorf("%s: WaitFor(%d) = %v; a request that is refused is told %v", kind, n, got, want)
			}
		}
	}
}

func TestWaitForWhatCannotPass(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		threshold, n uint64
		want         time.Duration
	}{
		{0, 0, ratelimit.Never},
		{0, 1, ratelimit.Never},
		{1, 1, ratelimit.Never},
		{7, 7, ratelimit.Never},
		{7, 6, 0},
		{7, 0, 0},
		{1 << 60, 1<<64 - 1, 0}, // taken as 2^53 − 1
	} {
		cfg := ratelimit.DefaultConfig()
		cfg.GlobalThreshold = row.threshold
		lim := ratelimittest.NewLimiter(t, ratelimittest.NewClock(), cfg)
		if got := lim.WaitFor("k", row.n); got != row.want {
			t.Errorf("threshold %d: WaitFor(%d) of an unknown key = %v, want %v", row.threshold, row.n, got, row.want)
		}
		if lim.Stats().Entities != 0 {
			t.Error("WaitFor left a trace of an unknown key")
		}
	}
}

// Overrides, the resolver and long keys are looked up as a check does.
func TestWaitForKnowsTheKeysThreshold(t *testing.T) {
	t.Parallel()
	cfg := ratelimit.DefaultConfig()
	cfg.GlobalThreshold, cfg.MaxKeyBytes = 10, 64
	long := string(make([]byte, 100))
	cfg.CustomKeys = ratelimit.Overrides{"gold": 1000, long: 2000}
	resolver := func(key string) (uint64, bool) { return 500, key == "resolved" }
	lim := ratelimittest.NewLimiter(t, ratelimittest.NewClock(), cfg, ratelimit.WithResolver(resolver))
	for range 2 { // unknown, then known
		for _, row := range []struct {
			key  string
			most uint64
		}{{"plain", 9}, {"gold", 999}, {long, 1999}, {"resolved", 499}} {
			if got, beyond := lim.WaitFor(row.key, row.most-1), lim.WaitFor(row.key, row.most+1); got != 0 || beyond != ratelimit.Never {
				t.Errorf("%.10q: %v for %d units and %v for two more, want 0 and Never", row.key, got, row.most-1, beyond)
			}
			lim.Check(row.key, 1)
		}
	}
}
