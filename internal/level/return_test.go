package level

// This file tests that units are given back to the slice and the bucket that they were
// counted in.

import (
	"testing"

	"pgregory.net/rapid"
)

// Units given back leave the window as if they had never come, whenever that is, and
// whatever slices had to be coarsened meanwhile.
func TestUnitsGivenBackLeaveTheirSlice(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		slices := rapid.IntRange(2, 40).Draw(rt, "slices")
		window := rapid.Int64Range(int64(slices), 100_000).Draw(rt, "window")
		s := NewSliding(window, slices, rapid.Bool().Draw(rt, "strict"))
		now := 3 * window
		var with, without Ring // one counts and gives back, the other never counted
		var h, g Slide
		with.Make(&s, &h, now)
		without.Make(&s, &g, now)
		units := rapid.OneOf(rapid.Uint64Range(1, 1000), rapid.Uint64Range(1<<33, 1<<40))
		narrow := true
		for range rapid.IntRange(1, 20).Draw(rt, "stays") {
			at, n, own := now-rapid.Int64Range(0, window).Draw(rt, "ago"), units.Draw(rt, "units"), rapid.Bool().Draw(rt, "own")
			with.Spread(&s, &h, at, at, n, own)
			without.Spread(&s, &g, at, at, n, own)
			narrow = narrow && n <= 1000
		}
		at, n := now, units.Draw(rt, "units")
		with.Spread(&s, &h, at, at, n, true)
		now += rapid.Int64Range(0, 2*window).Draw(rt, "later")
		with.Roll(&s, &h, now)
		without.Roll(&s, &g, now)
		with.Take(&s, &h, at, n)
		for range 3 {
			got, want := s.Level(&h, now), s.Level(&g, now)
			slack := 0.0
			if !narrow || n > 1000 { // what is cut off of a wide slice leaves with another one
				slack = 1 << 16 * float64(slices)
			}
			if got < 0 || got > want+slack+1e-6 || got < want-slack-1e-6 {
				rt.Fatalf("level %v, want %v", got, want)
			}
			now += rapid.Int64Range(0, window/2).Draw(rt, "on")
			with.Roll(&s, &h, now)
			without.Roll(&s, &g, now)
		}
		if end := with.EmptyAt(&s, &h, now); end < now {
			rt.Fatalf("empty at %d, before %d", end, now)
		}
		now += 3 * window
		if with.Roll(&s, &h, now); s.Level(&h, now) != 0 || !with.Empty(&h) {
			rt.Fatalf("level %v when all has left", s.Level(&h, now))
		}
	})
}

// What a slice does not hold of its own goes off the others of this node's, the oldest
// first, and then off the others' newest ones.
func TestUnitsGivenBackOfARingThatBeganLater(t *testing.T) {
	t.Parallel()
	const width = 10
	s := NewSliding(4*width, 4, false)
	mono := int64(100 * width)
	for _, row := range []struct {
		name  string
		units uint64
		own   [4]uint64 // what is left by age
		other [4]uint64
	}{
		{"within its slice", 2, [4]uint64{5, 5, 3, 5}, [4]uint64{7, 7, 7, 7}},
		{"and of the others of this node's", 12, [4]uint64{5, 3, 0, 0}, [4]uint64{7, 7, 7, 7}},
		{"and of the other nodes'", 30, [4]uint64{}, [4]uint64{0, 4, 7, 7}},
		{"more than there is", 100, [4]uint64{}, [4]uint64{}},
	} {
		var r Ring
		var h Slide
		r.Make(&s, &h, mono)
		for age := range int64(4) {
			r.Spread(&s, &h, mono-age*width, mono-age*width, 5, true)
			r.Spread(&s, &h, mono-age*width, mono-age*width, 7, false)
		}
		r.Take(&s, &h, mono-2*width, row.units)
		var want uint64
		for age := range 4 {
			own, others := h.Sum-r.base, r.others
			if age > 0 {
				c := r.slices[r.back(age)]
				own, others = uint64(c.own), uint64(c.others)
			}
			if own != row.own[age] || others != row.other[age] {
				t.Errorf("%s: slice %d back holds %d and %d, want %d and %d", row.name, age, own, others, row.own[age], row.other[age])
			}
			want += row.own[age] + row.other[age]
		}
		if h.Sum != want {
			t.Errorf("%s: sum %d, want %d", row.name, h.Sum, want)
		}
	}
	var r Ring
	var h Slide
	r.Make(&s, &h, mono)
	r.Spread(&s, &h, mono, mono, 9, true)
	if r.Take(&s, &h, mono-6*width, 9); h.Sum != 9 { // it has left the window
		t.Errorf("sum %d, want 9", h.Sum)
	}
}

// A bucket gives back what cannot have leaked: never so much that more than its capacity
// and what leaks gets through.
func TestABucketGivesBackWhatCannotHaveLeaked(t *testing.T) {
	t.Parallel()
	b := Burst{Interval: 3 * second, Window: minute}
	const threshold = 600 // 30 at once, 10 a second
	for _, row := range []struct {
		name               string
		before, later, ago int64 // units filled, units filled a second before now, seconds
		back, held         float64
	}{
		{"at once", 20, 0, 0, 20, 0},
		{"a second later", 20, 0, 1, 20, 0},
		{"a part", 25, 0, 1, 18, 7},
		{"long ago, all has leaked", 20, 15, 10, 20, 5},
		{"half has leaked", 20, 10, 1, 20, 10},
	} {
		var k Bucket
		k.Begin(0)
		k.Fill(float64(row.before))
		now := row.ago * second
		if row.later > 0 {
			k.Leak(&b, threshold, max(0, now-second))
			k.Fill(float64(row.later))
		}
		k.Leak(&b, threshold, now)
		k.Return(&b, threshold, row.back, now)
		if got := k.Leak(&b, threshold, now); !near(got, row.held) {
			t.Errorf("%s: the bucket holds %v, want %v", row.name, got, row.held)
		}
	}
}
