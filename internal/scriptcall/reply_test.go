// This file holds replies of every wrong shape: none is taken for an answer.

package scriptcall

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hanzoai/limiters/ratelimit/store"
)

// small is a batch with one write and one read.
func small() *store.Batch {
	return &store.Batch{
		Sequence: "p:id:seq", Number: 7, Nonce: math.MaxUint64, Acked: 6, SequenceTTL: time.Hour, WindowKey: "p:window", Window: time.Minute,
		Writes: []store.Write{{Key: "p:a:1", Delta: 3}}, TTL: 2 * time.Minute, Spread: 6 * time.Second, Reads: []string{"p:a:0"},
	}
}

// answer is a right reply to small(), one element replaced, with notes at its end.
func answer(at int, value any, notes ...int64) []any {
	values := []any{int64(7), int64(1), int64(1_700_000_000), int64(5), int64(60_000), int64(3), int64(9)}
	if at >= 0 {
		values[at] = value
	}
	for _, n := range notes {
		values = append(values, n)
	}
	return values
}

func TestDecodeRejectsWhatIsNotExactlyAReply(t *testing.T) {
	t.Parallel()
	rejected := []any{nil, int64(7), "OK", []byte("x"), errors.New("x"), []any{}, answer(-1, nil)[:6], answer(-1, nil, 0), answer(-1, nil, 1, 1)}
	for at := range answer(-1, nil) {
		for _, value := range []any{nil, "1", []byte("1"), 1, uint64(1), 1.0, errors.New("x"), []any{int64(1)}, int64(math.MinInt64), int64(math.MaxInt64), int64(-2)} {
			rejected = append(rejected, answer(at, value))
		}
	}
	for at := range 3 {
		for _, value := range []any{nil, "1", -1.0, int64(-1), int64(store.MaxUnits + 1)} {
			noted := answer(-1, nil, 1, 1, 0)
			noted[7+at] = value
			rejected = append(rejected, noted)
		}
	}
	rejected = append(rejected,
		answer(0, int64(6)), answer(0, int64(8)), answer(1, int64(0)), answer(1, int64(6)), answer(1, int64(7)),
		answer(3, int64(1_000_000)), answer(5, int64(store.MaxUnits+1)), answer(6, int64(store.MaxUnits+1)),
		answer(-1, nil, 1, 0, 0), answer(-1, nil, 1, 8, 0),
		answer(-1, nil, 1, 1, 0, 1, 1, 0, 1, 1, 0, 1, 1, 0), // more than there can be
	)
	for _, raw := range rejected {
		if err := Decode(raw, small(), &store.Reply{}); err == nil {
			t.Errorf("Decode(%v) accepts it", raw)
		}
	}
	accepted := [][]any{
		answer(-1, nil), answer(1, int64(2)), answer(1, int64(3)), answer(1, int64(4)), answer(1, int64(5)), answer(4, store.Invalid),
		answer(5, store.Invalid), answer(6, store.Invalid), answer(5, int64(store.MaxUnits)), answer(6, int64(store.MaxUnits)),
		answer(-1, nil, 0, 6, 0), answer(-1, nil, 1, 3, 0), answer(-1, nil, 9, 1, 0), answer(-1, nil, store.MaxUnits, 7, store.MaxUnits),
	}
	for _, raw := range accepted {
		if err := Decode(raw, small(), &store.Reply{}); err != nil {
			t.Errorf("Decode(%v): %v", raw, err)
		}
	}
	look := small()
	look.Number, look.Writes = 0, nil
	values := slices.Delete(answer(0, int64(0)), 5, 6)
	for outcome := range int64(8) {
		values[1] = outcome
		if err := Decode(values, look, &store.Reply{}); (err == nil) != (outcome == int64(store.Looked)) {
			t.Errorf("outcome %d to a look: %v", outcome, err)
		}
	}
}

// Notes that say what cannot be are passed over: they come from a key that anybody may
// have written.
func TestNotesBecomeResults(t *testing.T) {
	t.Parallel()
	b := conditional()
	b.Writes[1].Condition.Amounts = make([]uint64, 40)
	for _, c := range []struct {
		outcome store.Outcome
		notes   []int64
		want    func(r *store.Reply)
	}{
		{store.Applied, nil, func(*store.Reply) {}},
		{store.Applied, []int64{0, 6, 0}, func(r *store.Reply) { r.Forgotten = true }},
		{store.Applied, []int64{4, 2, 0}, func(r *store.Reply) { r.Writes[3].Status, r.Writes[3].Granted[0] = store.Refused, false }},
		{store.Applied, []int64{1, 1, 0}, func(r *store.Reply) { r.Writes[0].Status = store.Poisoned }},
		{store.Applied, []int64{1, 2, 0}, func(r *store.Reply) { r.Writes[0].Status = store.Refused }},
		{store.Applied, []int64{1, 3, 0}, func(r *store.Reply) { r.Writes[0].Status = store.Unexpiring }},
		{store.Applied, []int64{1, 4, 0}, func(r *store.Reply) { r.Writes[0].Status = store.Saturated }},
		{store.Duplicate, []int64{3, 5, 2}, func(r *store.Reply) { r.Writes[2].Taken = 2 }},
		{store.Duplicate, []int64{3, 5, 2, 3, 2, 0}, func(r *store.Reply) { r.Writes[2].Taken, r.Writes[2].Status = 0, store.Refused }},
		{store.Applied, []int64{2, 7, 5, 2, 7, 1<<32 + 129}, func(r *store.Reply) {
			g := r.Writes[1].Granted
			g[0], g[2], g[32], g[39] = false, false, false, false
		}},
		{store.Applied, []int64{2, 7, 5, 2, 3, 0}, func(r *store.Reply) {
			r.Writes[1].Granted[0], r.Writes[1].Granted[2], r.Writes[1].Status = false, false, store.Unexpiring
		}},
		{store.Applied, []int64{2, 7, 5, 2, 1, 0}, func(r *store.Reply) { r.Writes[1].Status = store.Poisoned; clear(r.Writes[1].Granted) }},
		// What cannot be.
		{store.Applied, []int64{3, 5, 6}, func(*store.Reply) {}},
		{store.Applied, []int64{1, 5, 1}, func(*store.Reply) {}},
		{store.Applied, []int64{5, 1, 0, 0, 1, 0, 1, 6, 0, store.MaxUnits, 5, 1}, func(*store.Reply) {}},
		{store.Applied, []int64{1, 7, 1, 2, 7, 1<<32 + 1<<8, 2, 7, 2<<32 + 1, 2, 7, store.MaxUnits &^ (1<<32 - 1)}, func(*store.Reply) {}},
		{store.Orphan, []int64{0, 6, 0, 1, 1, 0, 2, 7, 1}, func(r *store.Reply) { r.Forgotten = true }},
	} {
		values := []any{int64(7), int64(c.outcome), int64(1_700_000_000), int64(5), int64(60_000), int64(1), int64(2), int64(3), int64(4), int64(9)}
		for _, n := range c.notes {
			values = append(values, n)
		}
		want := store.Reply{
			Number: 7, Outcome: c.outcome, Time: 1_700_000_000_000_005, Window: 60_000, Reads: []int64{9},
			Writes: []store.WriteResult{
				{Total: 1}, {Total: 2, Granted: slices.Repeat([]bool{true}, 40)}, {Total: 3, Taken: 5, Granted: []bool{}}, {Total: 4, Granted: []bool{true}},
			},
		}
		if c.outcome == store.Orphan {
			for i := range want.Writes {
				want.Writes[i].Status, want.Writes[i].Taken = store.Skipped, 0
				clear(want.Writes[i].Granted)
			}
		}
		c.want(&want)
		// A reply used before, for a batch that got on better.
		got := store.Reply{Forgotten: true, Writes: []store.WriteResult{{Status: 3, Taken: 9, Granted: []bool{true}}, {}, {}, {}, {}}}
		if err := Decode(values, b, &got); err != nil {
			t.Errorf("notes %v: %v", c.notes, err)
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("notes %v (-want +got):\n%s", c.notes, diff)
		}
	}
}

// FuzzDecode looks for a shape of reply that panics, or is accepted with a value
// out of range. Each byte of the input is one element.
func FuzzDecode(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7}, int64(7), uint8(1), uint8(1))
	f.Add([]byte{}, int64(0), uint8(0), uint8(0))
	f.Add([]byte{7, 14, 14, 14, 14, 14, 14, 14, 14, 14, 14, 14, 14}, int64(1), uint8(1), uint8(1))
	f.Fuzz(func(t *testing.T, shape []byte, seed int64, writes, reads uint8) {
		b := small()
		b.Writes = make([]store.Write, writes)
		b.Reads = make([]string, reads)
		for i := range b.Writes {
			b.Writes[i].Delta = int64(i%3 - 1)
			if i%4 == 0 {
				b.Writes[i].Condition = &store.Condition{Amounts: make([]uint64, i%70)}
			}
		}
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
		if len(values) > MaxElements(b) || len(reply.Writes) != int(writes) || len(reply.Reads) != int(reads) || reply.Number != b.Number {
			t.Fatalf("accepted as %+v", reply)
		}
		for i, w := range reply.Writes {
			taken := uint64(max(0, -b.Writes[i].Delta))
			if w.Total < store.Invalid || w.Total > store.MaxUnits || w.Status > store.Skipped || w.Taken > taken {
				t.Fatalf("accepted with %+v", w)
			}
			if c := b.Writes[i].Condition; c != nil && len(w.Granted) != len(c.Amounts) || c == nil && w.Granted != nil {
				t.Fatalf("accepted with %+v", w)
			}
		}
	})
}
