package level

// This file looks ahead in a sliding window: when it holds little enough, and when
// nothing.

import "math"

// PassAt returns when a level fits that never grows, if nothing more is counted: the
// first time from mono on at which ok holds of the level. ok must hold of 0. The
// ring must have rolled to mono.
func (r *Ring) PassAt(s *Sliding, h *Slide, mono int64, ok func(level float64) bool) int64 {
	if r.shift > 0 {
		return r.passAtWide(s, h, mono, ok)
	}
	slide := *h
	current := r.current(h)
	for age := s.Slices - 1; ; age-- {
		if at, found := s.passWithin(&slide, mono, ok); found {
			return at
		}
		leaving := uint64(0)
		switch {
		case age > 0:
			leaving = r.units(r.back(age))
		case age == 0:
			leaving = current
		}
		slide.Sum -= leaving
		slide.Aging = Float(leaving)
		slide.End += s.Width
	}
}

// passAtWide is PassAt of slices whose unit is more than one: what that cuts off takes
// longer to leave.
func (r *Ring) passAtWide(s *Sliding, h *Slide, mono int64, ok func(level float64) bool) int64 {
	if s.Slices < few {
		var slices [few]slice
		return r.passAtIn(slices[:], s, h, mono, ok)
	}
	return r.passAtInMany(s, h, mono, ok)
}

func (r *Ring) passAtInMany(s *Sliding, h *Slide, mono int64, ok func(level float64) bool) int64 {
	var slices [most]slice
	return r.passAtIn(slices[:], s, h, mono, ok)
}

// passAtIn moves a copy of the ring on, whose slices lie in room, until the level is ok.
func (r *Ring) passAtIn(room []slice, s *Sliding, h *Slide, mono int64, ok func(level float64) bool) int64 {
	ahead, slide := *r, *h
	ahead.slices = room[:copy(room, r.slices)]
	for {
		if at, found := s.passWithin(&slide, mono, ok); found {
			return at
		}
		ahead.step(s, &slide)
	}
}

// passWithin is PassAt within the current slice of h.
func (s *Sliding) passWithin(h *Slide, mono int64, ok func(level float64) bool) (at int64, found bool) {
	last := h.End - 1
	if !ok(s.Level(h, last)) {
		return 0, false
	}
	first := max(mono, h.End-s.Width)
	return first + LeastWait(last-first, func(wait int64) bool { return ok(s.Level(h, first+wait)) }), true
}

// LevelAt is the level at a time from the current slice on, if nothing more is counted. It is
// not bounded if the unit of the slices is more than one.
func (r *Ring) LevelAt(s *Sliding, h *Slide, mono int64) float64 {
	if r.shift > 0 {
		return math.Inf(1)
	}
	slide, current := *h, r.current(h)
	for age := s.Slices - 1; slide.End <= mono; age-- {
		leaving := uint64(0)
		switch {
		case age > 0:
			leaving = r.units(r.back(age))
		case age == 0:
			leaving = current
		case age < -1:
			return 0
		}
		slide.Sum -= leaving
		slide.Aging = Float(leaving)
		slide.End += s.Width
	}
	return s.Level(&slide, mono)
}

// OnePassesAt is PassAt for one unit at a threshold. It is kept until something is
// added.
func (r *Ring) OnePassesAt(s *Sliding, h *Slide, mono int64, threshold uint64, inclusive bool) int64 {
	if r.passAt == 0 || r.pass != h.Sum {
		r.pass = h.Sum
		r.passAt = r.PassAt(s, h, mono, func(level float64) bool { return Fits(level+1, threshold, inclusive) })
	}
	return max(r.passAt, mono)
}

// current is what the current slice holds.
func (r *Ring) current(h *Slide) uint64 { return h.Sum - r.base + r.others }

// EmptyAt returns when nothing is left in the window, if nothing more is counted: mono
// at the earliest.
func (r *Ring) EmptyAt(s *Sliding, h *Slide, mono int64) int64 {
	if r.Empty(h) {
		return mono
	}
	age := 0
	if r.current(h) == 0 {
		for age = 1; age < s.Slices && r.units(r.back(age)) == 0; age++ {
		}
	}
	if r.shift > 0 { // what is cut off leaves after all else
		age -= s.Slices + 1
	}
	return h.End + int64(s.Slices-age)*s.Width
}
