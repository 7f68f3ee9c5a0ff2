// This file lays a batch out as the arguments of the script, without allocating
// what was allocated for the batch before.

package scriptcall

import "github.com/hanzoai/limiters/ratelimit/store"

// A Request holds the arguments of one call, and integers that are already boxed.
// The zero Request is ready. It is not safe for concurrent use.
type Request struct {
	args   []any
	deltas boxes // sized for those of a tick
}

// boxesSize is how many integers are kept boxed, a power of two.
const boxesSize = 4096

// A boxes keeps integers as interface values, one for each remainder, so that an
// integer that was met before costs no allocation.
type boxes [boxesSize]any

// box returns n as an interface value that holds an int64.
func (b *boxes) box(n int64) any {
	slot := &b[uint64(n)%boxesSize]
	if held, ok := (*slot).(int64); ok && held == n {
		return *slot
	}
	boxed := any(n)
	*slot = boxed
	return boxed
}

// Encode returns the arguments of EVALSHA for the batch, the first of which, the
// script, is left to the caller to set. They are valid until [Request.Release].
func (r *Request) Encode(b *store.Batch) []any {
	writes, reads := len(b.Writes), len(b.Reads)
	args := append(r.args[:0], nil, int64(2+writes+reads), b.Sequence, b.WindowKey)
	for i := range b.Writes {
		args = append(args, b.Writes[i].Key)
	}
	for _, key := range b.Reads {
		args = append(args, key)
	}
	retry := int64(0)
	if b.Retry {
		retry = 1
	}
	args = append(args, int64(b.Number), retry, b.SequenceTTL.Milliseconds(), b.Window.Milliseconds(),
		b.TTL.Milliseconds(), b.SpreadStep().Milliseconds(), int64(writes))
	for i := range b.Writes {
		args = append(args, r.deltas.box(int64(b.Writes[i].Delta)))
	}
	r.args = args
	return args
}

// Release lets go of the batch's strings.
func (r *Request) Release() {
	clear(r.args)
}
