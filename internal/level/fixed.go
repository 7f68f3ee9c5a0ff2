package level

// This file is the fixed window: what came since the epoch began, and nothing of the
// one before.

// A Fixed is what a decision knows of one entity, as of one reading: what was counted in
// the epoch of the reading and, if the wall clock stepped back across a boundary, in
// the one after.
type Fixed struct {
	Count float64 // of the reading's epoch; with the pending units
	Left  int64   // until that epoch ends; > 0
	Next  float64 // of the epoch after
	Then  int64   // how long that one is
}

// Level is the level after a wait without further traffic.
func (m *Fixed) Level(wait int64) float64 {
	switch {
	case wait < m.Left:
		return m.Count
	case wait < m.Left+m.Then:
		return m.Next
	}
	return 0
}

// Wait is the smallest wait after which a level is ok, which 0 must be.
func (m *Fixed) Wait(ok func(level float64) bool) int64 {
	switch {
	case ok(m.Count):
		return 0
	case ok(m.Next):
		return m.Left
	}
	return m.Left + m.Then
}
