// This file tests that a request keeps nothing of the batch that it carried.

package scriptcall

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hanzoai/limiters/ratelimit/store"
)

func TestArgumentsOfABatch(t *testing.T) {
	t.Parallel()
	var r Request
	b := small()
	b.Retry = true
	want := []any{
		nil, int64(4), "p:id:seq", "p:window", "p:a:1", "p:a:0",
		int64(7), "18446744073709551615", int64(6), int64(1), int64(3_600_000), int64(60_000), int64(120_000), int64(93),
		int64(1), int64(1), int64(3),
	}
	if diff := cmp.Diff(want, r.Encode(b)); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
}

// Conditions follow the deltas, and name the place of their previous counter, which is
// declared even if it is another write's.
func TestArgumentsOfConditions(t *testing.T) {
	t.Parallel()
	var r Request
	b := conditional()
	want := []any{
		nil, int64(9), "p:id:seq", "p:window", "p:a:1", "p:b:1", "p:c:1", "p:d:1", "p:a:0", "p:b:0", "p:a:1",
		int64(7), "18446744073709551615", int64(6), int64(0), int64(3_600_000), int64(60_000), int64(120_000), int64(93),
		int64(4), int64(1), int64(3), int64(0), int64(-5), int64(2),
		int64(2), int64(1 << 20), int64(store.MaxUnits), int64(8), int64(2), int64(5), int64(store.MaxUnits),
		int64(3), int64(0), int64(9), int64(0), int64(0),
		int64(4), int64(3), int64(10), int64(9), int64(1), int64(4),
	}
	if diff := cmp.Diff(want, r.Encode(b)); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
}

// conditional is a batch with conditions of every kind.
func conditional() *store.Batch {
	b := small()
	b.Writes = append(b.Writes,
		store.Write{Key: "p:b:1", Condition: &store.Condition{
			Amounts: []uint64{5, math.MaxUint64}, Limit: math.MaxUint64, Previous: "p:b:0", Weight: store.FullWeight,
		}},
		store.Write{Key: "p:c:1", Delta: -5, Condition: &store.Condition{Limit: 9}},
		store.Write{Key: "p:d:1", Delta: 2, Condition: &store.Condition{Amounts: []uint64{4}, Limit: 10, Previous: "p:a:1", Weight: 3}},
	)
	return b
}

func TestNothingOfABatchIsKept(t *testing.T) {
	t.Parallel()
	var r Request
	args := r.Encode(conditional())
	r.Release()
	for i, arg := range args {
		if arg != nil {
			t.Errorf("argument %d is kept: %v", i, arg)
		}
	}
	again := r.Encode(conditional())
	if &again[0] != &args[0] {
		t.Error("the arguments of the next batch are allocated anew")
	}
}
