// This file tells the store's contract as timelines: batches on a fake clock and
// the exact replies to them.

package memstore_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/hanzoai/limiters/internal/memstore"
	"github.com/hanzoai/limiters/ratelimit/store"
)

// start is when every timeline begins.
var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// A world is a store and the clock it runs on.
type world struct {
	*memstore.Store
	t   *testing.T
	now atomic.Int64
}

func newWorld(t *testing.T) *world {
	w := &world{t: t}
	w.now.Store(start.UnixNano())
	w.Store = memstore.New(w.now.Load)
	return w
}

func (w *world) advance(d time.Duration) { w.now.Add(int64(d)) }

// apply applies a batch and returns the reply without its time, which it checks.
func (w *world) apply(b *store.Batch) store.Reply {
	w.t.Helper()
	var r store.Reply
	if err := w.Apply(context.Background(), b, &r); err != nil {
		w.t.Fatalf("Apply(%d) = %v", b.Number, err)
	}
	if want := w.now.Load() / 1000; r.Time != want {
		w.t.Errorf("Apply(%d): time %d, want %d", b.Number, r.Time, want)
	}
	r.Time = 0
	return r
}

// expect applies a batch and compares the reply.
func (w *world) expect(b *store.Batch, want store.Reply) {
	w.t.Helper()
	want.Number = b.Number
	if want.Window == 0 {
		want.Window = 60_000
	}
	if diff := cmp.Diff(want, w.apply(b), cmpopts.EquateEmpty()); diff != "" {
		w.t.Errorf("batch %d (-want +got):\n%s", b.Number, diff)
	}
}

// batch is a batch of the usual TTLs under the sequence key "seq".
func batch(number uint64, writes []store.Write, reads ...string) *store.Batch {
	return &store.Batch{
		Sequence: "seq", Number: number, Nonce: number * 11, SequenceTTL: time.Hour,
		WindowKey: "window", Window: time.Minute, TTL: 2 * time.Minute,
		Writes: writes, Reads: reads,
	}
}

func retry(b *store.Batch) *store.Batch {
	again := *b
	again.Retry = true
	return &again
}

// add is a list of writes: key, delta, key, delta, …
func add(pairs ...any) []store.Write {
	var writes []store.Write
	for i := 0; i < len(pairs); i += 2 {
		writes = append(writes, store.Write{
			Key: pairs[i].(string), Delta: int64(pairs[i+1].(int)),
		})
	}
	return writes
}

// skipped is a list of results of writes that were not applied.
func skipped(totals ...int64) []store.WriteResult {
	results := written(totals...)
	for i := range results {
		results[i].Status = store.Skipped
	}
	return results
}

// written is a list of results of successful writes.
func written(totals ...int64) []store.WriteResult {
	var results []store.WriteResult
	for _, total := range totals {
		results = append(results, store.WriteResult{Status: store.Written, Total: total})
	}
	return results
}

func TestABatchCountsOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := batch(1, add("a", 5, "b", 7), "c")
	w.expect(first, store.Reply{Outcome: store.Applied, Writes: written(5, 7), Reads: []int64{0}})
	w.expect(retry(first), store.Reply{Outcome: store.Duplicate, Writes: written(5, 7), Reads: []int64{0}})
	w.expect(batch(2, add("c", 1, "a", 2)), store.Reply{Outcome: store.Applied, Writes: written(1, 7)})
	w.expect(first, store.Reply{Outcome: store.Stranger, Writes: skipped(7, 7), Reads: []int64{1}})
	w.expect(batch(9, nil, "a"), store.Reply{Outcome: store.Applied, Reads: []int64{7}})
}

func TestRetryWithoutASequenceKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Set("a", "3")

	// A first batch cannot have been forgotten: its number is above none.
	w.expect(retry(batch(1, nil)), store.Reply{Outcome: store.Applied})
	w.Delete("seq")
	w.expect(retry(batch(2, add("a", 1), "a2")), store.Reply{Outcome: store.Orphan, Writes: skipped(3), Reads: []int64{0}})
	// It left no trace: the same batch as a first attempt is applied.
	w.expect(batch(2, add("a", 1)), store.Reply{Outcome: store.Applied, Writes: written(4)})
}

func TestSequenceKeyThatIsNone(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "x", "-1", "1", "1 ", " 1", "1  2", "1.0 2", "1 2.0", "1 x", "x 1", "1 2 ", "1 2 3", "1 2 3:1", "1 2 3:8:0", "1 2 3:0:0",
		"1 2 3:11:0", "1 2 3:1:0x", "1 2 3:1:-1", "1 2  3:1:0", "1 2 3:1:0:0", "1e3 2", "1:1 2", "1 2\n",
	} {
		w := newWorld(t)
		w.Set("seq", text)
		want := store.Reply{Outcome: store.BadSequence, Window: store.Invalid, Writes: []store.WriteResult{{Status: store.Skipped}}}
		w.expect(batch(2, add("a", 1)), want)
		if got, _ := w.Text("seq"); got != text {
			t.Errorf("sequence %q became %q", text, got)
		}
	}
	w := newWorld(t)
	w.SetForeign("seq")
	w.expect(batch(2, nil), store.Reply{Outcome: store.BadSequence, Window: store.Invalid})
}

// A list of failures that names writes the batch does not have is passed over, by
// the script too.
func TestFailuresOfOtherWritesAreIgnored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Set("seq", "2 22 0:1:0 2:3:0 900:2:0 1:5:1 2:7:3 99999999999999999999:1:0 0:5:3 2:6:0")
	w.expect(retry(batch(2, add("a", 1, "b", 1))), store.Reply{
		Outcome: store.Duplicate, Window: store.Invalid,
		Writes: []store.WriteResult{{Status: store.Written}, {Status: store.Unexpiring}},
	})
}

func TestFailuresAreRepeatedToADuplicate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Set("text", "x")
	w.SetForeign("list")
	w.Set("negative", "-9")
	w.Set("full", "9007199254740991")
	w.Set("overflowing", "9223372036854775807")
	w.Set("refused", "4")
	w.Fail("refused", store.Refused)
	w.Fail("unexpiring", store.Unexpiring)
	b := batch(1, add("text", 1, "list", 1, "negative", 1, "full", 1, "overflowing", 1, "refused", 1, "unexpiring", 1, "fine", 1), "list", "text")
	poisoned := store.WriteResult{Status: store.Poisoned, Total: store.Invalid}
	want := store.Reply{
		Outcome: store.Applied,
		Writes: []store.WriteResult{
			poisoned, poisoned, poisoned, written(store.MaxUnits)[0],
			{Status: store.Saturated, Total: store.MaxUnits},
			{Status: store.Refused, Total: 4},
			{Status: store.Unexpiring, Total: 1},
			{Status: store.Written, Total: 1},
		},
		Reads: []int64{store.Invalid, store.Invalid},
	}
	w.expect(b, want)
	want.Outcome = store.Duplicate
	w.expect(retry(b), want)
	if got, _ := w.Text("seq"); got != "1 11 1:1:0 2:1:0 3:1:0 5:4:0 6:2:0 7:3:0" {
		t.Errorf("sequence key holds %q", got)
	}
	if ttl, _ := w.TTL("seq"); ttl != time.Hour {
		t.Errorf("sequence key lives for %v", ttl)
	}
	if ttl, _ := w.TTL("unexpiring"); ttl >= 0 {
		t.Errorf("unexpiring key lives for %v", ttl)
	}
	// A later number forgets them.
	w.expect(batch(2, nil), store.Reply{Outcome: store.Applied})
	if got, _ := w.Text("seq"); got != "2 22" {
		t.Errorf("sequence key holds %q after a batch without failures", got)
	}
	// An older number is answered without them.
	w.Delete("text")
	w.expect(batch(1, add("text", 1)), store.Reply{Outcome: store.Stranger, Writes: skipped(0)})
	w.Fail("refused", store.Written)
	w.expect(batch(3, add("refused", 1)), store.Reply{Outcome: store.Applied, Writes: written(5)})
}

func TestExpiryIsSetOnceAndInMilliseconds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := batch(1, add("a", 1))
	b.TTL = 1500 * time.Millisecond
	w.expect(b, store.Reply{Outcome: store.Applied, Writes: written(1)})
	w.advance(time.Second)
	w.expect(batch(2, add("a", 1)), store.Reply{Outcome: store.Applied, Writes: written(2)})
	if ttl, ok := w.TTL("a"); !ok || ttl != 500*time.Millisecond {
		t.Errorf("TTL(a) = %v, %v, want what is left of the first", ttl, ok)
	}
	w.advance(500 * time.Millisecond)
	w.expect(batch(3, nil, "a"), store.Reply{Outcome: store.Applied, Reads: []int64{2}})
	w.advance(time.Millisecond)
	w.expect(batch(4, add("a", 1)), store.Reply{Outcome: store.Applied, Writes: written(1)})
	if ttl, _ := w.TTL("a"); ttl != 2*time.Minute {
		t.Errorf("TTL(a) = %v, want that of the write that made it anew", ttl)
	}
	w.advance(time.Hour + time.Millisecond)
	if keys := w.Keys(); len(keys) != 0 {
		t.Errorf("keys left after an hour: %q", keys)
	}
}

func TestWindowKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := batch(2, nil)
	other.Window = 30 * time.Second

	w.expect(batch(1, nil), store.Reply{Outcome: store.Applied, Window: 60_000})
	w.advance(40 * time.Minute)
	w.expect(other, store.Reply{Outcome: store.Applied, Window: 60_000})
	if ttl, _ := w.TTL("window"); ttl != 20*time.Minute {
		t.Errorf("a different window renewed the key to %v", ttl)
	}
	w.expect(batch(3, nil), store.Reply{Outcome: store.Applied, Window: 60_000})
	if ttl, _ := w.TTL("window"); ttl != time.Hour {
		t.Errorf("an equal window left the key at %v", ttl)
	}
	w.Set("window", "soon")
	w.expect(batch(4, nil), store.Reply{Outcome: store.Applied, Window: store.Invalid})
	w.Delete("window")
	w.expect(batch(4, nil), store.Reply{Outcome: store.Duplicate, Window: store.Invalid})
	w.expect(batch(3, nil), store.Reply{Outcome: store.Stranger, Window: store.Invalid})
	w.expect(batch(5, nil), store.Reply{Outcome: store.Applied, Window: 60_000})
}

func TestTotalsAreExactUpToTheirLimit(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"0": 0, "007": 7, "9007199254740991": store.MaxUnits, "00000000000000000000009": 9,
		"9007199254740992": store.MaxUnits, "9223372036854775808": store.MaxUnits, "-1": store.Invalid, "-0": store.Invalid,
		"+1": store.Invalid, "1.5": store.Invalid, "1e3": store.Invalid, "0x10": store.Invalid, " 1": store.Invalid,
		"inf": store.Invalid, "": store.Invalid, "99999999999999999999999": store.MaxUnits, "٣": store.Invalid,
	} {
		w := newWorld(t)
		w.Set("a", text)
		w.expect(batch(1, nil, "a"), store.Reply{Outcome: store.Applied, Reads: []int64{want}})
		if got, ok := w.Get("a"); got != want || !ok {
			t.Errorf("Get of %q = %d, %v, want %d", text, got, ok, want)
		}
	}
	w := newWorld(t)
	most := []store.Write{{Key: "a", Delta: store.MaxUnits}}
	w.expect(batch(1, most), store.Reply{Outcome: store.Applied, Writes: written(store.MaxUnits)})
}

func TestABatchIsNotKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := batch(1, add("a", 1))
	w.apply(b)
	b.Writes[0] = store.Write{Key: "z", Delta: math.MaxInt32}
	if diff := cmp.Diff([]string{"a", "seq", "window"}, w.Keys()); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}

func TestMemoryIsBoundedWithoutReads(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for number := uint64(1); number <= 1000; number++ {
		var writes []store.Write
		for i := range 10 {
			writes = append(writes, store.Write{Key: fmt.Sprint(number, "/", i), Delta: 1})
		}
		b := batch(number, writes)
		b.TTL = time.Second
		w.apply(b)
		w.advance(100 * time.Millisecond)
	}
	// 110 counters are alive at any time; without a sweep 10,000 would be held.
	if held := w.Held(); held > 400 {
		t.Errorf("%d keys held, of which at most 112 exist", held)
	}
	w.FlushAll()
	if held := w.Held(); held != 0 {
		t.Errorf("%d keys held after FlushAll", held)
	}
}

func TestAnEndedContextSendsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err := w.Apply(ctx, batch(1, add("a", 1)), &store.Reply{})
	var failed *store.Error
	if !errors.As(err, &failed) || failed.Fate != store.NotSent || failed.Cause != store.CauseCanceled {
		t.Errorf("Apply = %v, want a canceled one, not sent", err)
	}
	if _, ok := w.Get("a"); ok {
		t.Error("the batch was applied")
	}
}

func TestManyLimitersShareAStore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var group sync.WaitGroup
	for node := range 8 {
		group.Go(func() {
			var r store.Reply
			for number := uint64(1); number <= 200; number++ {
				b := batch(number, add("a", 1, fmt.Sprint("own", node), 1))
				b.Sequence = fmt.Sprint("seq", node)
				for range 2 {
					if err := w.Apply(context.Background(), b, &r); err != nil {
						t.Error(err)
					}
					b.Retry = true
				}
			}
		})
	}
	group.Wait()
	if got, _ := w.Get("a"); got != 1600 {
		t.Errorf("1,600 units sent twice each made %d", got)
	}
}
