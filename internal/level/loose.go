package level

// This file is the sliding window of an entity that has no slices yet: far below its
// threshold, or on its way there since the last tick.

// Loose is the level after a wait, of an entity without slices: the totals weighed, or
// whole if strict, and the pending units whole. It never grows with wait.
func (m *Leaky) Loose(strict bool, wait int64) float64 {
	fleetBefore, fleet, localBefore, local := m.FleetBefore, m.Fleet, m.LocalBefore, m.Local
	into := m.Into + wait
	if into >= m.Window {
		into -= m.Window
		fleetBefore, fleet, localBefore, local = fleet, 0, local, 0
		if into >= m.Window {
			return 0
		}
	}
	if strict {
		return fleetBefore + fleet + localBefore + local
	}
	return fleetBefore*Weight(into, m.Window) + fleet + localBefore + local
}

// A Beginning is what is known of an entity when it gets slices. Times are monotonic. Of
// each pair the first is of the epoch before the current one.
type Beginning struct {
	Mono    int64     // now
	EpochAt int64     // when the current epoch began
	Window  int64     // how long epochs are
	Others  [2]uint64 // what the others counted
	ReadAt  int64     // as of then
	Own     [2]uint64 // what this node counted
	First   int64     // when the first unit of these came, since the node began anew
	Base    uint64    // the fleet's total then, of the epoch of First; 0: unknown
	Last    int64     // and the last
}

// Note notes, for an entity without slices, that this node counted something at mono.
func (h *Slide) Note(mono int64) {
	if h.End == 0 {
		h.End, h.Sum = mono, uint64(mono)
		return
	}
	h.End, h.Sum = min(h.End, mono), uint64(max(int64(h.Sum), mono))
}

// Noted returns when this node's first and last units came, mono if none is noted.
func (h *Slide) Noted(mono int64) (first, last int64) {
	if h.End == 0 {
		return mono, mono
	}
	return h.End, max(h.End, int64(h.Sum))
}

// Begin gives the ring slices that hold what is known. What this node counted is spread
// from its first unit to its last, what the others did over the whole epochs. If strict,
// this node's units are taken to have come as late as they can have.
func (r *Ring) Begin(s *Sliding, h *Slide, b *Beginning) {
	r.Make(s, h, b.Mono)
	r.fill(s, h, b)
}

// fill is Begin for a ring that has slices, and nothing in them.
func (r *Ring) fill(s *Sliding, h *Slide, b *Beginning) {
	r.BeginOthers(s, h, b)
	from, to := max(b.First, b.EpochAt-b.Window), min(b.EpochAt, b.Last)
	if b.First > b.EpochAt { // it is none of those of the epoch before
		from, to = b.EpochAt-b.Window, min(b.ReadAt, b.EpochAt)
	}
	r.own(s, h, from, to, b.Own[0])
	r.own(s, h, max(b.First, b.EpochAt), b.Last, b.Own[1])
}

// BeginOthers adds what the others counted to a ring that holds nothing of that. What was
// known before an epoch ended came before it was known.
func (r *Ring) BeginOthers(s *Sliding, h *Slide, b *Beginning) {
	r.spreadOthers(s, h, b, b.EpochAt-b.Window, min(b.ReadAt, b.EpochAt), b.Others[0])
	r.spreadOthers(s, h, b, b.EpochAt, max(b.ReadAt, b.EpochAt), b.Others[1])
}

// spreadOthers spreads what the others counted from one time to another: what was there
// when this node began evenly until then, and the rest since.
func (r *Ring) spreadOthers(s *Sliding, h *Slide, b *Beginning, from, to int64, units uint64) {
	if b.Base > 0 && b.First > from && b.First < to {
		base := min(b.Base, units)
		r.Spread(s, h, from, b.First, base, false)
		from, units = b.First, units-base
	}
	r.Spread(s, h, from, to, units, false)
}

// own spreads what this node counted.
func (r *Ring) own(s *Sliding, h *Slide, from, to int64, units uint64) {
	if s.Strict {
		from = to
	}
	r.Spread(s, h, from, to, units, true)
}

// Others takes into account that the others counted so many units evenly from one time
// to another, or took so many back of what they counted before that. It returns how many of
// those the window did not hold.
func (r *Ring) Others(s *Sliding, h *Slide, from, to, units int64) (missing uint64) {
	if units >= 0 {
		r.Spread(s, h, from, to, uint64(units), false)
		return 0
	}
	return r.TakeOthers(s, h, to-1, uint64(-units))
}

// PassAt is Ring.PassAt of the ring that this would begin.
func (b *Beginning) PassAt(s *Sliding, ok func(level float64) bool) int64 {
	if s.Slices < few {
		var slices [few]slice
		return b.passAt(s, slices[:s.Slices+1], ok)
	}
	return b.passAtOfMany(s, ok)
}

// few is more than a window usually has slices; most is more than any has.
const few, most = 65, 1001

func (b *Beginning) passAtOfMany(s *Sliding, ok func(level float64) bool) int64 {
	var slices [most]slice
	return b.passAt(s, slices[:s.Slices+1], ok)
}

func (b *Beginning) passAt(s *Sliding, slices []slice, ok func(level float64) bool) int64 {
	r, h := Ring{slices: slices}, Slide{End: s.EndOf(b.Mono)}
	r.fill(s, &h, b)
	return r.PassAt(s, &h, b.Mono, ok)
}
