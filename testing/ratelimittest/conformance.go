package ratelimittest

// This file is the conformance suite: what a limiter relies on in a store.

import (
	"context"
	"crypto/rand"
	"errors"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/hanzoai/limiters/ratelimit/store"
)

// TestStore tests whether a store keeps the contract of package store. open is
// called once for each part and returns a store that works; parts may share a
// server, for each keeps to keys of its own. advance, if not nil, lets time pass on
// the clock by which the store's keys expire; without it the parts about expiry are
// skipped, and say so.
//
// A limiter asks no more of a store than this suite does.
func TestStore(t *testing.T, open func(t *testing.T) (s store.Store, advance func(time.Duration))) {
	for _, part := range []struct {
		name string
		test func(*subject)
	}{
		{"a batch is applied and answered", (*subject).applies},
		{"a batch counts once", (*subject).countsOnce},
		{"a batch sent twice below counts once", (*subject).resent},
		{"an older number is a stranger's", (*subject).refusesOlder},
		{"another nonce is a stranger's", (*subject).nonces},
		{"a look leaves no trace", (*subject).looks},
		{"forgotten batches are told", (*subject).forgets},
		{"a negative delta takes what is there", (*subject).takes},
		{"amounts are granted if they fit", (*subject).grants},
		{"the previous counter is weighed exactly", (*subject).weighs},
		{"a poisoned counter grants nothing", (*subject).grantsNothing},
		{"a repetition repeats takings and grants", (*subject).repeatsTakings},
		{"a first attempt needs no sequence key", (*subject).startsAnywhere},
		{"a retry without a sequence key is an orphan", (*subject).orphans},
		{"a sequence key that is no sequence", (*subject).badSequence},
		{"the window key belongs to the first", (*subject).window},
		{"totals are exact up to their limit", (*subject).exact},
		{"a total out of range is saturated", (*subject).saturates},
		{"a poisoned counter costs only itself", (*subject).poisoned},
		{"a duplicate repeats failures", (*subject).repeatsFailures},
		{"any key is a key", (*subject).anyKey},
		{"large batches", (*subject).large},
		{"a reply of another batch is overwritten", (*subject).reusesReplies},
		{"a batch is left alone", (*subject).keepsNothing},
		{"an ended context", (*subject).endedContext},
		{"limiters at once", (*subject).concurrent},
		{"counters expire, once", (*subject).expires},
		{"sequence and window keys expire", (*subject).sequenceExpires},
	} {
		t.Run(part.name, func(t *testing.T) {
			s, advance := open(t)
			part.test(&subject{t: t, store: s, advance: advance, prefix: "conformance:" + rand.Text() + ":"})
		})
	}
}

// A subject is a store under test, and keys that are the test's own.
type subject struct {
	t       *testing.T
	store   store.Store
	advance func(time.Duration)
	prefix  string
}

// The lives of keys in the suite.
const (
	counterTTL  = 2 * time.Minute
	sequenceTTL = time.Hour
	suiteWindow = time.Minute
)

// key is a key of this test's own. In a cluster a test's keys would have to share a
// hash tag; the prefix has none.
func (s *subject) key(name string) string { return s.prefix + name }

// batch is a batch under the sequence "seq". Writes are name, delta, name, delta, …
func (s *subject) batch(number uint64, writes []any, reads ...string) *store.Batch {
	b := &store.Batch{
		Sequence: s.key("seq"), Number: number, Nonce: nonceOf(number), SequenceTTL: sequenceTTL,
		WindowKey: s.key("window"), Window: suiteWindow, TTL: counterTTL,
	}
	for i := 0; i < len(writes); i += 2 {
		b.Writes = append(b.Writes, store.Write{Key: s.key(writes[i].(string)), Delta: int64(writes[i+1].(int))})
	}
	for _, name := range reads {
		b.Reads = append(b.Reads, s.key(name))
	}
	return b
}

// nonceOf is a nonce for a batch of the suite: large, so that a store that counts in
// floats mixes them up.
func nonceOf(number uint64) uint64 { return 1<<63 + number }

// apply applies a batch, which has to succeed.
func (s *subject) apply(b *store.Batch) *store.Reply {
	s.t.Helper()
	var r store.Reply
	if err := s.store.Apply(context.Background(), b, &r); err != nil {
		s.t.Fatalf("Apply(batch %d): %v", b.Number, err)
	}
	return &r
}

// expect applies a batch and compares the reply, but for the store's clock.
func (s *subject) expect(b *store.Batch, outcome store.Outcome, writes []store.WriteResult, reads ...int64) {
	s.t.Helper()
	r := s.apply(b)
	switch {
	case r.Number != b.Number:
		s.t.Errorf("batch %d: the reply says number %d", b.Number, r.Number)
	case r.Outcome != outcome:
		s.t.Errorf("batch %d: outcome %d, want %d", b.Number, r.Outcome, outcome)
	case len(r.Writes) != len(writes) || len(writes) > 0 && !reflect.DeepEqual(r.Writes, writes):
		s.t.Errorf("batch %d: writes %+v, want %+v", b.Number, r.Writes, writes)
	case len(r.Reads) != len(reads) || len(reads) > 0 && !reflect.DeepEqual(r.Reads, reads):
		s.t.Errorf("batch %d: reads %v, want %v", b.Number, r.Reads, reads)
	}
}

// written is the result of a write that succeeded.
func written(total int64) store.WriteResult {
	return store.WriteResult{Status: store.Written, Total: total}
}

// poisoned is the result of a write to what is no counter.
var poisoned = store.WriteResult{Status: store.Poisoned, Total: store.Invalid}

// skipped is the result of a write of a batch that was not applied.
func skipped(total int64) store.WriteResult {
	return store.WriteResult{Status: store.Skipped, Total: total}
}

// results is many results.
func results(r ...store.WriteResult) []store.WriteResult { return r }

// retry is the batch as it is sent after an attempt of unknown fate.
func retry(b *store.Batch) *store.Batch {
	again := *b
	again.Retry = true
	return &again
}

func (s *subject) applies() {
	s.expect(s.batch(1, []any{"a", 3, "b", 1}, "c"), store.Applied, results(written(3), written(1)), 0)
	s.expect(s.batch(2, []any{"a", 4}, "b"), store.Applied, results(written(7)), 1)
	s.expect(s.batch(3, nil, "a", "b", "c"), store.Applied, nil, 7, 1, 0)
	if r := s.apply(s.batch(4, nil)); r.Time <= 0 {
		s.t.Errorf("the store's clock says %d µs", r.Time)
	}
}

func (s *subject) countsOnce() {
	b := s.batch(1, []any{"a", 3}, "b")
	s.expect(b, store.Applied, results(written(3)), 0)
	for range 3 {
		s.expect(retry(b), store.Duplicate, results(written(3)), 0)
	}
	// Another limiter counts meanwhile: a duplicate is told the totals of now.
	other := s.batch(1, []any{"a", 10, "b", 5})
	other.Sequence = s.key("other:seq")
	s.expect(other, store.Applied, results(written(13), written(5)))
	s.expect(retry(b), store.Duplicate, results(written(13)), 5)
}

func (s *subject) refusesOlder() {
	s.apply(s.batch(5, []any{"a", 1}))
	s.expect(s.batch(4, []any{"a", 1}), store.Stranger, results(skipped(1)))
	s.expect(retry(s.batch(4, []any{"a", 1})), store.Stranger, results(skipped(1)))
	s.expect(s.batch(5, []any{"a", 1}), store.Duplicate, results(written(1)))
	s.expect(s.batch(9, []any{"a", 1}), store.Applied, results(written(2)))
}

func (s *subject) startsAnywhere() {
	s.expect(s.batch(7, []any{"a", 1}), store.Applied, results(written(1)))
	first := s.batch(1, []any{"a", 1})
	first.Sequence = s.key("first:seq")
	s.expect(retry(first), store.Applied, results(written(2))) // nothing came before number 1
}

func (s *subject) orphans() {
	s.apply(s.batch(1, []any{"a", 1}))
	b := s.batch(2, []any{"a", 1}, "b")
	b.Sequence = s.key("lost:seq")
	s.expect(retry(b), store.Orphan, results(skipped(1)), 0)
	s.expect(retry(b), store.Orphan, results(skipped(1)), 0)
	b.Number = 3
	s.expect(b, store.Applied, results(written(2)), 0)
}

// badSequence makes a counter the sequence key: a number alone is no sequence.
func (s *subject) badSequence() {
	s.apply(s.batch(1, []any{"broken", 7}))
	b := s.batch(1, []any{"a", 1})
	b.Sequence = s.key("broken")
	s.expect(b, store.BadSequence, results(skipped(0)))
	s.expect(retry(b), store.BadSequence, results(skipped(0)))
	s.expect(s.batch(2, nil, "a"), store.Applied, nil, 0)
}

// poison makes a key hold what is no counter: a sequence.
func (s *subject) poison(name string) {
	b := s.batch(1, nil)
	b.Sequence = s.key(name)
	s.apply(b)
}

func (s *subject) window() {
	if r := s.apply(s.batch(1, nil, "a")); r.Window != suiteWindow.Milliseconds() {
		s.t.Errorf("after the first batch the window key holds %d ms, want %d", r.Window, suiteWindow.Milliseconds())
	}
	other := s.batch(1, nil, "a")
	other.Sequence, other.Window = s.key("other:seq"), 2*suiteWindow
	if r := s.apply(other); r.Window != suiteWindow.Milliseconds() {
		s.t.Errorf("another window is answered with %d ms, want %d", r.Window, suiteWindow.Milliseconds())
	}
}

func (s *subject) exact() {
	s.expect(s.batch(1, []any{"a", store.MaxUnits - 2}), store.Applied, results(written(store.MaxUnits-2)))
	s.expect(s.batch(2, []any{"a", 1}), store.Applied, results(written(store.MaxUnits-1)))
	s.expect(s.batch(3, nil, "a"), store.Applied, nil, store.MaxUnits-1)
	s.expect(s.batch(4, []any{"a", 1}), store.Applied, results(written(store.MaxUnits)))
}

func (s *subject) poisoned() {
	s.poison("bad")
	b := s.batch(1, []any{"bad", 1, "good", 2})
	s.expect(b, store.Applied, results(poisoned, written(2)))
	s.expect(s.batch(2, []any{"bad", -1, "good", 1}), store.Applied, results(poisoned, written(3)))
	s.expect(s.batch(3, []any{"good", 1}, "bad"), store.Applied, results(written(4)), store.Invalid)
}

func (s *subject) repeatsFailures() {
	s.poison("bad")
	b := s.batch(1, []any{"bad", 1, "good", 2})
	s.expect(b, store.Applied, results(poisoned, written(2)))
	s.expect(retry(b), store.Duplicate, results(poisoned, written(2)))
	s.expect(s.batch(2, []any{"good", 1}), store.Applied, results(written(3)))
}

func (s *subject) anyKey() {
	names := []string{"", " ", ":", "{a}", "}{", "a:1", "a:1:2", "\x00", "\xff\xfe", "line\r\nbreak", "*", "ключ", "$3"}
	b, again := s.batch(1, nil), s.batch(2, nil)
	var first []store.WriteResult
	var totals []int64
	for i, name := range names {
		b.Writes = append(b.Writes, store.Write{Key: s.key("any:" + name), Delta: int64(i + 1)})
		again.Reads = append(again.Reads, s.key("any:"+name))
		first, totals = append(first, written(int64(i+1))), append(totals, int64(i+1))
	}
	s.expect(b, store.Applied, first)
	s.expect(again, store.Applied, nil, totals...)
}

func (s *subject) large() {
	const n = 2500
	b, again := s.batch(1, nil), s.batch(2, nil)
	var first []store.WriteResult
	var totals []int64
	for i := range n {
		key := s.key("many:" + time.Duration(i).String())
		b.Writes = append(b.Writes, store.Write{Key: key, Delta: int64(i + 1)})
		again.Reads = append(again.Reads, key)
		first, totals = append(first, written(int64(i+1))), append(totals, int64(i+1))
	}
	s.expect(b, store.Applied, first)
	s.expect(retry(b), store.Duplicate, first)
	s.expect(again, store.Applied, nil, totals...)
}

func (s *subject) reusesReplies() {
	var r store.Reply
	for _, b := range []*store.Batch{s.batch(1, []any{"a", 1, "b", 2}, "c", "d"), s.batch(2, []any{"a", 1}), s.batch(3, nil, "a", "b", "c")} {
		if err := s.store.Apply(context.Background(), b, &r); err != nil {
			s.t.Fatal(err)
		}
		if r.Number != b.Number || len(r.Writes) != len(b.Writes) || len(r.Reads) != len(b.Reads) {
			s.t.Errorf("batch %d in a reply used before: number %d, %d writes, %d reads; want %d, %d", b.Number, r.Number, len(r.Writes), len(r.Reads), len(b.Writes), len(b.Reads))
		}
	}
	if !reflect.DeepEqual(r.Reads, []int64{2, 2, 0}) {
		s.t.Errorf("reads %v, want [2 2 0]", r.Reads)
	}
}

func (s *subject) keepsNothing() {
	b := s.batch(1, []any{"a", 1}, "b")
	copied := *b
	copied.Writes, copied.Reads = append([]store.Write(nil), b.Writes...), append([]string(nil), b.Reads...)
	s.apply(b)
	if !reflect.DeepEqual(b, &copied) {
		s.t.Errorf("the batch was changed from %+v to %+v", copied, *b)
	}
}

func (s *subject) endedContext() {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	var r store.Reply
	err := s.store.Apply(ended, s.batch(1, []any{"a", 1}), &r)
	if err == nil {
		s.t.Fatal("Apply with an ended context succeeded")
	}
	var failure *store.Error
	if !errors.As(err, &failure) {
		s.t.Fatalf("Apply with an ended context: %v is no *store.Error", err)
	}
	want := results(written(1))
	if total := s.apply(s.batch(2, nil, "a")).Reads[0]; total > 0 && failure.Fate != store.Unknown || total > 1 {
		s.t.Errorf("the counter holds %d after an attempt of fate %d", total, failure.Fate)
	} else {
		want[0].Total += total
	}
	s.expect(s.batch(3, []any{"a", 1}), store.Applied, want)
}

func (s *subject) concurrent() {
	const limiters, batches = 8, 20
	var group sync.WaitGroup
	for l := range limiters {
		group.Go(func() {
			var r store.Reply
			for n := range batches {
				b := s.batch(uint64(n+1), []any{"shared", 3})
				b.Sequence = s.key("limiter:" + time.Duration(l).String() + ":seq")
				if err := s.store.Apply(context.Background(), b, &r); err != nil || r.Outcome != store.Applied {
					s.t.Errorf("limiter %d, batch %d: outcome %d, %v", l, n+1, r.Outcome, err)
				}
			}
		})
	}
	group.Wait()
	s.expect(s.batch(1, nil, "shared"), store.Applied, nil, 3*limiters*batches)
}

// passes lets time pass, or skips the part.
func (s *subject) passes(d time.Duration) {
	if s.advance == nil {
		s.t.Skip("nothing was given to advance the store's clock")
	}
	s.advance(d)
}

func (s *subject) expires() {
	b := s.batch(1, []any{"a", 1})
	b.Spread = 10 * time.Second
	s.apply(b)
	s.passes(counterTTL - time.Second)
	s.expect(s.batch(2, []any{"a", 1}), store.Applied, results(written(2))) // does not renew it
	s.passes(b.Spread + 2*time.Second)
	s.expect(s.batch(3, nil, "a"), store.Applied, nil, 0)
}

func (s *subject) sequenceExpires() {
	b := s.batch(2, []any{"a", 1})
	s.apply(b)
	s.passes(sequenceTTL - time.Second)
	s.expect(retry(b), store.Duplicate, results(written(0))) // the counter is gone, the number is not
	s.passes(2 * time.Second)
	s.expect(retry(b), store.Orphan, results(skipped(0)))
	other := s.batch(1, nil, "a")
	other.Sequence, other.Window = s.key("other:seq"), 2*suiteWindow
	if r := s.apply(other); r.Window != other.Window.Milliseconds() {
		s.t.Errorf("the window key holds %d ms after it should have expired, want %d", r.Window, other.Window.Milliseconds())
	}
}
