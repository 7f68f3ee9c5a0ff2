// This file lays a batch out as the arguments of the script, without allocating
// what was allocated for the batch before.

package scriptcall

import (
	"strconv"

	"github.com/hanzoai/limiters/ratelimit/store"
)

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
	args := append(r.args[:0], nil, nil, b.Sequence, b.WindowKey)
	for i := range b.Writes {
		args = append(args, b.Writes[i].Key)
	}
	for _, key := range b.Reads {
		args = append(args, key)
	}
	const firstKey = 2 // of args
	specials := 0
	for i := range b.Writes {
		w := &b.Writes[i]
		if isSpecial(w) {
			specials++
		}
		if c := w.Condition; c != nil && c.Previous != "" {
			args = append(args, c.Previous)
		}
	}
	args[1] = int64(len(args) - firstKey)
	retry := int64(0)
	if b.Retry {
		retry = 1
	}
	args = append(args, int64(b.Number), strconv.FormatUint(b.Nonce, 10), int64(b.Acked), retry,
		b.SequenceTTL.Milliseconds(), b.Window.Milliseconds(), b.TTL.Milliseconds(), b.SpreadStep().Milliseconds(),
		int64(len(b.Writes)), int64(len(b.Reads)))
	for i := range b.Writes {
		args = append(args, r.deltas.box(b.Writes[i].Delta))
	}
	if specials > 0 {
		args = appendSpecials(args, b)
	}
	r.args = args
	return args
}

// isSpecial reports whether a write does not just add.
func isSpecial(w *store.Write) bool { return w.Delta <= 0 || w.Condition != nil }

// appendSpecials appends what the script must know of writes that do not just add. Their
// previous counters are the last keys, in this order.
func appendSpecials(args []any, b *store.Batch) []any {
	place := int64(2 + len(b.Writes) + len(b.Reads))
	none := &store.Condition{}
	for i := range b.Writes {
		if !isSpecial(&b.Writes[i]) {
			continue
		}
		c := b.Writes[i].Condition
		if c == nil {
			c = none
		}
		previous := int64(0)
		if c.Previous != "" {
			place++
			previous = place
		}
		args = append(args, int64(i)+1, int64(c.Weight), int64(min(c.Limit, store.MaxUnits)), previous, int64(len(c.Amounts)))
		for _, amount := range c.Amounts {
			args = append(args, int64(min(amount, store.MaxUnits)))
		}
	}
	return args
}

// Release lets go of the batch's strings.
func (r *Request) Release() {
	clear(r.args)
}
