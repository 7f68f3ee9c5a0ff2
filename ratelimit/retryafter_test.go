package ratelimit

// This file tests that what a decision promises is true: the wait after which the same
// request passes, and what remains.

import (
	"context"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// windows are the kinds of window that promises are tested in.
var windows = map[string]func(*Config){
	"leaky":    func(c *Config) { c.Window = WindowLeaky },
	"sliding":  func(c *Config) { c.Window = WindowSliding },
	"strict":   func(c *Config) { c.Window, c.WindowStrict = WindowSliding, true },
	"3 slices": func(c *Config) { c.Window, c.WindowSlices = WindowSliding, 3 },
	"fixed":    func(c *Config) { c.Window = WindowFixed },
	"hourly":   func(c *Config) { c.Window, c.WindowCalendar = WindowFixed, CalendarHour },
	"daily": func(c *Config) {
		c.Window, c.WindowCalendar, c.WindowZone = WindowFixed, CalendarDay, "Australia/Lord_Howe"
	},
}

// promise is one limiter's timeline up to a request that is refused.
type promise struct {
	rt    *rapid.T
	w     *world
	nodes []*node
	open  []*Reservation
	down  bool
}

func newPromise(t *testing.T, rt *rapid.T, kind func(*Config)) *promise {
	p := &promise{rt: rt, w: newWorld(t)}
	burst := rapid.SampledFrom([]time.Duration{0, 0, 2 * time.Second, 20 * time.Second}).Draw(rt, "burst")
	inclusive, counts := rapid.Bool().Draw(rt, "inclusive"), rapid.Bool().Draw(rt, "count limited")
	byUnits := rapid.Bool().Draw(rt, "by units")
	threshold := rapid.OneOf(rapid.Uint64Range(1, 20), rapid.Uint64Range(20, 3000)).Draw(rt, "threshold")
	p.w.clock.Advance(time.Duration(rapid.Int64Range(0, minute).Draw(rt, "phase")))
	for range rapid.IntRange(1, 2).Draw(rt, "nodes") {
		p.nodes = append(p.nodes, p.w.node(func(c *Config) {
			c.GlobalThreshold, c.BurstInterval, c.Inclusive, c.CountLimited, c.SyncByUnits = threshold, burst, inclusive, counts, byUnits
			c.LocalCacheMaxEntries = 1
			if kind(c); c.WindowCalendar == CalendarDay {
				c.TickInterval = time.Minute // a day has enough of them
			}
		}))
	}
	return p
}

// step lets something happen.
func (p *promise) step() {
	n := rapid.SampledFrom(p.nodes).Draw(p.rt, "node")
	switch rapid.IntRange(0, 11).Draw(p.rt, "step") {
	case 0:
		p.turnOutage()
	case 1, 2, 3:
		p.w.clock.Advance(time.Duration(rapid.OneOf(rapid.Int64Range(0, second), rapid.Int64Range(0, minute), rapid.Int64Range(0, 2*second)).Draw(p.rt, "later")))
	case 4:
		p.open = append(p.open, n.Reserve("k", rapid.Uint64Range(0, 1+n.cfg.GlobalThreshold/2).Draw(p.rt, "reserved")))
	case 5:
		if last := len(p.open) - 1; last >= 0 {
			p.open[last].Commit(rapid.Uint64Range(0, 1+n.cfg.GlobalThreshold/4).Draw(p.rt, "actual"))
			p.open = p.open[:last]
		}
	default:
		n.Check("k", rapid.Uint64Range(0, 1+n.cfg.GlobalThreshold/2).Draw(p.rt, "units"))
	}
}

// turnOutage takes Redis away, or brings it back.
func (p *promise) turnOutage() {
	p.down = !p.down
	for _, n := range p.nodes {
		if p.down {
			n.link.breaks(errUnreachable, nil)
		} else {
			n.link.heals()
		}
	}
}

// tell has every node tell what it counted and learn what the others did.
func (p *promise) tell() {
	for range 2 {
		for _, n := range p.nodes {
			if e := n.entry("k"); e != nil {
				e.wantRead = true
			}
			n.Peek("k")
			n.Sync(context.Background())
		}
	}
}

// Whatever came before, ticks and reads go on, Redis is up or down or goes away: a client
// that obeys RetryAfter, to the nanosecond or in whole seconds, is not refused again.
func TestWhoObeysRetryAfterIsNotRefusedAgain(t *testing.T) {
	t.Parallel()
	for name, kind := range windows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refused := 0
			rapid.Check(t, func(rt *rapid.T) {
				p := newPromise(t, rt, kind)
				for range rapid.IntRange(1, 25).Draw(rt, "steps") {
					p.step()
				}
				n := p.nodes[0]
				if len(p.nodes) > 1 && !p.down {
					p.tell() // nothing is counted that it does not know
				}
				units := rapid.Uint64Range(0, n.cfg.GlobalThreshold).Draw(rt, "asked")
				d := n.Check("k", units)
				wait := d.RetryAfter()
				if d.Allowed() != (wait == 0) {
					rt.Fatalf("%v, retry after %v", d.Verdict(), wait)
				}
				if d.Allowed() || wait == Never {
					return
				}
				refused++
				if rapid.Bool().Draw(rt, "whole seconds") {
					wait = (wait + time.Second - 1) / time.Second * time.Second
				}
				if (len(p.nodes) == 1 || !p.down) && rapid.Bool().Draw(rt, "an outage begins or ends") {
					p.turnOutage()
				}
				p.w.clock.Advance(wait)
				if again := n.Check("k", units); !again.Allowed() {
					rt.Fatalf("%d units of %d, refused at level %v (bucket %v), told to wait %v, are refused at level %v (bucket %v), told to wait %v more; %v",
						units, d.Threshold(), d.Level(), d.held, wait, again.Level(), again.held, again.RetryAfter(), fmt.Sprint("down: ", p.down))
				}
			})
			if refused == 0 {
				t.Error("no timeline ended refused: the test tests nothing")
			}
		})
	}
}

// What remains passes at once if the limiter is inclusive, and one unit more does not.
func TestWhatRemainsPassesAndNoMore(t *testing.T) {
	t.Parallel()
	for name, kind := range windows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(rt *rapid.T) {
				p := newPromise(t, rt, func(c *Config) { kind(c); c.Inclusive, c.CountLimited = true, false })
				for range rapid.IntRange(1, 25).Draw(rt, "steps") {
					p.step()
				}
				n := p.nodes[0]
				n.Check("k", 1)
				d := n.Check("k", rapid.Uint64Range(1, 2*n.cfg.GlobalThreshold).Draw(rt, "asked"))
				remaining := d.Remaining()
				if remaining > d.Threshold() || !d.Allowed() && remaining >= d.units {
					rt.Fatalf("%v for %d units, %d remain of %d", d.Verdict(), d.units, remaining, d.Threshold())
				}
				if more := n.Check("k", remaining+1); d.Allowed() && more.Allowed() && d.burst.Interval == 0 {
					rt.Fatalf("%d remain at level %v of %d, and %d pass", remaining, d.Level(), d.Threshold(), remaining+1)
				}
				if remaining == 0 {
					return
				}
				if then := n.Check("k", remaining); d.Allowed() && !then.Allowed() && d.burst.Interval == 0 || !d.Allowed() && !then.Allowed() {
					rt.Fatalf("%d remain at level %v of %d after %v for %d, and are refused at level %v", remaining, d.Level(), d.Threshold(), d.Verdict(), d.units, then.Level())
				}
			})
		})
	}
}

// A refused request counts for nothing: what remains is what the others left.
func TestWhatRemainsAfterARefusedRequest(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ threshold, passed, refused, remaining uint64 }{
		{11, 8, 5, 3}, {50, 20, 100, 30}, {50, 20, 31, 30}, {7, 0, 7, 6}, {1000, 999, 1, 0},
	} {
		for name, kind := range windows {
			n := newWorld(t).node(func(c *Config) { kind(c); c.GlobalThreshold, c.StrictFirstContact = row.threshold, true })
			n.Check("k", row.passed)
			if d := n.Check("k", row.refused); d.Allowed() || d.Remaining() != row.remaining {
				t.Errorf("%s: of %d, %d passed and %d refused: %v, %d remain, want %d", name, row.threshold, row.passed, row.refused, d.Verdict(), d.Remaining(), row.remaining)
			}
		}
	}
}

// One of no units is answered as one of one unit, in every kind of window.
func TestNoUnitsAreAnsweredAsOne(t *testing.T) {
	t.Parallel()
	for name, kind := range windows {
		for _, inclusive := range []bool{false, true} {
			n := newWorld(t).node(func(c *Config) { kind(c); c.GlobalThreshold, c.Inclusive = 6, inclusive })
			for range 20 {
				peek, zero := n.Peek("k"), n.Check("k", 0)
				one := n.Check("k", 1)
				if peek.Verdict() != one.Verdict() || zero.Verdict() != one.Verdict() || peek.RetryAfter() != one.RetryAfter() {
					t.Fatalf("%s: Peek is %v, retry after %v; one unit is %v, retry after %v", name, peek.Verdict(), peek.RetryAfter(), one.Verdict(), one.RetryAfter())
				}
			}
		}
	}
}
