// This file holds replies of every wrong shape: none is taken for an answer.

package scriptcall

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/hanzoai/limiters/ratelimit/store"
)

// small is a batch with one write and one read.
func small() *store.Batch {
	return &store.Batch{
		Sequence: "p:id:seq", Number: 7, SequenceTTL: time.Hour, WindowKey: "p:window", Window: time.Minute,
		Writes: []store.Write{{Key: "p:a:1", Delta: 3}}, TTL: 2 * time.Minute, Spread: 6 * time.Second, Reads: []string{"p:a:0"},
	}
}

// answer is a right reply to small(), one element replaced.
func answer(at int, value any) []any {
	values := []any{int64(7), int64(1), int64(1_700_000_000), int64(5), int64(60_000), int64(0), int64(3), int64(9)}
	if at >= 0 {
		values[at] = value
	}
	return values
}

func TestDecodeRejectsWhatIsNotExactlyAReply(t *testing.T) {
	t.Parallel()
	rejected := []any{nil, int64(7), "OK", []byte("x"), errors.New("x"), []any{}, answer(-1, nil)[:7], append(answer(-1, nil), int64(0))}
	for at := range answer(-1, nil) {
		for _, value := range []any{nil, "1", []byte("1"), 1, uint64(1), 1.0, errors.New("x"), []any{int64(1)}, int64(math.MinInt64), int64(math.MaxInt64), int64(-2)} {
			rejected = append(rejected, answer(at, value))
		}
	}
	rejected = append(rejected,
		answer(0, int64(6)), answer(0, int64(8)), answer(1, int64(0)), answer(1, int64(5)), answer(1, int64(3)), answer(1, int64(4)),
		answer(3, int64(1_000_000)), answer(5, int64(4)), answer(5, int64(-1)), answer(6, int64(store.MaxUnits+1)), answer(7, int64(store.MaxUnits+1)),
	)
	for _, raw := range rejected {
		if err := Decode(raw, small(), &store.Reply{}); err == nil {
			t.Errorf("Decode(%v) accepts it", raw)
		}
	}
	accepted := [][]any{
		answer(-1, nil), answer(1, int64(2)), answer(4, store.Invalid), answer(5, int64(3)), answer(6, store.Invalid), answer(7, store.Invalid),
		answer(6, int64(store.MaxUnits)), answer(7, int64(store.MaxUnits)),
	}
	for _, outcome := range []int64{3, 4} {
		skipped := answer(1, outcome)
		skipped[5] = int64(4)
		accepted = append(accepted, skipped)
	}
	for _, raw := range accepted {
		if err := Decode(raw, small(), &store.Reply{}); err != nil {
			t.Errorf("Decode(%v): %v", raw, err)
		}
	}
}

// FuzzDecode looks for a shape of reply that panics, or is accepted with a value
// out of range. Each byte of the input is one element.
func FuzzDecode(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7}, int64(7), uint8(1), uint8(1))
	f.Add([]byte{}, int64(0), uint8(0), uint8(0))
	f.Fuzz(func(t *testing.T, shape []byte, seed int64, writes, reads uint8) {
		b := small()
		b.Writes = make([]store.Write, writes)
		b.Reads = make([]string, reads)
		values := make([]any, 0, len(shape))
		for i, c := range shape {
			switch c % 8 {
			case 0:
				values = append(values, nil)
			case 1:
				values = append(values, "text")
			case 2:
				values = append(values, []byte{c})
			case 3:
				values = append(values, []any{seed})
			case 4:
				values = append(values, errors.New("x"))
			case 5:
				values = append(values, seed*int64(i))
			case 6:
				values = append(values, int64(c>>3))
			case 7:
				values = append(values, int64(7))
			}
		}
		var raw any = values
		if len(shape) == 1 {
			raw = values[0]
		}
		var reply store.Reply
		if Decode(raw, b, &reply) != nil {
			return
		}
		if len(reply.Writes) != int(writes) || len(reply.Reads) != int(reads) || reply.Number != b.Number {
			t.Fatalf("accepted as %+v", reply)
		}
		for _, w := range reply.Writes {
			if w.Total < store.Invalid || w.Total > store.MaxUnits || w.Status > store.Skipped {
				t.Fatalf("accepted with %+v", w)
			}
		}
	})
}
