package ratelimit

import (
	"context"
	"errors"
	"testing"
	"time"
)

// asksFleet asks the fleet and counts in the audit what this node counted for it.
func (n *node) asksFleet(key string, units uint64) (Decision, error) {
	r := n.read()
	d, err := n.CheckFleet(context.Background(), key, units)
	if d.Verdict() == VerdictAllowed {
		n.audit.count(n.KeyName(key), r.epoch, units)
	}
	return d, err
}

// fleetAllowed asks the fleet for single units until one is refused, at most limit.
func (n *node) fleetAllowed(key string, limit int) (passed int) {
	n.world.t.Helper()
	for passed < limit {
		d, err := n.asksFleet(key, 1)
		if err != nil {
			n.world.t.Fatal(err)
		}
		if !d.Allowed() {
			break
		}
		passed++
	}
	return passed
}

func TestCheckFleetAdmitsWhatTheLimitSaysByKind(t *testing.T) {
	type row struct {
		advance time.Duration
		passed  int
	}
	for _, tt := range []struct {
		name   string
		change func(*Config)
		rows   []row
	}{
		{"fixed", func(c *Config) { c.Window = WindowFixed }, []row{{0, 9}, {59 * time.Second, 0}, {time.Second, 9}}},
		{"fixed, inclusive", func(c *Config) { c.Window, c.Inclusive = WindowFixed, true }, []row{{0, 10}, {time.Minute, 10}}},
		// Half of 9 weighs ⌈4.5⌉, which leaves 4.
		{"leaky", nil, []row{{0, 9}, {30 * time.Second, 0}, {60 * time.Second, 4}}},
		{"sliding", func(c *Config) { c.Window = WindowSliding }, []row{{0, 9}, {30 * time.Second, 0}, {60 * time.Second, 4}}},
		{
			"strict", func(c *Config) { c.Window, c.WindowStrict = WindowSliding, true },
			[]row{{50 * time.Second, 9}, {10 * time.Second, 0}, {59 * time.Second, 0}, {time.Second, 9}},
		},
		{"threshold 1", func(c *Config) { c.GlobalThreshold = 1 }, []row{{0, 0}}},
		{"threshold 1, inclusive", func(c *Config) { c.GlobalThreshold, c.Inclusive = 1, true }, []row{{0, 1}}},
		{"threshold 0", func(c *Config) { c.GlobalThreshold, c.Inclusive = 0, true }, []row{{0, 0}}},
		{"override", func(c *Config) { c.CustomKeys = map[string]uint64{"k": 4} }, []row{{0, 3}}},
		{"burst", func(c *Config) { c.BurstInterval = 6 * time.Second }, []row{{0, 9}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			change := func(c *Config) {
				c.GlobalThreshold = 10
				if tt.change != nil {
					tt.change(c)
				}
			}
			nodes := []*node{w.node(change), w.node(change), w.node(change)}
			for i, r := range tt.rows {
				w.clock.Advance(r.advance)
				passed := 0
				for more := true; more; { // the nodes in turn
					more = false
					for _, n := range nodes {
						if d, err := n.asksFleet("k", 1); err != nil {
							t.Fatal(err)
						} else if d.Allowed() {
							passed++
							more = true
						}
					}
				}
				if passed != r.passed {
					t.Errorf("row %d: %d passed, want %d", i, passed, r.passed)
				}
			}
			w.conserves(nodes...)
		})
	}
}

func TestCheckFleetCountsWhatChecksCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fixedWindow := func(c *Config) { c.Window, c.GlobalThreshold, c.Inclusive = WindowFixed, 10, true }
	a, b := w.node(fixedWindow), w.node(fixedWindow)
	for range 4 {
		a.check("k", 1) // unsent: a script of a's carries them, and b's knows nothing of them
	}
	if got := b.fleetAllowed("k", 3); got != 3 {
		t.Errorf("beside unsent units of another node %d passed, want 3", got)
	}
	if got := a.fleetAllowed("k", 20); got != 3 {
		t.Errorf("after 4 checks and 3 of the other node %d passed, want 3", got)
	}
	if got := b.allowed("k", 20); got != 0 {
		b.Check("k", 1)
		t.Logf("b admits %d before it knows of a", got)
	}
	w.clock.Advance(2 * time.Second)
	if d := a.Check("k", 1); d.Allowed() {
		t.Errorf("a check passes at %v of 10 units", d.Level())
	}
	w.conserves(a, b)
}

func TestCheckFleetAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.GlobalThreshold, c.Inclusive = 10, true })
	w.clock.Advance(15 * time.Second)
	for i, tt := range []struct {
		units     uint64
		allowed   bool
		level     float64
		remaining uint64
		retry     time.Duration
	}{
		{0, true, 0, 10, 0},
		{4, true, 4, 6, 0},
		{7, false, 11, 6, 60 * time.Second}, // a fourth of the 4 must fade: 45 s to the boundary, and 15
		{11, false, 15, 6, Never},
		{1 << 60, false, 1<<53 + 3, 6, Never},
		{6, true, 10, 0, 0},
		{0, false, 10, 0, 0},
	} {
		d, err := n.asksFleet("k", tt.units)
		if err != nil {
			t.Fatal(err)
		}
		retry := d.RetryAfter()
		if i == 6 {
			if retry <= 45*time.Second || retry > 52*time.Second {
				t.Errorf("row %d: RetryAfter %v, want a tenth of the window after the boundary", i, retry)
			}
			retry = 0
		}
		if d.Allowed() != tt.allowed || d.Level() != tt.level || d.Remaining() != tt.remaining || retry != tt.retry || d.Basis() != BasisFleet {
			t.Errorf("row %d: CheckFleet(k, %d): allowed %v, level %v, remaining %d, RetryAfter %v, basis %v; want %+v",
				i, tt.units, d.Allowed(), d.Level(), d.Remaining(), retry, d.Basis(), tt)
		}
	}
	if got := n.Stats(); got.Allowed != 3 || got.Limited != 4 || got.Fleet.Allowed != 3 || got.Fleet.Limited != 4 || got.Counted != 10 {
		t.Errorf("Stats() = %+v", got)
	}
	w.conserves(n)
}

// Whoever obeys RetryAfter passes, and whoever comes a nanosecond earlier does not.
func TestCheckFleetRetryAfterIsTrue(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"leaky":   nil,
		"sliding": func(c *Config) { c.Window = WindowSliding },
		"strict":  func(c *Config) { c.Window, c.WindowStrict = WindowSliding, true },
		"fixed":   func(c *Config) { c.Window = WindowFixed },
		"days":    func(c *Config) { c.Window, c.WindowCalendar, c.WindowZone = WindowFixed, "day", "Europe/Berlin" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			n := w.node(func(c *Config) {
				c.GlobalThreshold = 20
				if change != nil {
					change(c)
				}
			})
			for _, units := range []uint64{1, 5, 13, 19} {
				w.clock.Advance(7*time.Second + 1)
				n.fleetAllowed("k", 100)
				d, err := n.asksFleet("k", units)
				if err != nil || d.Allowed() {
					t.Fatalf("%d units beside a full window: %v, %v", units, d.Verdict(), err)
				}
				w.clock.Advance(d.RetryAfter() - 1)
				if early, _ := n.asksFleet("k", units); early.Allowed() {
					t.Errorf("%d units pass a nanosecond before RetryAfter %v", units, d.RetryAfter())
				}
				w.clock.Advance(1)
				if late, _ := n.asksFleet("k", units); !late.Allowed() {
					t.Errorf("%d units do not pass after RetryAfter %v, and should wait %v more", units, d.RetryAfter(), late.RetryAfter())
				}
			}
			w.conserves(n)
		})
	}
}

func TestCheckFleetDecidesLocallyWhenTheStoreDoesNotAnswer(t *testing.T) {
	for name, failure := range map[string]error{"unreachable": errUnreachable, "read only": errReadOnly, "timeout": errTimeout} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			n := w.node(func(c *Config) { c.Window, c.GlobalThreshold, c.Inclusive = WindowFixed, 10, true })
			n.grantsAreCounted() // a batch that timed out is granted when it is sent again
			n.link.breaks(failure, nil)
			passed := 0
			for range 15 {
				d, err := n.asksFleet("k", 1)
				if !errors.Is(err, ErrNotFleet) {
					t.Fatalf("error %v, want ErrNotFleet", err)
				}
				if d.Allowed() {
					passed++
				}
			}
			if passed != 10 {
				t.Errorf("%d passed on this node alone, want 10", passed)
			}
			if attempts := len(n.link.take()); attempts != 1 {
				t.Errorf("%d attempts while the batch waits for the tick, want 1", attempts)
			}
			n.link.heals()
			w.clock.Advance(3 * time.Second)
			if d, err := n.asksFleet("k", 1); err != nil || d.Allowed() || d.Level() != 11 {
				t.Errorf("afterwards: %v at level %v, %v; want limited at 11, nil", d.Verdict(), d.Level(), err)
			}
			w.conserves(n)
		})
	}
}

func TestLateGrantsAreGivenBack(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"leaky":   nil,
		"sliding": func(c *Config) { c.Window = WindowSliding },
		"fixed":   func(c *Config) { c.Window = WindowFixed },
		"burst":   func(c *Config) { c.BurstInterval = 6 * time.Second },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			n := w.node(change)
			n.grantsAreCounted()
			n.link.breaks(nil, errTimeout) // applied, and not answered
			d, err := n.asksFleet("k", 30)
			if !errors.Is(err, ErrNotFleet) || !d.Allowed() {
				t.Fatalf("%v, %v", d.Verdict(), err)
			}
			n.link.heals()
			w.clock.Advance(4 * time.Second)
			if got, err := n.PeekFleet(context.Background(), "k"); err != nil || got.Level() != 30 {
				t.Errorf("the fleet's level is %v, %v; want 30 once", got.Level(), err)
			}
			s := n.Stats()
			if s.Returned.Taken != 30 || s.Returned.Waiting != 0 || s.Counted-s.Returned.Taken != 30 {
				t.Errorf("counted %d, returned %+v", s.Counted, s.Returned)
			}
			w.conserves(n)
		})
	}
}

// grantsAreCounted has the audit count all that a store grants to this node.
func (n *node) grantsAreCounted() {
	n.ledger.granted = func(key string, epoch int64, units uint64) { n.audit.count(key, epoch, units) }
}

func TestCheckFleetOfAnEndedContextIsNotSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(nil)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	d, err := n.CheckFleet(ctx, "k", 1)
	if !errors.Is(err, ErrNotFleet) || !errors.Is(err, context.Canceled) || d.Allowed() {
		t.Errorf("%v, %v; want limited, and an error that wraps both", d.Verdict(), err)
	}
	if sent := len(n.link.take()); sent != 0 {
		t.Errorf("%d batches sent", sent)
	}
	if s := n.Stats(); s.Counted != 0 || s.Fleet.Canceled != 1 {
		t.Errorf("Stats() = %+v", s)
	}
}

func TestPeekFleetLeavesNoEntry(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.node(nil), w.node(nil)
	for range 3 {
		if d, err := a.PeekFleet(context.Background(), "k"); err != nil || d.Level() != 0 || !d.Allowed() {
			t.Errorf("unknown: %v at %v, %v", d.Verdict(), d.Level(), err)
		}
	}
	if s := a.Stats(); s.Entities != 0 {
		t.Errorf("%d entities known", s.Entities)
	}
	b.asksFleet("k", 40)
	d, err := a.PeekFleet(context.Background(), "k")
	if err != nil || d.Level() != 40 || d.Remaining() != 60 {
		t.Errorf("%v at %v, %v", d.Verdict(), d.Level(), err)
	}
	if s := a.Stats(); s.Entities != 1 || s.Counted != 0 {
		t.Errorf("%d entities known, %d counted; want 1, 0", s.Entities, s.Counted)
	}
	w.conserves(a, b)
}

func TestCheckFleetAfterCloseIsLocal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(nil)
	n.asksFleet("k", 98)
	if err := n.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	d, err := n.CheckFleet(context.Background(), "k", 1)
	if !errors.Is(err, ErrNotFleet) || !errors.Is(err, ErrClosed) || !d.Allowed() {
		t.Errorf("%v, %v; want allowed, ErrNotFleet and ErrClosed", d.Verdict(), err)
	}
	if d, _ := n.CheckFleet(context.Background(), "k", 1); d.Allowed() {
		t.Error("this process does not count for itself")
	}
	if err := n.Ping(context.Background()); !errors.Is(err, ErrClosed) {
		t.Errorf("Ping: %v", err)
	}
	w.conserves(n)
}

func TestPingMakesARoundTripToEveryPartition(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(nil)
	if err := n.Ping(context.Background()); err != nil {
		t.Error(err)
	}
	if sent := n.link.take(); len(sent) != 0 || n.link.questions != 1 || len(w.mem.Keys()) != 0 {
		t.Errorf("sent %+v and %d questions; the store holds %v", sent, n.link.questions, w.mem.Keys())
	}
	n.link.breaks(errUnreachable, nil)
	var failed *PartitionError
	if err := n.Ping(context.Background()); !errors.As(err, &failed) || failed.Partition != "memory" || !errors.Is(err, errUnreachable) {
		t.Errorf("Ping: %v", err)
	}
}
