package level

// This file is the sliding window: what a node knows of the last window, in slices. It
// holds what a check touches; the slices themselves are in ring.go.

// A Sliding says how a window is divided. It is immutable.
type Sliding struct {
	Slices int   // 2 or more
	Width  int64 // of a slice; Slices × Width is the window, or a few nanoseconds more
	Strict bool  // the oldest slice counts whole until the window has left it

	part float64 // 1 / Width, or a little less: Width × part ≤ 1
}

// NewSliding divides a window into slices.
func NewSliding(window int64, slices int, strict bool) Sliding {
	width := (window + int64(slices) - 1) / int64(slices)
	part := 1 / float64(width)
	for float64(width)*part > 1 {
		part -= part * 0x1p-53
	}
	return Sliding{Slices: slices, Width: width, Strict: strict, part: part}
}

// A Slide is what a check needs of a sliding window. Time is divided into slices of
// Width, from 0 of the monotonic clock on. The window at a time consists of the current
// slice so far, the whole Slices − 1 before it, and the later part of the one before
// those, which is leaving.
//
// Of an entity without slices it notes when this node counted: see Note.
type Slide struct {
	Aging float64 // units in the slice that is leaving
	Sum   uint64  // units in the newest slices, the current one included
	End   int64   // mono; when the current slice ends
}

// mostSum is where sums end: far above what limits anybody, and far below where they would
// wrap.
const mostSum = 1 << 61

// Add counts units of this node in the current slice. The slide must be that of a ring, and
// that have rolled to the present.
func (h *Slide) Add(units uint64) { h.Sum = min(h.Sum+units, max(h.Sum, mostSum)) }

// Level is what the window holds at mono. It is finite, never negative, and never grows
// with mono. A mono before the current slice counts as its start. It must not be
// after its end: see Ring.Roll.
func (s *Sliding) Level(h *Slide, mono int64) float64 {
	level := float64(int64(h.Sum))
	if h.Aging == 0 {
		return level
	}
	if s.Strict {
		return level + h.Aging
	}
	return level + h.Aging*(float64(min(h.End-mono, s.Width))*s.part)
}

// EndOf returns when the slice of a time ends.
func (s *Sliding) EndOf(mono int64) int64 {
	start := mono - mono%s.Width
	if start > mono { // before 0
		start -= s.Width
	}
	return start + s.Width
}
