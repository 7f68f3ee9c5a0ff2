package level

// This file keeps the slices of a sliding window, and moves on from one to the next.

// A Ring holds the slices of one entity's window: what this node counted and what the
// others did, apart. It goes with a Slide, and with the Sliding that it was made for.
// The zero Ring has no slices.
//
// A slice holds two narrow numbers, in units of 2^shift. What that cuts off is carried
// into the next slice, so sums are exact, and counts of any size have their place.
//
// What this node counts in the current slice is only in Slide.Sum, which a check
// adds to: it is what Sum holds beyond base.
type Ring struct {
	slices []slice // the current one and Slices before it
	base   uint64  // of Sum: not this node's count in the current slice
	others uint64  // of base: the others' count in the current slice
	passAt int64   // mono; when one unit passes, if nothing is added to Sum beyond passSum; 0 = unknown
	pass   uint64  // Sum when passAt was found, less what has left since
	at     uint16  // index of the current slice
	shift  uint8
}

// A slice is what was counted in it, in units of 2^shift; nothing while it is the current
// one.
type slice struct{ own, others uint32 }

const widest = 1<<32 - 1 // that a slice can hold

// Made reports whether the ring has slices.
func (r *Ring) Made() bool { return r.slices != nil }

// Make gives the ring empty slices, as of mono.
func (r *Ring) Make(s *Sliding, h *Slide, mono int64) {
	*r = Ring{slices: make([]slice, s.Slices+1)}
	*h = Slide{End: s.EndOf(mono)}
}

// Clear empties the slices.
func (r *Ring) Clear(s *Sliding, h *Slide, mono int64) {
	clear(r.slices)
	*r = Ring{slices: r.slices}
	*h = Slide{End: s.EndOf(mono)}
}

// Empty reports whether nothing is counted in the window.
func (r *Ring) Empty(h *Slide) bool { return h.Sum == 0 && h.Aging == 0 }

// Forget forgets when one unit passes: the threshold has changed.
func (r *Ring) Forget() { r.passAt = 0 }

// Roll moves the window on, so that the current slice is that of mono. It takes at most
// Slices + 2 steps, and one for each slice that ended.
func (r *Ring) Roll(s *Sliding, h *Slide, mono int64) {
	for h.End <= mono {
		if h.Sum == 0 || mono-h.End >= int64(s.Slices)*s.Width {
			r.Clear(s, h, mono)
			return
		}
		r.step(s, h)
	}
}

// step ends the current slice and begins the next.
func (r *Ring) step(s *Sliding, h *Slide) {
	own, others := h.Sum-r.base, r.others
	for own>>r.shift > widest || others>>r.shift > widest {
		o, t := r.coarsen()
		own, others = own+o, others+t
	}
	cut := uint64(1)<<r.shift - 1
	r.slices[r.at] = slice{uint32(own >> r.shift), uint32(others >> r.shift)}
	carried, carriedOthers := own&cut, others&cut

	r.at = r.after(r.at)
	r.slices[r.at] = slice{} // which has left
	leaving := r.units(r.after(r.at))
	h.Sum -= leaving
	h.Aging = Float(leaving)
	h.End += s.Width
	r.pass -= leaving
	r.base, r.others = h.Sum-carried, carriedOthers
	if h.Sum == carried+carriedOthers {
		r.shift = 0 // nothing else is left, and this can leave whole
	}
}

// coarsen doubles the unit of the slices twice. It returns what is cut off, which the
// current slice takes up. Of the slice that is leaving, Aging holds what counts.
func (r *Ring) coarsen() (own, others uint64) {
	unit := uint64(1) << r.shift
	for i := range r.slices {
		if uint16(i) == r.at || uint16(i) == r.after(r.at) {
			continue
		}
		c := &r.slices[i]
		own += uint64(c.own&3) * unit
		others += uint64(c.others&3) * unit
		c.own, c.others = c.own>>2, c.others>>2
	}
	r.shift += 2
	return own, others
}

// after is the index of the slice after one: of the oldest, which is leaving, after the
// current one.
func (r *Ring) after(at uint16) uint16 {
	if int(at) == len(r.slices)-1 {
		return 0
	}
	return at + 1
}

// back is the index of the slice so many before the current one.
func (r *Ring) back(age int) uint16 {
	at := int(r.at) - age
	if at < 0 {
		at += len(r.slices)
	}
	return uint16(at)
}

// units is what a slice holds, other than the current one.
func (r *Ring) units(at uint16) uint64 {
	c := r.slices[at]
	return (uint64(c.own) + uint64(c.others)) << r.shift
}
