package ratelimit

// This file is the moment at which an epoch begins, in leaky windows: what is older begins
// to fade then, and so who was told to wait for that moment need not wait a nanosecond
// more, and in whole seconds not a second.

import "github.com/hanzoai/limiters/internal/level"

// turnLocked reports whether units that do not fit, at the moment when an epoch begins,
// would a nanosecond later. Once units of the entity were counted at this moment, no more
// pass that way.
func (l *Limiter) turnLocked(e *entry, m *level.Leaky, r *reading, asked float64) bool {
	return l.kind == leaky && e.slide.End != r.mono && l.fits(m.Level(e.threshold, 1), asked, e.threshold)
}

// turnedLocked notes that units were counted at the moment when an epoch begins.
func (e *entry) turnedLocked(c *constants, r *reading) {
	if c.kind == leaky {
		e.slide.End = r.mono
	}
}
