package ratelimit

// This file tests what a node anticipates of the others, and the bounds of it.

import (
	"testing"
	"time"
)

func TestProportionKeepsARatioToASixteenth(t *testing.T) {
	t.Parallel()
	for _, ratio := range []float32{1.0 / 65536, 0.01, 0.5, 1, 3, 9, 99, 1000, 60000} {
		got := proportionOf(ratio).ratio()
		if got < ratio*15/16 || got > ratio*17/16 {
			t.Errorf("a ratio of %v is kept as %v", ratio, got)
		}
	}
	for _, c := range []struct{ ratio, want float32 }{{0, 0}, {1e-9, 0}, {1e30, proportionOf(1e9).ratio()}} {
		if got := proportionOf(c.ratio).ratio(); got != c.want {
			t.Errorf("a ratio of %v is kept as %v, want %v", c.ratio, got, c.want)
		}
	}
}

// sharers are two nodes with a threshold of 3,200 of which 100 may be anticipated;
// b counts three units for each of a's, for ten ticks: 400 in all.
func sharers(t *testing.T, change func(*Config)) (w *world, a, b *node) {
	w = newWorld(t)
	configure := func(cfg *Config) {
		cfg.GlobalThreshold = 3200
		if change != nil {
			change(cfg)
		}
	}
	a, b = w.node(configure), w.node(configure)
	for range 10 {
		a.check("k", 10)
		b.check("k", 30)
		w.clock.Advance(time.Second)
	}
	return w, a, b
}

func TestANodeAnticipatesTheOthersInProportion(t *testing.T) {
	t.Parallel()
	_, a, _ := sharers(t, nil)
	before := a.Peek("k").Level()
	for _, row := range []struct {
		n     uint64
		level float64 // of the next Peek, above what it was before
	}{
		{8, 8 + 24},
		{4, 12 + 36},
		{21, 33 + 99},
		{10, 43 + 100}, // a 32nd of the threshold at most
		{1000, 1043 + 100},
	} {
		d := a.check("k", row.n)
		if !d.Allowed() {
			t.Fatalf("%d units at level %v: limited", row.n, d.Level())
		}
		after := a.Peek("k")
		if got := after.Level() - before; got != row.level {
			t.Errorf("after %d units the level is %v above the start, want %v", row.n, got, row.level)
		}
		if d.Remaining() != after.Remaining() {
			t.Errorf("%d units leave %d, but then %d remain", row.n, d.Remaining(), after.Remaining())
		}
	}
}

// What is anticipated ends a sixteenth of a window after the last sync, and the
// wait that a refusal names takes that into account.
func TestAnticipationEndsWhenSyncsFail(t *testing.T) {
	t.Parallel()
	w, a, _ := sharers(t, nil)
	a.link.breaks(errUnreachable, nil)
	fleet := a.Peek("k").Level()
	a.check("k", 2720)
	if got := a.Peek("k").Level(); got != fleet+2720+100 {
		t.Fatalf("level %v, want %v", got, fleet+2720+100)
	}
	d := a.check("k", 50)
	wait := d.RetryAfter()
	if d.Allowed() || wait <= 0 || wait > time.Minute/aheadTime {
		t.Fatalf("50 units at level %v: %v, retry after %v", d.Level(), d.Verdict(), wait)
	}
	w.clock.Advance(wait - 1)
	if d := a.check("k", 50); d.Allowed() {
		t.Errorf("allowed a nanosecond before %v, at level %v", wait, d.Level())
	}
	w.clock.Advance(1)
	if d := a.check("k", 50); !d.Allowed() {
		t.Errorf("limited after %v, at level %v", wait, d.Level())
	}
}

func TestNothingIsAnticipated(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		change func(*Config)
	}{
		{"at a small threshold", func(cfg *Config) { cfg.GlobalThreshold = 999 }},
		{"with Hot entities synced between ticks", func(cfg *Config) { cfg.HotSyncInterval = 100 * time.Millisecond }},
		{"with ticks farther apart than a sixteenth of the window", func(cfg *Config) { cfg.TickInterval = 5 * time.Second }},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			_, a, _ := sharers(t, row.change)
			before := a.Peek("k").Level()
			a.check("k", 20)
			if got := a.Peek("k").Level() - before; got != 20 {
				t.Errorf("20 units raise the level by %v", got)
			}
		})
	}
}

// A node alone is never limited for others that do not exist.
func TestANodeAloneAnticipatesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(cfg *Config) { cfg.GlobalThreshold = 2000 })
	for range 5 {
		n.check("k", 100)
		w.clock.Advance(time.Second)
	}
	d := n.Peek("k")
	if got, want := n.allowed("k", 5000), int(d.Remaining())-1; got != want && got != want+1 {
		t.Errorf("%d single units pass at level %v of 2,000, want %d", got, d.Level(), want)
	}
}
