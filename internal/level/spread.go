package level

// This file puts units into a sliding window that came at times known only roughly, and
// takes such units off it.

import "math/bits"

// Spread adds units that came evenly from one time to another, of this node or of the
// others. Those of slices that have left the window are left out. The ring must have
// rolled to the present, which ends the span at the latest.
func (r *Ring) Spread(s *Sliding, h *Slide, from, to int64, units uint64, own bool) {
	to = min(to, h.End)
	from = min(from, to)
	if units == 0 {
		return
	}
	if from == to {
		r.put(h, r.age(s, h, from), units, own)
		return
	}
	whole := uint64(to - from)
	done := uint64(0)
	for age := r.age(s, h, from); age >= 0; age-- {
		end := min(h.End-int64(age)*s.Width, to)
		high, low := bits.Mul64(units, uint64(end-from))
		upTo, _ := bits.Div64(high, low, whole) // ≤ units: end ≤ to
		r.put(h, age, upTo-done, own)
		if done = upTo; end == to {
			return
		}
	}
}

// age is by how many slices that of a time is older than the current one.
func (r *Ring) age(s *Sliding, h *Slide, mono int64) int {
	if mono >= h.End-s.Width {
		return 0
	}
	return int((h.End - 1 - mono) / s.Width)
}

// put adds units to a slice.
func (r *Ring) put(h *Slide, age int, units uint64, own bool) {
	oldest := len(r.slices) - 1
	units = min(units, mostSum-min(h.Sum, mostSum))
	switch {
	case units == 0 || age > oldest:
		return
	case age == oldest:
		h.Aging += Float(units)
		r.passAt = 0
		return
	}
	h.Sum += units
	if age > 0 {
		r.base += units
		units = r.store(h, age, units, own)
		r.base -= units // what was cut off
	}
	if !own {
		r.base += units
		r.others += units
	}
}

// store adds units to a slice before the current one, and returns what its unit cuts
// off: for the current one.
func (r *Ring) store(h *Slide, age int, units uint64, own bool) (cut uint64) {
	for {
		c := &r.slices[r.back(age)]
		held := &c.others
		if own {
			held = &c.own
		}
		if add := units >> r.shift; add <= widest-uint64(*held) {
			*held += uint32(add)
			return units & (1<<r.shift - 1)
		}
		mine, theirs := r.coarsen()
		r.base -= mine
		r.others += theirs
	}
}

// Take takes off units that this node counted at a time, and that are given back: in the
// slice of that time first. What this does not hold of its own, because the ring began
// later or began again, goes off the others of this node's, the oldest first, and then off what
// the others counted, the newest first. Units that have left the window are left alone. The ring must
// have rolled to the present.
func (r *Ring) Take(s *Sliding, h *Slide, mono int64, units uint64) {
	oldest := len(r.slices) - 1
	age := r.age(s, h, mono)
	if units == 0 || age > oldest {
		return
	}
	r.passAt = 0
	units -= r.takeOwn(h, age, units)
	for age := oldest - 1; age >= 0 && units > 0; age-- {
		units -= r.takeOwn(h, age, units)
	}
	r.TakeOthers(s, h, h.End, units)
}

// takeOwn takes units off what this node counted in a slice, as far as there are, and
// returns how many.
func (r *Ring) takeOwn(h *Slide, age int, units uint64) (taken uint64) {
	switch oldest := len(r.slices) - 1; age {
	case oldest: // of which it is not known whose they are
		taken = min(units, uint64(h.Aging))
		h.Aging -= Float(taken)
	case 0:
		taken = min(units, h.Sum-r.base)
		h.Sum -= taken
	default:
		c := &r.slices[r.back(age)]
		taken = min(units, uint64(c.own)<<r.shift)
		parts := (taken + 1<<r.shift - 1) >> r.shift
		c.own -= uint32(parts)
		r.base -= parts << r.shift // what the last part held beyond, stays in the current slice
		h.Sum -= taken
	}
	return taken
}

// TakeOthers takes units off what the others counted until a time, the newest first, and
// returns how many of them the window does not hold.
func (r *Ring) TakeOthers(s *Sliding, h *Slide, until int64, units uint64) (missing uint64) {
	r.passAt = 0
	newest := r.age(s, h, until)
	if newest == 0 {
		take := min(units, r.others)
		r.others -= take
		r.base -= take
		h.Sum -= take
		units -= take
	}
	for age := max(1, newest); age < len(r.slices)-1 && units > 0; age++ {
		c := &r.slices[r.back(age)]
		take := min(units, uint64(c.others)<<r.shift)
		parts := (take + 1<<r.shift - 1) >> r.shift
		c.others -= uint32(parts)
		back := parts<<r.shift - take // what the last part held beyond, stays in the current slice
		r.others += back
		r.base -= take
		h.Sum -= take
		units -= take
	}
	return units
}
