package ratelimit

// This file tests calls that wait, on a clock that the test drives and on the system's.

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"
)

// A call is one Wait in a goroutine of its own.
type call struct {
	n     *node
	err   chan error
	began int64 // of the world's clock
}

// wait calls Wait, and returns when the call waits or is over.
func (n *node) wait(ctx context.Context, key string, units uint64) *call {
	c := &call{n: n, err: make(chan error, 1)}
	_, c.began = n.world.clock.Now()
	waiting := n.Stats().Waiting
	done := make(chan struct{})
	go func() {
		c.err <- n.Wait(ctx, key, units)
		close(done)
	}()
	for n.Stats().Waiting == waiting {
		select {
		case <-done:
			return c
		default:
			runtime.Gosched()
		}
	}
	return c
}

// over returns whether the call has ended, which it does soon after the step that ends it.
func (c *call) over() (error, bool) {
	if c.n.Stats().Waiting == 0 {
		return <-c.err, true
	}
	select {
	case err := <-c.err:
		return err, true
	default:
		return nil, false
	}
}

// Whoever waits passes at the very moment that RetryAfter names, in every kind of window,
// and is counted then.
func TestWaitEndsWhenTheUnitsPass(t *testing.T) {
	t.Parallel()
	for name, kind := range windows {
		w := newWorld(t)
		n := w.node(func(c *Config) { kind(c); c.GlobalThreshold, c.SyncByUnits = 100, false })
		if err := n.Wait(context.Background(), "k", 1); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		n.audit.count("k", n.epochAt(0), 1)
		n.check("k", 98)
		n.sync()
		n.sync()
		wait := n.WaitFor("k", 10)
		c := n.wait(context.Background(), "k", 10)
		if err, over := c.over(); over || wait <= time.Second {
			t.Fatalf("%s: it did not wait: %v, %v", name, err, wait)
		}
		allowed := n.Stats().Allowed
		w.clock.Advance(wait - 1)
		epoch := n.epochAt(0)
		if err, over := c.over(); over && n.kind != leaky { // where the wait is the longest it may take
			t.Fatalf("%s: it passed too early: %v", name, err)
		} else if over {
			c.err <- err
		} else {
			w.clock.Advance(1)
			epoch = n.epochAt(0)
		}
		n.audit.count("k", epoch, 10)
		if err := <-c.err; err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if s := n.Stats(); s.Allowed != allowed+1 || s.Limited != 0 || s.Waiting != 0 {
			t.Errorf("%s: %+v", name, s)
		}
		n.sync()
		w.conserves(n)
	}
}

func TestWaitSaysAtOnceThatItIsInVain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.Inclusive, c.CountLimited = true, true })
	n.SetOverrides(map[string]uint64{"blocked": 0})
	n.check("k", 100)
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	soon, cancel := context.WithDeadline(context.Background(), start.AddDate(100, 0, 0)) // which the machine's clock leaves alone
	defer cancel()
	for i, c := range []struct {
		ctx   context.Context
		key   string
		units uint64
		is    error
	}{
		{context.Background(), "k", 101, ErrNever},
		{context.Background(), "k", 1 << 63, ErrNever},
		{context.Background(), "blocked", 1, ErrNever},
		{context.Background(), "blocked", 0, ErrNever},
		{ended, "k", 1, context.Canceled},
		{ended, "new", 1, context.Canceled},
		{deadline{soon, start.Add(5 * time.Second)}, "k", 50, context.DeadlineExceeded},
	} {
		if err := n.Wait(c.ctx, c.key, c.units); !errors.Is(err, c.is) {
			t.Errorf("row %d: Wait = %v, want %v", i, err, c.is)
		}
	}
	if s := n.Stats(); s.Counted != 100 || s.Limited != 5 || s.Entities != 1 {
		t.Errorf("%+v; want 100 units counted and 5 calls limited", s)
	}
	if err := n.Wait(context.Background(), "unknown", 500); err != nil {
		t.Errorf("a first contact: %v", err) // as Check allows it
	}
}

// deadline is a context whose deadline is on another clock.
type deadline struct {
	context.Context
	at time.Time
}

func (d deadline) Deadline() (time.Time, bool) { return d.at, true }

// Calls of one key pass in the order in which they came, whatever they ask for.
func TestCallsWaitInLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.Window, c.GlobalThreshold, c.Inclusive = WindowSliding, 60, true })
	for i := range 60 {
		n.check("k", 1)
		if i%5 == 4 {
			w.clock.Advance(5 * time.Second)
		}
	}
	var calls []*call
	for _, units := range []uint64{20, 1, 1, 5} {
		calls = append(calls, n.wait(context.Background(), "k", units))
	}
	if _, over := calls[1].over(); over {
		t.Fatal("a small call overtook a large one")
	}
	passed := 0
	for second := 0; passed < len(calls); second++ {
		if second > 120 {
			t.Fatalf("%d of %d passed", passed, len(calls))
		}
		w.clock.Advance(time.Second)
		for left := n.Stats().Waiting; len(calls)-passed > left; passed++ {
			if err := <-calls[passed].err; err != nil { // in order, or this blocks
				t.Fatal(err)
			}
		}
	}
}

func TestACallThatLeavesLetsTheNextOnePass(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.GlobalThreshold = 100 })
	n.check("k", 98)
	ctx, cancel := context.WithCancel(context.Background())
	large := n.wait(ctx, "k", 90)
	small := n.wait(context.Background(), "k", 1)
	cancel()
	if err := <-large.err; !errors.Is(err, context.Canceled) {
		t.Errorf("Wait = %v", err)
	}
	if err := <-small.err; err != nil { // without the clock's help
		t.Errorf("Wait = %v", err)
	}
	if s := n.Stats(); s.Counted != 99 || s.Waiting != 0 || s.Limited != 1 || len(n.waits.byKey) != 0 {
		t.Errorf("%+v; %d lines", s, len(n.waits.byKey))
	}
}

// What shortens a wait is noticed: units given back at once, thresholds within a tick.
func TestWaitsGetShorter(t *testing.T) {
	t.Parallel()
	for name, shorten := range map[string]func(n *node, res *Reservation){
		"given back": func(_ *node, res *Reservation) { res.Cancel() },
		"threshold": func(n *node, _ *Reservation) {
			n.SetOverrides(map[string]uint64{"k": 200})
			n.world.clock.Advance(time.Second)
		},
	} {
		w := newWorld(t)
		n := w.node(func(c *Config) { c.Window = WindowFixed })
		c := n.wait(context.Background(), "k", 1)
		res := n.Reserve("k", 98)
		if err := <-c.err; err != nil || !res.Decision().Allowed() {
			t.Fatalf("%s: %v, %v", name, err, res.Decision().Verdict())
		}
		c = n.wait(context.Background(), "k", 20)
		shorten(n, res)
		if err := <-c.err; err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWaitAfterCloseGoesByThisProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(nil)
	n.check("k", 99)
	c := n.wait(context.Background(), "k", 1)
	if err := n.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	w.clock.Advance(time.Minute)
	w.clock.Advance(time.Minute)
	if err := <-c.err; err != nil {
		t.Error(err)
	}
	if s := n.Stats(); s.Counted != 99 {
		t.Errorf("%+v", s)
	}
}

// On the system's clock a hundred callers get just the rate.
func TestWaitKeepsTheRate(t *testing.T) {
	t.Parallel()
	inBubble(t, func(c *Config) {
		c.Window, c.WindowInterval, c.GlobalThreshold, c.Inclusive = WindowSliding, 10*time.Second, 100, true
		c.TickInterval = time.Second
	}, func(t *testing.T, b *bubble) {
		var mu sync.Mutex
		var at []time.Duration
		var group sync.WaitGroup
		for range 50 {
			group.Go(func() {
				for range 10 {
					if err := b.Wait(t.Context(), "k", 1); err != nil {
						t.Error(err)
					}
					mu.Lock()
					at = append(at, time.Since(b.began))
					mu.Unlock()
				}
			})
		}
		group.Wait()
		for i := range at[:len(at)-101] {
			if within := at[i+100] - at[i]; within < 10*time.Second*29/30 {
				t.Fatalf("100 calls within %v, from %v on", within, at[i])
			}
		}
		if last := at[len(at)-1]; last > 60*time.Second {
			t.Errorf("500 calls took %v, want about 40 to 50 s", last)
		}
		if s := b.Stats(); s.Counted != 500 || s.Limited != 0 {
			t.Errorf("%+v", s)
		}
		b.Close(context.Background())
	})
}

// Calls that leave while they are answered count nothing.
func TestCallsThatLeaveCountNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.GlobalThreshold = 1 << 20 })
	var passed sync.Map
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for j := range 200 {
				ctx, cancel := context.WithCancel(context.Background())
				go cancel()
				if n.Wait(ctx, "k", 1) == nil {
					passed.Store(fmt.Sprint(i, " ", j), true)
				}
				cancel()
			}
		})
	}
	group.Wait()
	var want uint64
	passed.Range(func(any, any) bool { want++; return true })
	if s := n.Stats(); s.Counted-s.Returned.Taken != want || s.Waiting != 0 {
		t.Errorf("%d calls passed: %+v", want, s)
	}
}
