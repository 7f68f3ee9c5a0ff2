package ratelimit

// This file tests that a batch counts once, whatever becomes of its attempts
// (docs/design.md, the tick): what acknowledges it, when it is sent again, and how
// it is given up.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hanzoai/limiters/ratelimit/store"
)

func TestAnAttemptAppliedWithoutAReplyCountsOnce(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]error{
		"timeout": errTimeout, "malformed": errWrongReply, "someone else's error": errors.New("boom"),
		"wrapped": fmt.Errorf("wrapped: %w", errTimeout),
	} {
		w := newWorld(t)
		n := w.node(nil)
		n.check("a", 7)
		n.link.breaks(nil, failure)
		for range 3 {
			n.syncFails()
			w.conserves(n)
		}
		n.link.heals()
		n.sync()
		if got := w.total(n, "a", n.epochAt(0)); got != 7 {
			t.Errorf("%s: the store holds %d, want 7", name, got)
		}
		if s := n.Stats(); s.Delivered != 7 || s.Undelivered != 0 || s.Partitions[0].Retries != 3 {
			t.Errorf("%s: %+v", name, s)
		}
		if e := n.entry("a"); e.slots[1].pending != 0 || e.slide.Aging != 7 {
			t.Errorf("%s: pending %d, estimate %v", name, e.slots[1].pending, e.slide.Aging)
		}
		w.conserves(n)
	}
}

func TestTheRetryFlagSaysThatAnAttemptMayHaveBeenApplied(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		failures []error
		want     []bool // the flag of each attempt, the last one answered
		retries  uint64
	}{
		{"never sent", []error{errUnreachable, errUnreachable}, []bool{false, false, false}, 0},
		{"refused", []error{errReadOnly, errUnreachable}, []bool{false, false, false}, 0},
		{"in doubt", []error{errTimeout}, []bool{false, true}, 1},
		{"in doubt, then refused", []error{errTimeout, errReadOnly, errUnreachable}, []bool{false, true, true, true}, 3},
		{"refused, then in doubt", []error{errReadOnly, errTimeout}, []bool{false, false, true}, 1},
	} {
		w := newWorld(t)
		n := w.node(nil)
		n.check("a", 1)
		for _, failure := range c.failures {
			n.link.breaks(failure, nil)
			n.syncFails()
		}
		n.link.heals()
		n.sync()
		n.check("a", 1)
		n.sync()
		var got []bool
		for _, b := range n.link.take() {
			got = append(got, b.Retry)
		}
		if want := append(c.want, false); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: retry flags %v, want %v and false for the next batch", c.name, got, want)
		}
		if got := n.Stats().Partitions[0].Retries; got != c.retries {
			t.Errorf("%s: %d retries, want %d", c.name, got, c.retries)
		}
		w.conserves(n)
	}
}

func TestAClosedConnectionIsRetriedAtOnceExactlyOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(nil)
	n.check("a", 1)
	n.link.breaks(nil, errEOF)
	for tick := 1; tick <= 3; tick++ {
		n.syncFails()
		if got := n.link.take(); len(got) != 2 || !got[1].Retry {
			t.Errorf("tick %d: attempts %+v, want the first and one retry", tick, got)
		}
	}
	n.link.hook(nil, once(errEOF))
	n.sync()
	if got := len(n.link.take()); got != 2 {
		t.Errorf("%d attempts when the connection was closed once, want 2", got)
	}
	n.check("a", 1)
	n.link.breaks(errTimeout, nil)
	n.syncFails()
	if got := len(n.link.take()); got != 1 {
		t.Errorf("%d attempts after a timeout, want 1 per tick", got)
	}
	n.link.heals()
	n.sync()
	if got := w.total(n, "a", n.epochAt(0)); got != 2 {
		t.Errorf("the store holds %d, want 2", got)
	}
	w.conserves(n)
}

func TestABatchIsGivenUpWhenItsEpochsAreUnreadable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		failure []error
		want    Dropped
	}{
		{"never left the node", []error{errUnreachable}, Dropped{Stale: 5}},
		{"refused by a known error", []error{errReadOnly}, Dropped{Stale: 5}},
		{"either", []error{errUnreachable, errReadOnly}, Dropped{Stale: 5}},
		{"in doubt", []error{errTimeout}, Dropped{Unknown: 5}},
		{"in doubt once", []error{errUnreachable, errTimeout, errReadOnly, errReadOnly}, Dropped{Unknown: 5}},
	} {
		for _, backwards := range []bool{false, true} {
			w := newWorld(t)
			n := w.node(func(c *Config) { c.TickInterval = 15 * time.Second })
			w.clock.Advance(30 * time.Second)
			n.check("a", 5)
			for _, failure := range c.failure {
				n.link.breaks(failure, nil)
				n.syncFails()
			}
			n.link.breaks(errUnreachable, nil)
			if backwards {
				w.clock.StepWall(-90*time.Second - 1) // two epochs back, by a nanosecond
			} else {
				w.clock.Advance(90*time.Second - 1)
				n.syncFails()
				if d := n.Stats().Dropped; d != (Dropped{}) {
					t.Errorf("%s: dropped %+v while a read can see it", c.name, d)
				}
				w.clock.Advance(1)
			}
			n.link.heals()
			n.link.take()
			n.sync() // only asks for the read that a's first sync wanted
			if got := n.Stats(); got.Dropped != c.want || got.Undelivered != 0 {
				t.Errorf("%s, backwards %v: %+v, want dropped %+v", c.name, backwards, got, c.want)
			}
			if got := n.saidAll(n.link.take()); strings.Contains(got, "+") {
				t.Errorf("%s: the tick wrote %q", c.name, got)
			}
			w.conserves(n)
			// The next batch has a new number, and is no retry.
			n.check("b", 1)
			n.sync()
			if b := n.link.take(); len(b) == 0 || b[len(b)-1].Retry {
				t.Errorf("%s: the next batch: %+v", c.name, b)
			}
			w.conserves(n)
		}
	}
}

// A store below the limiter (a proxy, a client library, a user's own) sends a batch
// twice, and answers by the second reply: that is as good as the first.
func TestABatchResentBelowTheLimiterCountsOnce(t *testing.T) {
	t.Parallel()
	for times := 1; times <= 4; times++ {
		for _, failing := range []error{nil, errTimeout, errEOF} {
			w := newWorld(t)
			n := w.node(nil)
			n.link.store = &repeating{Store: w.mem, times: times}
			for units := uint64(1); units <= 5; units++ {
				n.check("a", units)
				n.check("b", 2)
				if failing != nil {
					n.link.breaks(nil, failing)
					n.syncFails()
					n.link.heals()
				}
				n.sync()
			}
			if a, b := w.total(n, "a", n.epochAt(0)), w.total(n, "b", n.epochAt(0)); a != 15 || b != 10 {
				t.Errorf("sent %d times, failing %v: the store holds %d and %d, want 15 and 10", times, failing, a, b)
			}
			if s := n.Stats(); s.Delivered != 25 || s.Dropped != (Dropped{}) {
				t.Errorf("sent %d times, failing %v: %+v", times, failing, s)
			}
			w.conserves(n)
		}
	}
}

// A repeating store sends every batch several times.
type repeating struct {
	store.Store
	times int
}

func (s *repeating) Apply(ctx context.Context, b *store.Batch, r *store.Reply) (err error) {
	for range s.times {
		if err = s.Store.Apply(ctx, b, r); err != nil {
			return err
		}
	}
	return nil
}

// A batch under one's own number that is another limiter's (a cloned machine's): the
// identity is shared, and the units are sent under a new one, at the next tick.
func TestAStrangersBatchDrawsANewIdentity(t *testing.T) {
	t.Parallel()
	for _, held := range []string{"2 1", "7 1", "9007199254740991 18446744073709551615"} {
		strangers(t, held)
	}
}

func strangers(t *testing.T, held string) {
	w := newWorld(t)
	n := w.node(nil)
	n.check("a", 1)
	n.sync()
	n.link.take()
	n.check("a", 4)
	sequence := n.partitions[0].sequence
	w.mem.Set(sequence, held)
	n.syncFails()
	w.conserves(n)
	n.sync()
	attempts := n.link.take()
	if len(attempts) != 2 || attempts[0].Sequence != sequence || attempts[0].Number != 2 ||
		attempts[1].Sequence == sequence || attempts[1].Number != 1 || attempts[1].Retry {
		t.Errorf("attempts %+v, want number 2 under the old identity and 1 under a new one", attempts)
	}
	if got := w.total(n, "a", n.epochAt(0)); got != 5 {
		t.Errorf("the store holds %d, want 5", got)
	}
	n.check("a", 1)
	n.sync()
	if next := n.link.take(); len(next) != 1 || next[0].Sequence != attempts[1].Sequence || next[0].Number != 2 {
		t.Errorf("the next batch %+v, want number 2 under the new identity", next)
	}
	w.conserves(n)
}

func TestIdentitiesAreNotDrawnWithoutEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(nil)
	n.check("a", 4)
	n.link.hook(func(b *store.Batch) error { w.mem.Set(b.Sequence, "9 1"); return nil }, nil)
	for range 5 {
		if err := n.Sync(context.Background()); !errors.Is(err, errSequenceTaken) {
			t.Errorf("Sync = %v, want %v", err, errSequenceTaken)
		}
		if got := len(n.link.take()); got != 1 {
			t.Errorf("%d attempts in one tick, want 1", got)
		}
	}
	w.conserves(n)
	n.link.heals()
	n.sync()
	if got := w.total(n, "a", n.epochAt(0)); got != 4 {
		t.Errorf("the store holds %d, want 4", got)
	}
	w.conserves(n)
}

// A retry that finds no sequence key cannot know whether it was applied.
func TestAnOrphanIsUnknown(t *testing.T) {
	t.Parallel()
	for _, applied := range []bool{false, true} {
		w := newWorld(t)
		n := w.node(nil)
		n.check("a", 1)
		n.sync()
		n.check("a", 4)
		if applied {
			n.link.breaks(nil, errTimeout)
		} else {
			n.link.breaks(errTimeout, nil)
		}
		n.syncFails()
		n.check("a", 2)
		n.link.heals()
		w.mem.Delete(n.partitions[0].sequence)
		n.sync()
		if d := n.Stats().Dropped; d != (Dropped{Unknown: 4}) {
			t.Errorf("applied %v: dropped %+v, want 4 unknown", applied, d)
		}
		want := int64(1 + 2)
		if applied {
			want += 4
		}
		if got := w.total(n, "a", n.epochAt(0)); got != want {
			t.Errorf("applied %v: the store holds %d, want %d", applied, got, want)
		}
		// They stay in pending until they age: this node did let them through.
		if got := n.entry("a").slots[1].pending; got != 4 {
			t.Errorf("applied %v: %d pending, want 4", applied, got)
		}
		w.conserves(n)
	}
}

// A service is silent for so long that its sequence key expires, and whoever stands
// between drops the idle connection: the first attempt at the next batch ends
// without an answer, and its retry finds no sequence key. Nothing is lost.
func TestASequenceKeyThatExpiredInSilenceCostsNothing(t *testing.T) {
	t.Parallel()
	for name, pass := range map[string]func(*world, time.Duration){
		"time passes":         func(w *world, d time.Duration) { w.clock.Advance(d) },
		"the machine sleeps":  func(w *world, d time.Duration) { w.clock.StepWall(d) },
		"the wall steps back": func(w *world, d time.Duration) { w.mem.FlushAll(); w.clock.StepWall(-d) },
	} {
		for _, failure := range []struct{ before, after error }{{before: errEOF}, {after: errEOF}, {before: errTimeout}, {after: errTimeout}} {
			w := newWorld(t)
			n := w.node(nil)
			n.check("a", 1)
			n.sync()
			pass(w, 2*time.Hour)
			n.check("a", 4)
			n.link.breaks(failure.before, failure.after)
			n.syncFails()
			n.link.heals()
			n.sync()
			if d := n.Stats().Dropped; d != (Dropped{}) {
				t.Errorf("%s, %v: dropped %+v, want none", name, failure, d)
			}
			if got := w.total(n, "a", n.epochAt(0)); got != 4 {
				t.Errorf("%s, %v: the store holds %d, want 4", name, failure, got)
			}
			for _, v := range w.violations(func(c counter) bool { return c.epoch != n.epochAt(0) }, n) {
				t.Errorf("%s, %v: %s", name, failure, v)
			}
		}
	}
}

func TestASequenceKeyThatIsNone(t *testing.T) {
	t.Parallel()
	for _, doubtful := range []bool{false, true} {
		w := newWorld(t)
		n := w.node(nil)
		n.check("a", 4)
		if doubtful {
			n.link.breaks(errTimeout, nil)
			n.syncFails()
			n.link.heals()
		}
		n.link.take()
		sequence := n.partitions[0].sequence
		w.mem.SetForeign(sequence)
		if !doubtful {
			n.syncFails() // what is certain not to be applied waits under a new identity
		}
		n.sync()
		attempts := n.link.take()
		wantTotal, wantDropped, wantAttempts := int64(4), Dropped{}, 2
		if doubtful {
			wantTotal, wantDropped = 0, Dropped{Unknown: 4}
			wantAttempts = 2 // the entity asks again for its first read, under the new identity
		}
		if got := w.total(n, "a", n.epochAt(0)); got != wantTotal {
			t.Errorf("in doubt %v: the store holds %d, want %d", doubtful, got, wantTotal)
		}
		if d := n.Stats().Dropped; d != wantDropped {
			t.Errorf("in doubt %v: dropped %+v, want %+v", doubtful, d, wantDropped)
		}
		if len(attempts) != wantAttempts || attempts[1].Sequence == sequence {
			t.Errorf("in doubt %v: attempts %+v, want a second one under a new identity", doubtful, attempts)
		}
		w.conserves(n)
	}
}

// saidAll describes several attempts.
func (n *node) saidAll(batches []store.Batch) (text string) {
	for _, b := range batches {
		text += n.said(b)
	}
	return text
}

// once fails the first attempt that the store answered.
func once(failure error) func(*store.Reply) error {
	failed := false
	return func(*store.Reply) error {
		if failed {
			return nil
		}
		failed = true
		return failure
	}
}
