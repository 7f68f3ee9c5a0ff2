// This file tests that a request keeps nothing of the batch that it carried.

package scriptcall

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestArgumentsOfABatch(t *testing.T) {
	t.Parallel()
	var r Request
	b := small()
	b.Retry = true
	want := []any{
		nil, int64(4), "p:id:seq", "p:window", "p:a:1", "p:a:0",
		int64(7), int64(1), int64(3_600_000), int64(60_000), int64(120_000), int64(93), int64(1), int64(3),
	}
	if diff := cmp.Diff(want, r.Encode(b)); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
}

func TestNothingOfABatchIsKept(t *testing.T) {
	t.Parallel()
	var r Request
	args := r.Encode(small())
	r.Release()
	for i, arg := range args {
		if arg != nil {
			t.Errorf("argument %d is kept: %v", i, arg)
		}
	}
	again := r.Encode(small())
	if &again[0] != &args[0] {
		t.Error("the arguments of the next batch are allocated anew")
	}
}
