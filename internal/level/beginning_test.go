package level

import "testing"

// What was known before an epoch's end came before it was known, and what a node counted
// before its first noted unit did not come after that.
func TestTotalsAreSpreadOverTheTimeBeforeTheyWereRead(t *testing.T) {
	t.Parallel()
	const window, mono = 60, 1000
	s := NewSliding(window, 30, false)
	for _, row := range []struct {
		name string
		b    Beginning // of an epoch that began 30 ago
		want float64   // of 600 units
	}{
		{"the whole epoch before", Beginning{Others: [2]uint64{600}, ReadAt: mono, First: mono}, 300},
		{"its first third", Beginning{Others: [2]uint64{600}, ReadAt: mono - 70, First: mono}, 0},
		{"its first half, this node's", Beginning{Own: [2]uint64{600}, ReadAt: mono - 60, First: mono}, 0},
		{"its first two thirds, of which a quarter is in the window", Beginning{Others: [2]uint64{600}, ReadAt: mono - 50, First: mono}, 150},
		{"this node's, from the last third on", Beginning{Own: [2]uint64{600}, ReadAt: mono, First: mono - 50}, 600},
		{"this epoch, up to now", Beginning{Others: [2]uint64{0, 600}, ReadAt: mono, First: mono}, 600},
		{"the others' since this node began", Beginning{Others: [2]uint64{0, 600}, ReadAt: mono, First: mono - 10, Base: 100}, 600},
		{"the others' since this node began in the epoch before", Beginning{Others: [2]uint64{600}, ReadAt: mono, First: mono - 40, Base: 120}, 528},
		{"the same, as far as it was there before", Beginning{Others: [2]uint64{600}, ReadAt: mono, First: mono - 40, Base: 600}, 240},
	} {
		row.b.Mono, row.b.EpochAt, row.b.Window, row.b.Last = mono, mono-30, window, mono
		var r Ring
		var h Slide
		r.Begin(&s, &h, &row.b)
		if got := s.Level(&h, mono); got < row.want-21 || got > row.want+21 { // a slice's worth
			t.Errorf("%s: level %v, want %v", row.name, got, row.want)
		}
	}
}

// Notes come in any order: units may be told of late.
func TestTheFirstAndTheLastUnitAreNoted(t *testing.T) {
	t.Parallel()
	var h Slide
	if first, last := h.Noted(7); first != 7 || last != 7 {
		t.Errorf("nothing is noted: %d to %d, want now", first, last)
	}
	for _, row := range []struct{ at, first, last int64 }{{50, 50, 50}, {70, 50, 70}, {60, 50, 70}, {20, 20, 70}, {-5, -5, 70}} {
		h.Note(row.at)
		if first, last := h.Noted(100); first != row.first || last != row.last {
			t.Errorf("noted %d: %d to %d, want %d to %d", row.at, first, last, row.first, row.last)
		}
	}
}

// In a strict window this node's units are taken to have come as late as they can have: they
// stay until the last of them has left.
func TestAStrictBeginningHoldsUnitsAsLongAsTheyMayBeInTheWindow(t *testing.T) {
	t.Parallel()
	const window, mono = 60, 1000
	for _, strict := range []bool{false, true} {
		s := NewSliding(window, 30, strict)
		b := Beginning{Mono: mono, EpochAt: mono - 30, Window: window, ReadAt: mono, Own: [2]uint64{300, 600}, First: mono - 50, Last: mono - 4}
		var r Ring
		var h Slide
		r.Begin(&s, &h, &b)
		for _, row := range []struct {
			after int64
			want  float64 // if strict
		}{{0, 900}, {29, 900}, {34, 600}, {55, 600}, {60, 0}} {
			r.Roll(&s, &h, mono+row.after)
			switch got := s.Level(&h, mono+row.after); {
			case strict && got != row.want:
				t.Errorf("strict, after %d: level %v, want %v", row.after, got, row.want)
			case !strict && row.after > 0 && row.want > 0 && got >= row.want:
				t.Errorf("after %d: level %v, want less than %v: they came evenly", row.after, got, row.want)
			}
		}
	}
}
