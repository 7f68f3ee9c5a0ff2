package ratelimit

// This file notices that the wall clock stepped: allowances were granted for a course that
// it does not keep any more.

// jitter is by how much the wall may stray from the monotonic clock and keep its course, on
// a clock that runs by itself: its two readings may be made one after the other. No
// allowance is out so close to the bounds of an epoch. A clock that drives the limiter
// keeps its course exactly.
const jitter = 2e6 // ns

// keeps reports whether a reading is on the course of the snapshot, the least difference of
// wall and mono.
func (s *snapshot) keeps(wall, mono, jitter int64) bool {
	return uint64(wall-mono-s.course) <= uint64(jitter)
}

// steer makes the course that of a reading, and returns the overrides with it: those of
// another generation, so that all allowances are void.
func (t *thresholds) steer(wall, mono, jitter int64) *snapshot {
	for {
		before := t.current.Load()
		if before.keeps(wall, mono, jitter) {
			return before
		}
		next := *before
		next.generation, next.course = before.following(), wall-mono-jitter/2
		if t.current.CompareAndSwap(before, &next) {
			return &next
		}
	}
}
