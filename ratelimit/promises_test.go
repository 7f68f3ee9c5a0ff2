package ratelimit

// This file tests promises across what happens between two checks: ticks, scans, outages,
// boundaries, and questions that count nothing.

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hanzoai/limiters/ratelimit/store"
)

// levelNow is the entity's level, of which nothing is asked.
func (n *node) levelNow(key string) float64 {
	e, r := n.entry(key), n.read()
	if e == nil {
		return 0
	}
	e.lock()
	defer e.unlock()
	return e.levelLocked(&r, &n.constants)
}

// What a window no longer holds does not come back: not when a scan finds its slices empty,
// not at a tick, not at a boundary.
func TestASlidingLevelDoesNotRiseByItself(t *testing.T) {
	t.Parallel()
	for _, down := range []bool{false, true} {
		for at := range 60 {
			w := newWorld(t)
			n := w.node(func(c *Config) { c.Window, c.TierScanIntervalTicks = WindowSliding, 1+at%7 })
			if down {
				n.link.breaks(errUnreachable, nil)
			}
			w.clock.Advance(time.Duration(at) * time.Second)
			n.Check("k", 60)
			n.Check("k", 30)
			w.clock.Advance(time.Second)
			for before, i := n.levelNow("k"), 0; i < 130; i++ {
				w.clock.Advance(time.Second)
				now := n.levelNow("k")
				if now > before {
					t.Fatalf("90 units counted %d s into the window, Redis down: %v: %d s later the level rises from %v to %v", at, down, i+2, before, now)
				}
				if i > 61 && now != 0 {
					t.Fatalf("90 units counted %d s into the window, Redis down: %v: %d s later the level is %v", at, down, i+2, now)
				}
				before = now
			}
		}
	}
}

// Reset is when nothing is left: then the level is 0, whatever ticks and scans did.
func TestResetIsWhenNothingIsLeft(t *testing.T) {
	t.Parallel()
	for name, kind := range windows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(rt *rapid.T) {
				p := newPromise(t, rt, kind)
				for range rapid.IntRange(1, 25).Draw(rt, "steps") {
					p.step()
				}
				n := p.nodes[0]
				if len(p.nodes) > 1 {
					if p.down {
						p.turnOutage()
					}
					p.tell() // nothing is counted that it does not know
				}
				d := n.Check("k", rapid.Uint64Range(0, n.cfg.GlobalThreshold).Draw(rt, "asked"))
				reset := d.Reset()
				p.w.clock.Advance(reset)
				if left := n.levelNow("k"); left > 0 {
					rt.Fatalf("%v at level %v, reset after %v: then the level is %v", d.Verdict(), d.Level(), reset, left)
				}
			})
		})
	}
}

// A question that counts nothing, and a request that is refused, take from nobody the
// promise that it passes when an epoch begins; and it is one request that passes so.
func TestAQuestionTakesNoPromise(t *testing.T) {
	t.Parallel()
	ask := map[string]func(n *node){
		"nothing":          func(*node) {},
		"a Peek":           func(n *node) { n.Peek("k") },
		"a WaitFor":        func(n *node) { n.WaitFor("k", 1) },
		"a refused Check":  func(n *node) { n.Check("k", 9) },
		"a refused group":  func(n *node) { n.CheckAll([]Item{{Key: "k", Units: 1}, {Key: "blocked", Units: 100}}) },
		"a CheckCustom":    func(n *node) { n.CheckCustom("k", 0) },
		"an unrelated key": func(n *node) { n.Check("other", 1) },
	}
	for name, question := range ask {
		n := newWorld(t).node(func(c *Config) { c.GlobalThreshold, c.CustomKeys = 10, Overrides{"blocked": 0} })
		n.link.breaks(errUnreachable, nil)
		n.Check("k", 9)
		n.world.clock.Advance(10 * time.Second)
		wait := n.Check("k", 1).RetryAfter()
		if wait != 50*time.Second {
			t.Fatalf("told to wait %v, want until the epoch begins", wait)
		}
		n.world.clock.Advance(wait)
		question(n)
		if wait := n.WaitFor("k", 1); wait != 0 {
			t.Errorf("after %s, at the moment that was named: one unit would pass in %v", name, wait)
		}
		if !n.Check("k", 1).Allowed() {
			t.Errorf("after %s, at the moment that was named: refused", name)
		}
		if n.Check("k", 1).Allowed() {
			t.Errorf("after %s, at the moment that was named: a second one passed", name)
		}
	}
}

// Entities that get pressed get slices at the next tick, however many do within one, in
// which order their ranks rise, whether Redis answers or not, and if it is their threshold
// that falls.
func TestWhoIsPressedGetsSlices(t *testing.T) {
	t.Parallel()
	ways := map[string]func(n *node, key string){
		"by checks": func(n *node, key string) { n.Check(key, 50) },
		"by checks after one that was refused": func(n *node, key string) {
			n.Check(key, 1)
			n.Check(key, 99)
			n.world.clock.Advance(0)
			n.Check(key, 50)
		},
		"by a record": func(n *node, key string) { n.Record(key, 50) },
		"by a group":  func(n *node, key string) { n.CheckAll([]Item{{Key: key, Units: 50}}) },
	}
	for name, press := range ways {
		for _, down := range []bool{false, true} {
			n := newWorld(t).node(func(c *Config) { c.Window, c.SyncByUnits = WindowSliding, false })
			if down {
				n.link.breaks(errUnreachable, nil)
			}
			const keys = 3 * leastPressed
			for range 2 {
				for i := range keys {
					n.Check(fmt.Sprint("k", i), 1)
					n.Check(fmt.Sprint("k", i), 99) // queued as a hot one, and far from it
				}
				n.world.clock.Advance(time.Second)
			}
			for i := range keys {
				press(n, fmt.Sprint("k", i))
			}
			n.world.clock.Advance(time.Second)
			without := 0
			n.eachEntry(func(e *entry) {
				if !e.ringed {
					without++
				}
			})
			if without > 0 {
				t.Errorf("pressed %s, Redis down: %v: %d of %d have no slices", name, down, without, keys)
			}
		}
	}
	n := newWorld(t).node(func(c *Config) { c.Window, c.GlobalThreshold = WindowSliding, 10_000 })
	n.Check("k", 100)
	n.world.clock.Advance(time.Second)
	n.link.breaks(errUnreachable, nil)
	n.SetOverrides(Overrides{"k": 100})
	n.Check("k", 1)
	n.world.clock.Advance(time.Second)
	if !n.entry("k").ringed {
		t.Error("the threshold fell to what was counted: no slices")
	}
}

// Units that are stale at once fill no bucket.
func TestStaleUnitsFillNoBucket(t *testing.T) {
	t.Parallel()
	for name, kind := range windows {
		n := newWorld(t).node(func(c *Config) { kind(c); c.BurstInterval, c.Inclusive = 6*time.Second, true })
		long := n.clock.(interface{ Now() (int64, int64) })
		wall, _ := long.Now()
		old := time.Unix(0, wall).Add(-3 * time.Duration(n.window))
		for range 3 {
			n.CheckAt("k", 50, old)
		}
		if d := n.Check("k", 1); !d.Allowed() {
			t.Errorf("%s: one unit is refused after stale ones at level %v, bucket %v", name, d.Level(), d.held)
		}
		if stale := n.Stats().Dropped.Stale; stale != 150 {
			t.Errorf("%s: %d units dropped as stale, want 150", name, stale)
		}
	}
}

// However much is counted, levels are finite and never negative, and a threshold beyond all
// counts limits nothing.
func TestLevelsOfHugeCounts(t *testing.T) {
	t.Parallel()
	for name, kind := range windows {
		for _, burst := range []time.Duration{0, time.Millisecond, time.Minute} {
			n := newWorld(t).node(func(c *Config) { kind(c); c.GlobalThreshold, c.BurstInterval = 1<<64-1, burst })
			for i := range 3000 {
				d := n.Check("k", 1<<64-1)
				if !d.Allowed() || !(d.Level() >= 0) || d.Remaining() > d.Threshold() || d.Reset() < 0 {
					t.Fatalf("%s, burst %v, check %d: %v, level %v, remaining %d, reset %v", name, burst, i, d.Verdict(), d.Level(), d.Remaining(), d.Reset())
				}
				if i%100 == 0 {
					n.world.clock.Advance(time.Second)
				}
			}
			n.SetOverrides(Overrides{"k": 1000})
			if d := n.Check("k", 1); d.Allowed() || d.RetryAfter() <= 0 {
				t.Errorf("%s, burst %v: the threshold falls, and one more unit is %v, retry after %v, at level %v", name, burst, d.Verdict(), d.RetryAfter(), d.Level())
			}
		}
	}
}

// A clock that stepped back into a short period of a calendar is told the end of the next
// one, not of the longest.
func TestAQuotaWaitsForTheNextPeriodAsLongAsThatIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) {
		c.Window, c.WindowCalendar, c.GlobalThreshold, c.Inclusive = WindowFixed, CalendarMonth, 5, true
	})
	w.clock.SetWall(time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC))
	n.Check("k", 5)
	w.clock.StepWall(-time.Hour)
	n.Check("k", 5)
	if got, want := n.Check("k", 1).RetryAfter(), 28*24*time.Hour+time.Hour; got != want {
		t.Errorf("both months are full: told to wait %v, want %v", got, want)
	}
}

// A return that Redis refuses while the epoch ends is owed still, and asked for again.
func TestARefusedReturnIsOwedAcrossABoundary(t *testing.T) {
	t.Parallel()
	for name, kind := range windows {
		w := newWorld(t)
		n := w.node(func(c *Config) { kind(c); c.SyncByUnits = false })
		r := n.read()
		rest := time.Duration(n.stretch(&r).To - r.wall)
		w.clock.StepWall(rest - time.Second)
		key := n.counterKey("k", n.epochAt(0))
		res := n.reserve("k", 5)
		n.sync()
		res.Cancel()
		w.mem.Fail(key, store.Refused)
		n.link.before = func(*store.Batch) error {
			w.clock.StepWall(2 * time.Second)
			n.link.before = nil
			return nil
		}
		n.sync()
		if owed := n.entry("k").owedLocked(); owed != 5 {
			t.Errorf("%s: %d units are owed after a refusal, want 5", name, owed)
		}
		w.mem.Fail(key, store.Written)
		n.sync()
		if total, _ := w.mem.Get(key); total != 0 || n.Stats().Returned.Taken != 5 {
			t.Errorf("%s: the store holds %d, %+v", name, total, n.Stats().Returned)
		}
	}
}

// A bucket holds what a burst may be under the threshold of now, whatever it was before.
func TestABucketIsCutWhenTheThresholdFalls(t *testing.T) {
	t.Parallel()
	for name, kind := range windows {
		n := newWorld(t).node(func(c *Config) { kind(c); c.GlobalThreshold, c.BurstInterval = 1000, DefaultConfig().WindowInterval/20 })
		capacity := uint64(n.burst.Capacity(1000))
		n.Check("k", capacity)
		n.SetOverrides(Overrides{"k": 500})
		d := n.Check("k", 1)
		if want := time.Duration(n.window) / 500; d.Allowed() || d.RetryAfter() > want+1 {
			t.Errorf("%s: %v, retry after %v, want limited for %v, the time in which one unit leaks", name, d.Verdict(), d.RetryAfter(), want)
		}
	}
}

// A wait that was told under another threshold is told anew.
func TestAWaitIsThatOfTheThresholdOfNow(t *testing.T) {
	t.Parallel()
	for name, kind := range windows {
		n := newWorld(t).node(func(c *Config) { kind(c); c.Inclusive = true })
		for range 10 {
			n.Check("k", 10)
			n.world.clock.Advance(2 * time.Second)
		}
		for _, threshold := range []uint64{100, 50, 90, 20} {
			n.SetOverrides(Overrides{"k": threshold})
			d := n.Check("k", 1)
			if want := n.WaitFor("k", 1); d.RetryAfter() != want || d.Allowed() && want != 0 {
				t.Errorf("%s: at a threshold of %d %v, retry after %v; WaitFor says %v", name, threshold, d.Verdict(), d.RetryAfter(), want)
			}
		}
		n.world.clock.Advance(n.WaitFor("k", 1))
		if d := n.Check("k", 1); !d.Allowed() {
			t.Errorf("%s: after the wait that was told at a threshold of 20: %v at level %v", name, d.Verdict(), d.Level())
		}
	}
}

// An entity at a tenth of its threshold may get slices at the tick, or fall below it first: the
// wait holds either way.
func TestAWaitHoldsWhetherTheTickMakesSlicesOrNot(t *testing.T) {
	t.Parallel()
	refused := 0
	for at := 55 * time.Second; at < 75*time.Second; at += 70 * time.Millisecond {
		n := newWorld(t).node(func(c *Config) { c.Window, c.SyncByUnits, c.GlobalThreshold = WindowSliding, false, 1000 })
		n.world.clock.Advance(time.Second)
		n.Check("k", 9)
		n.world.clock.Advance(at)
		n.SetOverrides(Overrides{"k": 80})
		d := n.Check("k", 75)
		if d.Allowed() {
			continue
		}
		refused++
		n.world.clock.Advance(d.RetryAfter())
		if again := n.Check("k", 75); !again.Allowed() {
			t.Fatalf("after %v: told to wait %v, refused at level %v", at, d.RetryAfter(), again.Level())
		}
	}
	if refused == 0 {
		t.Error("nothing was refused")
	}
}
