package ratelimit

// This file tests what the kinds of window promise on one node.

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// One node admits exactly what its threshold says, whatever the number of goroutines, in
// every kind of window.
func TestOneNodeAdmitsExactlyItsThreshold(t *testing.T) {
	t.Parallel()
	for name, kind := range windows {
		for _, inclusive := range []bool{false, true} {
			for _, threshold := range []uint64{1, 2, 40, 1000} {
				n := newWorld(t).node(func(c *Config) {
					kind(c)
					c.GlobalThreshold, c.Inclusive, c.StrictFirstContact = threshold, inclusive, true
				})
				want := threshold - 1
				if inclusive {
					want = threshold
				}
				var passed atomic.Uint64
				var callers sync.WaitGroup
				for range 8 {
					callers.Go(func() {
						for range threshold/4 + 2 {
							if n.Allow("k") {
								passed.Add(1)
							}
						}
					})
				}
				callers.Wait()
				if got := passed.Load(); got != want {
					t.Errorf("%s, inclusive %v: %d of %d passed, want %d", name, inclusive, got, threshold, want)
				}
			}
		}
	}
}

// With WindowStrict and StrictFirstContact no window of one node exceeds the threshold,
// whatever the traffic, and whether Redis answers or not.
func TestNoStrictWindowOfOneNodeExceedsTheThreshold(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t)
		threshold := rapid.Uint64Range(1, 200).Draw(rt, "threshold")
		n := w.node(func(c *Config) {
			c.Window, c.WindowStrict, c.StrictFirstContact, c.Inclusive = WindowSliding, true, true, true
			c.GlobalThreshold, c.WindowSlices = threshold, rapid.IntRange(2, 40).Draw(rt, "slices")
			c.SyncByUnits = rapid.Bool().Draw(rt, "by units")
			c.LocalCacheMaxEntries = 1
		})
		w.clock.Advance(time.Duration(rapid.Int64Range(0, minute).Draw(rt, "phase")))
		type pass struct{ at, units int64 }
		var passed []pass
		for range rapid.IntRange(1, 150).Draw(rt, "steps") {
			switch rapid.IntRange(0, 9).Draw(rt, "step") {
			case 0:
				if rapid.Bool().Draw(rt, "down") {
					n.link.breaks(errUnreachable, nil)
				} else {
					n.link.heals()
				}
			case 1, 2, 3, 4:
				w.clock.Advance(time.Duration(rapid.OneOf(rapid.Int64Range(0, second), rapid.Int64Range(0, 20*second)).Draw(rt, "later")))
			default:
				units := rapid.Uint64Range(1, 1+threshold/4).Draw(rt, "units")
				if n.Check("k", units).Allowed() {
					passed = append(passed, pass{n.read().mono, int64(units)})
				}
			}
		}
		for i, from := range passed {
			sum := int64(0)
			for _, p := range passed[i:] {
				if p.at-from.at < minute {
					sum += p.units
				}
			}
			if sum > int64(threshold) {
				rt.Fatalf("%d units passed within a minute from %v on, the threshold is %d", sum, time.Duration(from.at), threshold)
			}
		}
	})
}

// A fixed window's quota is exact in each period, and no idle timeout shorter than that is
// accepted: what was used up stays so.
func TestAFixedQuotaUsedUpStaysSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) {
		c.Window, c.WindowCalendar, c.WindowZone, c.Inclusive, c.GlobalThreshold = WindowFixed, CalendarDay, "Europe/Berlin", true, 50
		c.StrictFirstContact = true
	})
	for day := range 3 {
		passed := 0
		for range 24 * 6 {
			if n.Allow("k") {
				passed++
			}
			w.clock.Advance(10 * time.Minute)
		}
		if passed < 50 {
			t.Errorf("day %d: %d passed, want 50 at least", day, passed)
		}
	}
	if s := n.Stats(); s.Allowed > 4*50 {
		t.Errorf("%d passed in a part of four days of Berlin, of 50 a day", s.Allowed)
	}
	keys := fmt.Sprint(w.mem.Keys())
	start := time.Date(2026, 1, 3, 23, 0, 0, 0, time.UTC).Unix()
	if n.Check("k", 0); !strings.Contains(keys, fmt.Sprint(":k:", start)) {
		t.Errorf("the store holds %s, want a counter that is named by %d, the start of a day of Berlin", keys, start)
	}
}

// Mixed deployments are told, by both sides: fixed windows, calendars and zones have
// numbers of their own, and windows that leak and that slide share one.
func TestWindowsThatDifferHaveNumbersThatDiffer(t *testing.T) {
	t.Parallel()
	configure := func(w WindowKind, c Calendar, zone string, d time.Duration) Config {
		cfg := DefaultConfig()
		cfg.Window, cfg.WindowCalendar, cfg.WindowZone, cfg.WindowInterval = w, c, zone, d
		return cfg.Resolved()
	}
	if a, b := windowNumber(configure(WindowLeaky, "", "UTC", time.Minute)), windowNumber(configure(WindowSliding, "", "UTC", time.Minute)); a != b || a != 60_000 {
		t.Errorf("leaky is %d, sliding %d; want both 60000", a, b)
	}
	seen := map[int64]string{60_000: "leaky"}
	for _, cfg := range []Config{
		configure(WindowFixed, "", "UTC", time.Minute), configure(WindowFixed, "", "UTC", 24*time.Hour), configure(WindowFixed, "", "UTC", 8760*time.Hour),
		configure(WindowFixed, CalendarHour, "UTC", time.Minute), configure(WindowFixed, CalendarDay, "UTC", time.Minute),
		configure(WindowFixed, CalendarDay, "Europe/Berlin", time.Minute), configure(WindowFixed, CalendarDay, "Asia/Kolkata", time.Minute),
		configure(WindowFixed, CalendarWeek, "UTC", time.Minute), configure(WindowFixed, CalendarMonth, "UTC", time.Minute),
	} {
		number := windowNumber(cfg)
		if before, twice := seen[number]; twice || number <= 8760*3600*1000 {
			t.Errorf("%v has the number %d, as has %s", cfg, number, before)
		}
		seen[number] = cfg.String()
	}
	for _, kinds := range [][2]WindowKind{{WindowLeaky, WindowFixed}, {WindowFixed, WindowLeaky}, {WindowSliding, WindowFixed}, {WindowLeaky, WindowSliding}} {
		w := newWorld(t)
		first, second := w.node(func(c *Config) { c.Window = kinds[0] }), w.node(func(c *Config) { c.Window = kinds[1] })
		first.check("k", 1)
		w.clock.Advance(time.Second)
		second.check("k", 1)
		w.clock.Advance(time.Second)
		if got, want := strings.Contains(second.log.String(), "another window"), windowNumber(first.cfg) != windowNumber(second.cfg); got != want {
			t.Errorf("%s after %s: said so: %v, want %v: %s", kinds[1], kinds[0], got, want, second.log)
		}
	}
}

// A node that holds its part syncs between ticks, and one that does not waits.
func TestANodeThatHoldsItsPartSyncsBetweenTicks(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		threshold, units uint64
		want             int // scripts within the tick
	}{
		{10_000, 2, 0}, {10_000, 9, 1}, {100, 1, 0}, {100, 2, 1}, {1_000_000, 100, 0}, {1_000_000, 1000, 1},
	} {
		w := newWorld(t)
		n := w.node(func(c *Config) { c.GlobalThreshold = row.threshold })
		n.check("k", 1)
		w.clock.Advance(3 * time.Second) // the budget is that of three ticks
		n.entry("k").share = 0           // it does not know its share
		n.link.take()
		n.check("k", row.units)
		w.clock.Advance(500 * time.Millisecond)
		if got := len(n.link.take()); got != row.want {
			t.Errorf("%d units of %d: %d scripts within the tick, want %d", row.units, row.threshold, got, row.want)
		}
		w.conserves(n)
	}
}

// Syncs by units keep their distance, their budget, and quiet while Redis is away.
func TestSyncsByUnitsKeepTheirBounds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.GlobalThreshold, c.Window = 1000, WindowSliding })
	w.clock.Advance(20 * time.Second) // as much saved up as may be
	for i := range 50 {
		n.Check(fmt.Sprint("k", i), 1)
	}
	w.clock.Advance(time.Second)
	n.link.take()
	for second := range 3 {
		for range 200 { // 50 entities far below 80 %, each at its part all the time
			for i := range 50 {
				if second == 0 {
					n.Check(fmt.Sprint("k", i), 2)
				}
			}
			w.clock.Advance(5 * time.Millisecond)
		}
		if got := len(n.link.take()); got > 1+scriptsSaved+scriptsPerTick {
			t.Errorf("%d scripts in a tick, want %d at most", got, 1+scriptsSaved+scriptsPerTick)
		}
	}
	n.link.breaks(errTimeout, nil)
	for range 200 {
		n.Check("k1", 5)
		w.clock.Advance(5 * time.Millisecond)
	}
	if got := len(n.link.take()); got > 3 {
		t.Errorf("%d attempts in a second while Redis hangs, want one sync by units and the ticks", got)
	}
	n.link.heals()
	w.clock.Advance(3 * time.Second)
	if err := n.Close(context.Background()); err != nil {
		t.Error(err)
	}
}
