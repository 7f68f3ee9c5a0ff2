package ratelimit

// This file tests what the log hears: changes of state, once each, and no line per
// event, whatever lasts however long.

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hanzoai/limiters/ratelimit/store"
)

// lines returns the log's lines since the last call.
func (n *node) lines() []string {
	text := n.log.String()
	n.log.Reset()
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// logs compares the log's lines since the last call: each must hold all of the
// words of its row.
func (n *node) logs(row string, want ...[]string) {
	n.world.t.Helper()
	got := n.lines()
	if len(got) != len(want) {
		n.world.t.Errorf("%s: %d lines, want %d:\n%s", row, len(got), len(want), strings.Join(got, "\n"))
		return
	}
	for i := range want {
		for _, word := range append(want[i], "scope=") {
			if !strings.Contains(got[i], word) {
				n.world.t.Errorf("%s: line %d is %q, want %q in it", row, i, got[i], word)
			}
		}
	}
}

func TestAnOutageOfAnHourIsTwoLines(t *testing.T) {
	t.Parallel()
	for _, failure := range []error{errUnreachable, errReadOnly, errTimeout, errEOF} {
		w := newWorld(t)
		n := w.node(func(c *Config) { c.Scope, c.TickInterval = "here", 10*time.Second })
		work := func(ticks int) {
			for i := range ticks {
				n.check("busy", 1)
				n.check(fmt.Sprint("k", i%40), 1)
				w.clock.Advance(10 * time.Second)
			}
		}
		work(6)
		n.logs("healthy")
		n.link.breaks(failure, nil)
		work(360)
		n.logs("down", []string{"level=WARN", "is down", "scope=here", "partition=memory", "step=", "cause=", "error="})
		n.link.heals()
		work(6)
		n.logs("up", []string{"level=INFO", "is up again", "after=1h0m", "partition=memory"})
		w.conserves(n)
	}
}

func TestAPartitionDownFromTheStartIsSaidOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(nil)
	n.link.breaks(errUnreachable, nil)
	for range 5 {
		n.check("a", 1)
		w.clock.Advance(time.Second)
	}
	n.logs("down", []string{"is down", "cause=unreachable"})
	n.link.heals()
	w.clock.Advance(time.Second)
	n.logs("up", []string{"is up again", "after=5s", "dropped=0"})
}

func TestAnotherWindowIsSaidOncePerChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(nil)
	key := windowKey(n.cfg.RedisKeyPrefix)
	sync := func(times int) {
		for range times {
			n.check("a", 1)
			n.sync()
		}
	}
	sync(3)
	n.logs("agreed")
	w.mem.Set(key, "30000")
	sync(5)
	n.logs("another window", []string{"level=WARN", "another window", "window=1m0s", "other_window=30s", "prefix=" + n.cfg.RedisKeyPrefix})
	w.mem.Set(key, "no number") // says nothing either way
	sync(3)
	w.mem.Set(key, "30000")
	sync(3)
	n.logs("unreadable, and the same again")
	w.mem.Set(key, "10000")
	sync(3)
	n.logs("a third window", []string{"another window", "other_window=10s"})
	w.mem.Set(key, "60000")
	sync(3)
	n.logs("agreed again", []string{"level=INFO", "is this limiter's again", "window=1m0s"})
	if got := n.partitions[0].snapshot().mismatches; got != 5+3+3 {
		t.Errorf("%d mismatches counted, want each of the 11 replies that showed another window", got)
	}
}

// Counters that cannot be written are said at once, then with their number every
// ten minutes while they last.
func TestFailingCountersAreSaidEveryTenMinutes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status store.Status
		want   string
	}{
		{store.Poisoned, "hold no valid count"},
		{store.Refused, "refuses single counters"},
		{store.Unexpiring, "to let new counters expire"},
	} {
		w := newWorld(t)
		n := w.node(func(c *Config) { c.TickInterval = 10 * time.Second })
		n.link.hook(func(b *store.Batch) error {
			for _, write := range b.Writes {
				switch c.status {
				case store.Poisoned:
					w.mem.Set(write.Key, "x")
				default:
					w.mem.Fail(write.Key, c.status)
				}
			}
			return nil
		}, nil)
		checked := 0
		run := func(ticks int) {
			for range ticks {
				n.check(fmt.Sprint("a", checked), 1) // a new counter
				checked++
				w.clock.Advance(10 * time.Second)
			}
		}
		drops := func(lines ...[]string) [][]string { // beside these lines: units that are refused become stale
			if c.status == store.Refused {
				lines = append([][]string{{"level=WARN", "units were dropped", "units="}}, lines...)
			}
			return lines
		}
		run(1)
		n.logs("first", []string{"level=WARN", c.want, "writes=1", "partition=memory"})
		run(59)
		n.logs("within ten minutes", drops()...)
		run(1)
		n.logs("ten minutes later", []string{c.want, "writes="})
		run(300)
		if got, want := len(n.lines()), 5*(1+len(drops())); got != want {
			t.Errorf("%s: %d lines in fifty minutes more, want %d", c.want, got, want)
		}
	}
}

// No line holds an entity key: keys are many, and may be personal.
func TestTheLogHoldsNoEntityKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(nil)
	const secret = "someone@example.org"
	w.mem.Set(n.counterKey(secret, n.epochAt(0)), "x")
	n.check(secret, 5)
	n.sync()
	n.check(secret, 5)
	n.link.breaks(errTimeout, nil)
	n.syncFails()
	n.link.heals()
	n.sync()
	n.Forget(secret)
	lines := n.lines()
	if len(lines) == 0 {
		t.Error("nothing was logged")
	}
	for _, line := range lines {
		if strings.Contains(line, secret) {
			t.Errorf("the log says %q", line)
		}
	}
}
