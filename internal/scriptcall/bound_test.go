package scriptcall

// This file tests what bounds and hides a peer's answers.

import (
	"slices"
	"testing"

	"github.com/hanzoai/limiters/ratelimit/store"
)

// Every key that a request carries is a secret to a log, those of conditions too.
func TestKeysAreAllThatARequestCarries(t *testing.T) {
	t.Parallel()
	b := &store.Batch{
		Sequence: "p:seq", WindowKey: "p:window", Number: 1,
		Writes: []store.Write{
			{Key: "p:alice:9", Delta: 3},
			{Key: "p:bob:9", Condition: &store.Condition{Amounts: []uint64{1}, Limit: 5, Previous: "p:bob:8"}},
			{Key: "p:carol:9", Delta: -1, Condition: &store.Condition{Amounts: []uint64{2}, Limit: 5}},
			{Key: "p:dave:9", Delta: 2, Condition: &store.Condition{Amounts: []uint64{1, 1}, Limit: 5, Previous: "p:dave:8"}},
		},
		Reads: []string{"p:erin:9", "p:erin:8"},
	}
	var r Request
	args := r.Encode(b)
	keys := Keys(b)
	for _, arg := range args[2 : 2+args[1].(int64)] {
		if !slices.Contains(keys, arg.(string)) {
			t.Errorf("%q is sent and not among the secrets, %q", arg, keys)
		}
	}
}
