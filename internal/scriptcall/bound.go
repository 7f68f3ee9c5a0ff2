package scriptcall

// This file says how much an answer may hold, so that a client need not believe what a
// peer announces.

import "github.com/hanzoai/limiters/ratelimit/store"

// MostElements is more than the elements of any answer to a request with these
// arguments.
func MostElements(args []any) int { return 64 + 4*len(args) }

// Keys are those of a batch, which are secrets to a log.
func Keys(b *store.Batch) []string {
	keys := make([]string, 0, 2+len(b.Writes)+len(b.Reads))
	for i := range b.Writes {
		keys = append(keys, b.Writes[i].Key)
		if c := b.Writes[i].Condition; c != nil && c.Previous != "" {
			keys = append(keys, c.Previous)
		}
	}
	keys = append(keys, b.Reads...)
	return append(keys, b.Sequence, b.WindowKey)
}
