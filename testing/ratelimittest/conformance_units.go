package ratelimittest

// This file is the part of the conformance suite about units that are taken back or
// granted only if they fit, about batches sent twice, and about what a store forgot.

import (
	"math"
	"reflect"

	"github.com/hanzoai/limiters/ratelimit/store"
)

// resent sends batches several times without telling the store so, as a proxy or a
// client library does.
func (s *subject) resent() {
	for n := range uint64(3) {
		b := s.batch(n+1, []any{"a", 5, "b", -3}, "c")
		b.Acked = n
		for again := range 3 {
			r := s.apply(b)
			want := store.Applied
			if again > 0 {
				want = store.Duplicate
			}
			if total := int64(5 * (n + 1)); r.Outcome != want || !reflect.DeepEqual(r.Writes[0], written(total)) {
				s.t.Errorf("batch %d, time %d: outcome %d, %+v; want %d and a total of %d", n+1, again+1, r.Outcome, r.Writes[0], want, total)
			}
		}
	}
}

// nonces sends two limiters' batches under one number.
func (s *subject) nonces() {
	mine := s.batch(7, []any{"a", 5})
	for _, other := range []uint64{0, 1, mine.Nonce - 1, mine.Nonce + 1, mine.Nonce + 1024, math.MaxUint64} {
		theirs := s.batch(7, []any{"a", 100})
		theirs.Nonce = other
		s.expect(mine, store.Applied, results(written(5)))
		s.expect(theirs, store.Stranger, results(skipped(5)))
		s.expect(retry(theirs), store.Stranger, results(skipped(5)))
		s.expect(retry(mine), store.Duplicate, results(written(5)))
		s.prefix += "next:"
		mine = s.batch(7, []any{"a", 5})
	}
}

func (s *subject) looks() {
	look := s.batch(0, nil, "a", "b", "window", "seq")
	s.expect(look, store.Looked, nil, 0, 0, 0, 0)
	if r := s.apply(look); r.Window != store.Invalid {
		s.t.Errorf("a look says that the window is %d, and nobody set it", r.Window)
	}
	s.apply(s.batch(1, []any{"a", 3}))
	look.Retry, look.Acked = true, 9
	s.expect(look, store.Looked, nil, 3, 0, suiteWindow.Milliseconds(), store.Invalid)
	if r := s.apply(look); r.Forgotten {
		s.t.Error("a look says that something is forgotten")
	}
	b := s.batch(2, []any{"a", 1})
	b.Acked = 1
	s.expect(b, store.Applied, results(written(4))) // the sequence is as it was
}

// forgets sends batches whose limiter knows of acknowledgements that the store does not.
func (s *subject) forgets() {
	told := func(b *store.Batch, outcome store.Outcome, forgotten bool) {
		s.t.Helper()
		if r := s.apply(b); r.Outcome != outcome || r.Forgotten != forgotten {
			s.t.Errorf("batch %d, acknowledged %d: outcome %d, forgotten %t; want %d and %t", b.Number, b.Acked, r.Outcome, r.Forgotten, outcome, forgotten)
		}
	}
	next := func(number, acked uint64) *store.Batch {
		b := s.batch(number, []any{"a", 1})
		b.Acked = acked
		return b
	}
	told(next(1, 0), store.Applied, false)
	told(next(2, 1), store.Applied, false)
	told(next(9, 2), store.Applied, false) // those between were given up
	rolled := next(15, 14)                 // the store holds 9
	told(rolled, store.Applied, true)
	told(retry(rolled), store.Duplicate, true)
	told(next(16, 15), store.Applied, false)
	told(next(16, 15), store.Duplicate, false)
	told(next(3, 12), store.Stranger, false)
	s.expect(s.batch(17, nil, "a"), store.Applied, nil, 5)

	for number, acked := range map[uint64]uint64{2: 1, 3: 0, 40: 39, 41: 7} {
		s.prefix += "lost:"
		b := next(number, acked)
		told(retry(b), store.Orphan, acked > 0)
		told(b, store.Applied, acked > 0)
		told(retry(b), store.Duplicate, acked > 0)
	}
}

// took is the result of a write that took units.
func took(units uint64, total int64) store.WriteResult {
	return store.WriteResult{Status: store.Written, Total: total, Taken: units}
}

func (s *subject) takes() {
	s.expect(s.batch(1, []any{"a", 10, "b", 3}), store.Applied, results(written(10), written(3)))
	s.expect(s.batch(2, []any{"a", -4, "b", -4, "none", -4}), store.Applied, results(took(4, 6), took(3, 0), took(0, 0)))
	s.expect(s.batch(3, []any{"a", -6, "b", -1}, "none"), store.Applied, results(took(6, 0), took(0, 0)), 0)
	s.expect(s.batch(4, []any{"a", 2}), store.Applied, results(written(2)))
	s.expect(s.batch(5, []any{"a", -store.MaxUnits}), store.Applied, results(took(2, 0)))
	s.expect(s.batch(6, []any{"a", store.MaxUnits}), store.Applied, results(written(store.MaxUnits)))
	s.expect(s.batch(7, []any{"a", -store.MaxUnits + 1}), store.Applied, results(took(store.MaxUnits-1, 1)))
	s.expect(s.batch(8, nil, "a", "b", "none"), store.Applied, nil, 1, 0, 0)
}

// conditional is a batch with one conditional write of "c", whose previous counter is
// "previous".
func (s *subject) conditional(number uint64, delta int64, limit uint64, weight uint32, amounts ...uint64) *store.Batch {
	b := s.batch(number, nil)
	b.Writes = append(b.Writes, store.Write{Key: s.key("c"), Delta: delta, Condition: &store.Condition{
		Amounts: amounts, Limit: limit, Previous: s.key("previous"), Weight: weight,
	}})
	return b
}

// granted is the result of a conditional write; each letter of text is an amount's
// answer, y or n.
func granted(total int64, text string) store.WriteResult {
	r := store.WriteResult{Status: store.Written, Total: total, Granted: []bool{}}
	for _, letter := range text {
		r.Granted = append(r.Granted, letter == 'y')
	}
	return r
}

func (s *subject) grants() {
	s.expect(s.conditional(1, 0, 10, 0, 4, 4, 4, 2, 1), store.Applied, results(granted(10, "yynyn")))
	s.expect(s.conditional(2, 0, 10, 0, 1), store.Applied, results(granted(10, "n")))
	s.expect(s.conditional(3, 5, 20, 0, 6, 5, 1), store.Applied, results(granted(20, "nyn"))) // the delta counts always
	s.expect(s.conditional(4, 100, 20, 0, 1), store.Applied, results(granted(120, "n")))      // and above the limit, too
	s.expect(s.conditional(5, 1, 200, 0), store.Applied, results(granted(121, "")))           // no amounts
	s.expect(s.batch(6, []any{"previous", 1000}, "c"), store.Applied, results(written(1000)), 121)
	s.expect(s.conditional(7, 0, 122, 0, 1), store.Applied, results(granted(122, "y"))) // it has no weight
	b := s.conditional(8, 0, 123, store.FullWeight, 1)
	b.Writes[0].Condition.Previous = "" // it has no key
	s.expect(b, store.Applied, results(granted(123, "y")))
	back := granted(3, "yn")
	back.Taken = 121
	s.expect(s.conditional(9, -121, 3, 0, 1, 1), store.Applied, results(back)) // room is made first

	var amounts []uint64
	total, text := int64(3), ""
	for i := range uint64(store.MaxAmounts) { // answers of many words
		if i%3 == 0 || i == 100 {
			amounts, text = append(amounts, i+1), text+"y"
			total += int64(i + 1)
		} else {
			amounts, text = append(amounts, 1<<40), text+"n"
		}
	}
	s.expect(s.conditional(10, 0, 1<<39, 0, amounts...), store.Applied, results(granted(total, text)))
	s.expect(retry(s.conditional(10, 0, 1<<39, 0, amounts...)), store.Duplicate, results(granted(total, text)))
}

// weighs compares what is granted with exact arithmetic, in whole numbers, at the
// limit and one above it.
func (s *subject) weighs() {
	for _, c := range []struct {
		previous int64
		weight   uint32
		weighed  uint64
	}{
		{1, 1, 1},
		{1, store.FullWeight, 1},
		{3, store.FullWeight / 2, 2},
		{100, store.FullWeight / 3, 34},
		{store.FullWeight, 1, 1},
		{store.FullWeight + 1, 1, 2},
		{1<<40 + 1, 7, 7<<20 + 1},
		{store.MaxUnits, store.FullWeight, store.MaxUnits},
		{store.MaxUnits, store.FullWeight - 1, 1<<53 - 1<<33},
		{store.MaxUnits, 3, 3 << 33},
		{store.MaxUnits - 1<<20, 5, 5<<33 - 5},
	} {
		s.prefix += "next:"
		first := s.batch(1, []any{"previous", int(c.previous)})
		s.expect(first, store.Applied, results(written(c.previous)))
		if c.weighed < store.MaxUnits {
			s.expect(s.conditional(2, 0, c.weighed, c.weight, 1), store.Applied, results(granted(0, "n")))
			s.expect(s.conditional(3, 0, c.weighed+1, c.weight, 1), store.Applied, results(granted(1, "y")))
		} else {
			s.expect(s.conditional(2, 0, math.MaxUint64, c.weight, 1), store.Applied, results(granted(0, "n")))
		}
	}
	// The previous counter may be written by the same batch, before or after.
	s.prefix += "same:"
	b := s.batch(1, []any{"previous", 5})
	b.Writes = append(b.Writes, s.conditional(1, 0, 6, store.FullWeight, 1, 1).Writes...)
	s.expect(b, store.Applied, results(written(5), granted(1, "yn")))
	b = s.conditional(2, 0, 7, store.FullWeight, 1, 1)
	b.Writes = append(b.Writes, store.Write{Key: s.key("previous"), Delta: 5})
	s.expect(b, store.Applied, results(granted(2, "yn"), written(10)))
}

func (s *subject) grantsNothing() {
	s.poison("previous")
	s.expect(s.conditional(1, 2, store.MaxUnits, 1, 1), store.Applied, results(granted(2, "n")))
	s.prefix += "counter:"
	s.poison("c")
	bad := poisoned
	bad.Granted = []bool{false, false}
	b := s.conditional(1, 2, store.MaxUnits, 0, 1, 1)
	s.expect(b, store.Applied, results(bad))
	s.expect(retry(b), store.Duplicate, results(bad))
	s.prefix += "full:"
	s.expect(s.batch(1, []any{"c", store.MaxUnits}), store.Applied, results(written(store.MaxUnits)))
	s.expect(s.batch(2, []any{"c", store.MaxUnits}), store.Applied, results(written(store.MaxUnits)))
	s.expect(s.conditional(3, 0, math.MaxUint64, 0, 1), store.Applied, results(granted(store.MaxUnits, "n")))
}

func (s *subject) repeatsTakings() {
	b := s.conditional(1, 3, 10, store.FullWeight, 4, 4, 3)
	b.Writes = append(b.Writes, s.batch(1, []any{"a", -5, "b", 2, "d", -1}).Writes...)
	other := s.batch(1, []any{"a", 2, "d", 9})
	other.Sequence = s.key("other:seq")
	s.apply(other)
	want := results(granted(10, "yny"), took(2, 0), written(2), took(1, 8))
	s.expect(b, store.Applied, want)
	s.expect(b, store.Duplicate, want)
	// What others do meanwhile changes totals, not what this batch did.
	other = s.batch(2, []any{"c", -9, "a", 50, "b", 1})
	other.Sequence = s.key("other:seq")
	s.apply(other)
	want[0].Total, want[1].Total, want[2].Total = 1, 50, 3
	s.expect(retry(b), store.Duplicate, want)
}

// saturates adds beyond the largest total: such a counter is full, not broken.
func (s *subject) saturates() {
	most := written(store.MaxUnits)
	s.expect(s.batch(1, []any{"a", store.MaxUnits - 1}), store.Applied, results(written(store.MaxUnits-1)))
	s.expect(s.batch(2, []any{"a", 5}), store.Applied, results(most))
	s.expect(s.batch(3, []any{"a", store.MaxUnits}), store.Applied, results(most))
	s.expect(s.batch(4, nil, "a"), store.Applied, nil, store.MaxUnits)
	s.expect(s.batch(5, []any{"a", -1}), store.Applied, results(took(1, store.MaxUnits)))
	if s.apply(s.batch(6, nil, "a")).Reads[0] != store.MaxUnits {
		s.t.Error("a counter of twice the largest total, less one, is not saturated")
	}
}
