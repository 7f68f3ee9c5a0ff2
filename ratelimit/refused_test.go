package ratelimit

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// Refused units are counted whichever way they were refused, and of an evicted entity too.
func TestMostRefusedCountsEveryWay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.CustomKeys = Overrides{"blocked": 0, "kept": 10, "gone": 10} })
	n.check("kept", 9)
	n.check("kept", 5)
	n.check("kept", 6)
	n.Peek("kept")
	n.CheckAll([]Item{{Key: "kept", Units: 3}})
	n.check("gone", 9)
	n.check("gone", 7)
	n.sync()
	n.Forget("gone")
	n.check("blocked", 4)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = n.Wait(ctx, "waits", 200)
	got := fmt.Sprint(n.MostRefused(10))
	if want := "[{kept 14 0} {gone 7 0} {blocked 4 0}]"; !strings.HasSuffix(got, strings.TrimPrefix(want, "[")) {
		t.Errorf("refused %s, want %s at its end", got, want)
	}
	if again := fmt.Sprint(n.MostRefused(10)); again != got {
		t.Errorf("asked again: %s, then %s", got, again)
	}
	if len(n.MostRefused(1)) != 1 || len(n.MostRefused(0)) != 0 || len(n.MostRefused(-1)) != 0 {
		t.Error("the list is not as long as asked")
	}
}

// The list is bounded, its units are all that were added, and whoever has more than a
// 256th of them is on it, within Over.
func TestRefusalsKeepTheHeaviest(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	var f refusals
	truth := map[string]uint64{}
	total := uint64(0)
	for range 50_000 {
		key := fmt.Sprint("k", int(random.ExpFloat64()*400))
		units := random.Uint64N(10)
		f.add(key, units)
		truth[key] += units
		total += units
	}
	sum := uint64(0)
	for i, r := range f.heap {
		sum += r.Units
		if f.at[r.Key] != i || r.Units < truth[r.Key] || r.Units-r.Over > truth[r.Key] {
			t.Fatalf("%+v at %d (index %d): refused were %d", r, i, f.at[r.Key], truth[r.Key])
		}
	}
	if sum != total || len(f.heap) != mostRefused || len(f.at) != mostRefused {
		t.Errorf("%d units of %d entities, want %d of %d", sum, len(f.heap), total, mostRefused)
	}
	for key, units := range truth {
		if _, on := f.at[key]; !on && units > total/mostRefused {
			t.Errorf("%s is missing with %d of %d units", key, units, total)
		}
	}
}
