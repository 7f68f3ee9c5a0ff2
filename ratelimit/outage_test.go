package ratelimit

// This file holds a node to what it promises while its store does not answer: what
// it decides, what it keeps, and what it says.

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hanzoai/limiters/ratelimit/store"
)

// outages are the ways in which a store does not answer, by what a node knows of
// each attempt.
var outages = map[string]struct{ before, after error }{
	"unreachable":              {before: errUnreachable},
	"refusing":                 {before: errReadOnly},
	"silent":                   {before: errTimeout},
	"closing":                  {before: errEOF},
	"silent once it applied":   {after: errTimeout},
	"closing once it applied":  {after: errEOF},
	"answering something else": {before: fmt.Errorf("ERR upstream timeout")},
}

// TestFromTwoWindowsAfterTheCutOnOwnTrafficAloneDecides: a node that knew of a
// fleet far above the threshold limits, from two windows after it was cut off,
// exactly what its own sliding window says; so never a key whose local traffic is
// under its threshold.
func TestFromTwoWindowsAfterTheCutOnOwnTrafficAloneDecides(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t)
		threshold := rapid.Uint64Range(1, 80).Draw(rt, "threshold")
		change := func(c *Config) { c.GlobalThreshold, c.LocalCacheMaxEntries = threshold, 1 }
		n, other := w.node(change), w.node(change)
		defer n.end()
		n.check("k", 1)
		other.check("k", rapid.Uint64Range(1, 20*threshold).Draw(rt, "others"))
		w.clock.Advance(3 * time.Second) // both are synced, n after other
		w.clock.Advance(time.Duration(rapid.Int64Range(0, minute).Draw(rt, "phase")))
		kind := rapid.SampledFrom(slices.Sorted(maps.Keys(outages))).Draw(rt, "outage")
		n.link.breaks(outages[kind].before, outages[kind].after)
		cut := n.read()
		own := &reference{known: true, counts: map[int64]uint64{}}
		for range rapid.IntRange(10, 80).Draw(rt, "steps") {
			w.clock.Advance(time.Duration(rapid.Int64Range(0, minute/6).Draw(rt, "advance")))
			r := n.read()
			units := rapid.Uint64Range(0, threshold+1).Draw(rt, "units")
			level := own.at(r.epoch, float64(r.into)/float64(minute)) + float64(units)
			d := n.check("k", units)
			if d.Verdict() == yes {
				own.counts[r.epoch] += units
			}
			if r.mono-cut.mono < 2*minute {
				continue
			}
			want := yes
			if level >= float64(threshold) {
				want = no
			}
			if d.Verdict() != want || math.Abs(d.Level()-level) > 1e-6 {
				rt.Fatalf("%s, %v after the cut: %d units are %v at level %v; own traffic says %v at %v",
					kind, time.Duration(r.mono-cut.mono), units, d.Verdict(), d.Level(), want, level)
			}
		}
	})
}

// TestAnOverrideLoweredInAnOutageLocksNoKeyForLongerThanTwoWindows, whatever the
// fleet had counted and whatever the override was.
func TestAnOverrideLoweredInAnOutageLocksNoKeyForLongerThanTwoWindows(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t)
		n := w.node(func(c *Config) { c.GlobalThreshold, c.LocalCacheMaxEntries = 1_000_000, 1 })
		defer n.end()
		n.check("k", rapid.Uint64Range(1, 999_999).Draw(rt, "counted"))
		w.clock.Advance(time.Duration(rapid.Int64Range(minute/60, minute).Draw(rt, "phase")))
		kind := rapid.SampledFrom(slices.Sorted(maps.Keys(outages))).Draw(rt, "outage")
		n.link.breaks(outages[kind].before, outages[kind].after)
		lowered := rapid.Uint64Range(2, 1000).Draw(rt, "lowered")
		n.SetOverrides(map[string]uint64{"k": lowered})
		if d := n.check("k", 1); d.RetryAfter() > 2*time.Minute {
			rt.Fatalf("%s: locked for %v", kind, d.RetryAfter())
		}
		w.clock.Advance(2 * time.Minute)
		if d := n.check("k", lowered-1); d.Verdict() != yes {
			rt.Fatalf("%s: %d units are still %v two windows on, at level %v of %d", kind, lowered-1, d.Verdict(), d.Level(), lowered)
		}
	})
}

// TestTheFleetViewReturnsWithinTwoTicks after an outage of any kind and length.
func TestTheFleetViewReturnsWithinTwoTicks(t *testing.T) {
	t.Parallel()
	for kind, failure := range outages {
		for _, length := range []time.Duration{time.Second, 10 * time.Second, time.Minute, 5 * time.Minute} {
			t.Run(fmt.Sprintf("%s for %v", kind, length), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				n, other := w.node(nil), w.node(nil)
				n.check("k", 1)
				other.check("k", 1)
				w.clock.Advance(2 * time.Second)
				n.link.breaks(failure.before, failure.after)
				for range length / time.Second {
					n.check("k", 1)
					w.clock.Advance(time.Second)
				}
				other.check("k", 98)
				w.clock.Advance(time.Second) // the other node's count arrives
				if d := n.check("k", 1); d.Verdict() != yes {
					t.Fatalf("cut off, %v at level %v: the node cannot know", d.Verdict(), d.Level())
				}
				n.link.heals()
				w.clock.Advance(2 * time.Second)
				d := n.check("k", 1)
				if d.Verdict() != no || d.Basis() != BasisFleet || d.Level() < 98 {
					t.Errorf("two ticks after healing: %v by %v at level %v, want the fleet's 98 and more", d.Verdict(), d.Basis(), d.Level())
				}
				w.conserves(n, other)
			})
		}
	}
}

// TestAnHourLongOutageIsBounded in memory, by what the configuration says, while
// ever more keys come; what is dropped is counted, and one line is logged.
func TestAnHourLongOutageIsBounded(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"unreachable", "silent"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			const entries, kept, perTick = 300, 200, 15
			w := newWorld(t)
			n := w.node(func(c *Config) { c.LocalCacheMaxEntries, c.ChannelCapacity = entries, kept })
			n.link.breaks(outages[kind].before, outages[kind].after)
			counted := uint64(0)
			for second := range 3600 {
				for i := range perTick {
					n.Check(fmt.Sprintf("k%d", second*perTick+i), 2)
					counted += 2
				}
				w.clock.Advance(time.Second)
				n.link.take()
				if second%60 != 59 {
					continue
				}
				held := 0
				for i := range n.table.shards {
					for range n.table.shards[i].entries.each() {
						held++
					}
				}
				if most := entries + kept + n.cfg.MaxKeysPerScript; held > most {
					t.Fatalf("after %d s: %d entries are held, at most %d may be", second+1, held, most)
				}
				s := n.Stats()
				if s.Counted != counted || s.Undelivered+s.Dropped.Total() != counted || s.Delivered != 0 {
					t.Fatalf("after %d s: %d units counted, %+v", second+1, counted, s)
				}
			}
			s := n.Stats()
			if s.Dropped.Overflow == 0 {
				t.Errorf("nothing was dropped as overflow: %+v", s.Dropped)
			}
			if unknown := s.Dropped.Unknown > 0; unknown != (kind == "silent") {
				t.Errorf("%d units are unknown", s.Dropped.Unknown)
			}
			if lines := strings.Count(n.log.String(), "\n"); lines != 1 {
				t.Errorf("an hour's outage logged %d lines, want 1:\n%s", lines, n.log)
			}
			n.link.heals()
			w.clock.Advance(time.Duration(n.cfg.TierScanIntervalTicks+1) * time.Second) // the scan queues what a full queue turned away
			if s := n.Stats(); s.Undelivered != 0 {
				t.Errorf("one scan after healing %d units are undelivered", s.Undelivered)
			}
		})
	}
}

// TestAnOutageLogsTwoLines: that it began and that it ended and how long it took,
// whatever its length and however the failures change meanwhile.
func TestAnOutageLogsTwoLines(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(nil)
	n.check("k", 1)
	w.clock.Advance(time.Second)
	for round, length := range []int{3, 10, 1000} {
		for second := range length {
			kinds := slices.Sorted(maps.Keys(outages))
			failure := outages[kinds[second%len(kinds)]]
			n.link.breaks(failure.before, failure.after)
			n.check("k", 1)
			w.clock.Advance(time.Second)
		}
		n.link.heals()
		w.clock.Advance(time.Minute)
		lines := strings.Split(strings.TrimSpace(n.log.String()), "\n")
		if want := 2 * (round + 1); len(lines) != want {
			t.Fatalf("after %d outages %d lines, want %d:\n%s", round+1, len(lines), want, n.log)
		}
		if last := lines[len(lines)-1]; !strings.Contains(last, "up again") || !strings.Contains(last, "after=") {
			t.Errorf("the last line does not sum the outage up: %s", last)
		}
	}
}

// A link that comes and goes is told of five times at once and then once a minute, and an
// outage that lasts is told even if it began in silence.
func TestALinkThatComesAndGoesDoesNotFillTheLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(nil)
	for second := range 600 {
		if n.link.heals(); second%5 < 3 {
			n.link.breaks(errReadOnly, nil)
		}
		n.check("k", 1)
		w.clock.Advance(time.Second)
	}
	if lines := strings.Count(n.log.String(), "\n"); lines != 2*(outagesSaid+9) {
		t.Errorf("%d lines in ten minutes of flapping, want a pair for each of the first %d outages, and one a minute:\n%s", lines, outagesSaid, n.log)
	}
	if !strings.Contains(n.log.String(), "outages=12") {
		t.Errorf("no line tells of the 12 outages of a minute:\n%s", n.log)
	}
	n.log.Reset()
	n.link.breaks(errUnreachable, nil)
	for range 120 {
		n.check("k", 1)
		w.clock.Advance(time.Second)
	}
	if lines := strings.Count(n.log.String(), "\n"); lines != 1 {
		t.Errorf("two minutes down logged %d lines, want 1:\n%s", lines, n.log)
	}
}

// One lost reply, or two, or three within a moment, are no outage.
func TestFewFailedAttemptsAreNoOutage(t *testing.T) {
	t.Parallel()
	for _, failure := range []error{errUnreachable, errReadOnly, errTimeout} {
		w := newWorld(t)
		n := w.node(nil)
		n.check("k", 1)
		w.clock.Advance(time.Second)
		n.link.breaks(failure, nil)
		n.check("k", 1)
		w.clock.Advance(time.Second)
		for range 10 {
			n.syncFails() // at the moment of the first attempt
		}
		if s := n.Stats(); !s.Partitions[0].Up || n.log.Len() != 0 {
			t.Errorf("%v: up %v after attempts within a moment: %s", failure, s.Partitions[0].Up, n.log)
		}
		w.clock.Advance(time.Second)
		if s := n.Stats(); s.Partitions[0].Up || strings.Count(n.log.String(), "is down") != 1 {
			t.Errorf("%v: up %v after a second: %s", failure, s.Partitions[0].Up, n.log)
		}
		w.conserves(n)
	}
}

// Each outage is told at once, the second within a minute too, and so is its end, with what
// was dropped.
func TestEachOutageAndItsEndAreTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.WindowInterval, c.SyncByUnits = 10*time.Second, false })
	for _, row := range []struct {
		outage time.Duration
		want   []string
	}{
		{5 * time.Second, []string{"after=5s", "dropped=0"}},
		{40 * time.Second, []string{"after=40s", "dropped=7"}},
	} {
		n.check("k", 1)
		w.clock.Advance(2 * time.Second)
		n.lines()
		n.link.breaks(errReadOnly, nil)
		n.check("k", 7)
		w.clock.Advance(row.outage)
		n.logs("down", []string{"level=WARN", "is down", "for=1.25s", "attempts=3", "cause=read_only"})
		n.link.heals()
		w.clock.Advance(time.Second)
		n.logs("up", append(row.want, "is up again"))
		w.conserves(n)
	}
}

// TestCountersThatCannotBeWrittenLogALineInTenMinutes, however many there are.
func TestCountersThatCannotBeWrittenLogALineInTenMinutes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(nil)
	n.link.hook(nil, func(r *store.Reply) error {
		for i := range r.Writes {
			r.Writes[i] = store.WriteResult{Status: store.Poisoned, Total: store.Invalid}
		}
		return nil
	})
	for range 3600 {
		n.check("k", 1)
		n.check("l", 1)
		w.clock.Advance(time.Second)
		n.link.take()
	}
	if lines := strings.Count(n.log.String(), "\n"); lines < 6 || lines > 7 {
		t.Errorf("%d lines in an hour, want one in ten minutes:\n%s", lines, n.log)
	}
}
