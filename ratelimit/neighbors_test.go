package ratelimit

// This file tests that limiters whose prefixes extend each other are told.

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hanzoai/limiters/ratelimit/store"
)

// The longer prefix of two that share counters says so, whichever came first.
func TestPrefixesThatExtendEachOtherAreSaid(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ours, tag string
		others    []string
		want      string // in use
	}{
		{"p:a", "", []string{"p"}, "p"},
		{"p:a:b", "", []string{"p"}, "p"},
		{"p:a:b", "", []string{"p", "p:a"}, "p, p:a"},
		{"p:a", "t", []string{"{t}p"}, "{t}p"},
		{"p::a", "", []string{"p:"}, "p:"},
		{":p", "", []string{"p"}, ""},
		{"p:a", "", []string{"p:a", "p:b", "p:a:c", "q", "pp"}, ""},
		{"p", "", []string{"p:a"}, ""},
		{"p:a", "t", []string{"p"}, ""},
	} {
		w := newWorld(t)
		for i, other := range c.others {
			b := &store.Batch{Sequence: other + ":x:seq", Number: 1, Nonce: uint64(i), WindowKey: windowKey(other), Window: time.Minute, SequenceTTL: time.Hour}
			if err := w.mem.Apply(context.Background(), b, &store.Reply{}); err != nil {
				t.Fatal(err)
			}
		}
		l := &link{store: w.mem}
		n := w.node(func(cfg *Config) { cfg.RedisKeyPrefix = c.ours }, WithPartitions(Partition{Name: "memory", Store: l, HashTag: c.tag}))
		for range 3 {
			n.check("k", 1)
			n.sync()
		}
		lines := n.lines()
		count := len(strings.FieldsFunc(c.want, func(r rune) bool { return r == ',' }))
		switch {
		case c.want == "" && len(lines) != 0, c.want != "" && len(lines) != 1:
			t.Errorf("%q beside %q: said %q", c.ours, c.others, lines)
		case c.want != "" && !has(lines[0], "shorter key prefix", c.want, "level=WARN"):
			t.Errorf("%q beside %q: said %q, want %q", c.ours, c.others, lines, c.want)
		}
		if got := n.metrics.overlappingPrefixes[0].Get(); got != float64(count) {
			t.Errorf("%q beside %q: the metric is %v, want %d", c.ours, c.others, got, count)
		}
		looks := 0
		for _, b := range l.take() {
			if b.Number == 0 {
				looks++
			}
		}
		if want := min(1, strings.Count(strings.TrimPrefix(c.ours, ":"), ":")); looks != want {
			t.Errorf("%q: %d looks in three ticks, want %d", c.ours, looks, want)
		}
	}
}

// A look that fails or is refused counts nothing, denies nothing, and is not repeated
// before the next outage ends.
func TestALookThatIsDeniedCostsNothing(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]error{
		"denied":    &store.Error{Fate: store.Denied, Step: store.StepReply, Cause: store.CausePermission},
		"elsewhere": &store.Error{Fate: store.Denied, Step: store.StepReply, Cause: store.CauseCluster},
		"no answer": errTimeout,
		"unknown":   errors.New("boom"),
	} {
		w := newWorld(t)
		n := w.node(func(c *Config) { c.RedisKeyPrefix = "p:a" })
		looks := 0
		deny := func(b *store.Batch) error {
			if b.Number == 0 {
				looks++
				return answer
			}
			return nil
		}
		n.link.hook(deny, nil)
		for range 5 {
			n.check("k", 1)
			n.sync()
		}
		if s := n.Stats(); looks != 1 || !s.Partitions[0].Up || s.Partitions[0].RoundTrips != 5 || s.Delivered != 5 || len(n.lines()) != 0 {
			t.Errorf("%s: %d looks, %+v", name, looks, s)
		}
		n.link.breaks(errUnreachable, nil)
		n.check("k", 1)
		for range downAttempts {
			w.clock.Advance(time.Second)
		}
		n.lines()
		n.link.hook(deny, nil)
		for range 5 {
			n.check("k", 1)
			n.sync()
		}
		if looks != 2 {
			t.Errorf("%s: %d looks after an outage, want one more", name, looks)
		}
		w.conserves(n)
	}
}

// What answers a look wrongly is no answer.
func TestALookIsAnsweredAsOneOrNotAtAll(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(r *store.Reply){
		"a number":   func(r *store.Reply) { r.Number = 1 },
		"an outcome": func(r *store.Reply) { r.Outcome = store.Applied },
		"too few":    func(r *store.Reply) { r.Reads = nil },
		"too many":   func(r *store.Reply) { r.Reads = append(r.Reads, 9, 9) },
		"invalid":    func(r *store.Reply) { r.Reads[0] = store.Invalid },
	} {
		w := newWorld(t)
		w.mem.Set(windowKey("p"), "60000")
		n := w.node(func(c *Config) { c.RedisKeyPrefix = "p:a" })
		n.link.hook(nil, func(r *store.Reply) error {
			if r.Number == 0 {
				change(r)
			}
			return nil
		})
		n.check("k", 1)
		n.sync()
		if got := n.metrics.overlappingPrefixes[0].Get(); got != 0 || len(n.lines()) != 0 {
			t.Errorf("%s: %v prefixes found", name, got)
		}
	}
}
