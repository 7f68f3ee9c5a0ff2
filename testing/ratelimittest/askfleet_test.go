package ratelimittest

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/hanzoai/limiters/ratelimit"
)

// What is granted, over the times of the grants: by kind, with nodes in turn and at random,
// under more than the limit.
func TestGrantsStayWithinWhatIsPromised(t *testing.T) {
	for name, window := range map[string]func(*ratelimit.Config){
		"fixed":   func(c *ratelimit.Config) { c.Window = ratelimit.WindowFixed },
		"leaky":   func(c *ratelimit.Config) { c.Window = ratelimit.WindowLeaky },
		"sliding": func(c *ratelimit.Config) { c.Window = ratelimit.WindowSliding },
		"strict":  func(c *ratelimit.Config) { c.Window, c.WindowStrict = ratelimit.WindowSliding, true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			rng := rand.New(rand.NewPCG(seed, 0))
			cfg := ratelimit.DefaultConfig()
			cfg.GlobalThreshold, cfg.Inclusive, cfg.WindowInterval = 20, true, 20*time.Second
			window(&cfg)
			f := NewFleet(t, 10, cfg)
			type grant struct {
				at    time.Time
				units uint64
			}
			var grants []grant
			epoch := func(at time.Time) int64 { return at.UnixNano() / int64(cfg.WindowInterval) }
			for range 3000 {
				f.Advance(time.Duration(rng.ExpFloat64() * float64(300*time.Millisecond)))
				n := 1 + rng.Uint64N(4)
				d, err := f.Node(rng.IntN(10)).CheckFleet(context.Background(), "k", n)
				if err != nil {
					t.Fatal(err)
				}
				if !d.Allowed() {
					continue
				}
				now := f.Clock().Time()
				grants = append(grants, grant{now, n})
				var before, current, rolling uint64
				for _, g := range grants {
					switch epoch(now) - epoch(g.at) {
					case 0:
						current += g.units
					case 1:
						before += g.units
					}
					if now.Sub(g.at) < cfg.WindowInterval {
						rolling += g.units
					}
				}
				into := float64(now.UnixNano()%int64(cfg.WindowInterval)) / float64(cfg.WindowInterval)
				estimate := math.Ceil(float64(before)*(1-into)-1e-9) + float64(current)
				switch name {
				case "fixed":
					estimate = float64(current)
				case "strict":
					estimate = float64(rolling)
				}
				if estimate > 20 {
					t.Fatalf("%v: %d units granted beside %d and %d before: %v of 20", now, n, current, before, estimate)
				}
			}
			if len(grants) < 100 {
				t.Errorf("only %d grants", len(grants))
			}
			if got := f.Requests(); got.Attempts < 3000 {
				t.Errorf("%d attempts for 3,000 calls", got.Attempts)
			}
		})
	}
}

// A tick of the same node waits for its reply while the clock stands still: nothing can bring
// that, and so the call does not wait for it.
func TestACallBesideATickThatWaitsIsLocal(t *testing.T) {
	t.Parallel()
	cfg := ratelimit.DefaultConfig()
	f := NewFleet(t, 1, cfg)
	n := f.Node(0)
	n.Link.RoundTrip(40 * time.Millisecond)
	n.Check("other", 1)
	f.Advance(time.Second + time.Millisecond) // the tick is under way
	if !f.Clock().Parked() {
		t.Fatal("no tick waits")
	}
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			if d, err := n.CheckFleet(context.Background(), "k", 1); !errors.Is(err, ratelimit.ErrNotFleet) || !d.Allowed() {
				t.Errorf("%v, %v", d.Verdict(), err)
			}
		})
	}
	callers.Wait()
	f.Advance(50 * time.Millisecond)
	if f.Clock().Parked() {
		t.Error("a tick still waits")
	}
	if d, err := n.CheckFleet(context.Background(), "new", 1); err != nil || !d.Allowed() {
		t.Errorf("afterwards: %v, %v", d.Verdict(), err)
	}
}

// Callers on many goroutines while another one advances the clock, over a slow link: all are
// answered, and no more than the limit is granted in a window.
func TestCallersBesideAnAdvancingClock(t *testing.T) {
	t.Parallel()
	cfg := ratelimit.DefaultConfig()
	cfg.Window, cfg.GlobalThreshold, cfg.Inclusive = ratelimit.WindowFixed, 100, true
	f := NewFleet(t, 4, cfg)
	for _, n := range f.Nodes() {
		n.Link.RoundTrip(10 * time.Millisecond)
	}
	var mu sync.Mutex
	granted := 0
	var callers sync.WaitGroup
	for _, n := range f.Nodes() {
		for range 4 {
			callers.Go(func() {
				for range 50 {
					n.Check("other", 1)
					if d, err := n.CheckFleet(context.Background(), "k", 1); err == nil && d.Allowed() {
						mu.Lock()
						granted++
						mu.Unlock()
					}
				}
			})
		}
	}
	for range 300 { // less than a window
		f.Advance(7 * time.Millisecond)
	}
	callers.Wait()
	if granted > 100 {
		t.Errorf("%d granted of 100", granted)
	}
}
