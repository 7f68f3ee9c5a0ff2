// Package clock holds the two clocks a limiter can run on: [System], which is
// cheap enough to be read in every decision, and [Fake], which moves only when a
// test says so.
//
// A reading is a pair of nanosecond counts. The wall, counted from the Unix
// epoch, says which epoch a unit belongs to; it may step either way at any time.
// The mono, counted from an arbitrary start and always above 0, says how much
// time has passed; it never decreases. No wall reading is ever subtracted from
// another to measure a duration.
package clock

import "time"

// monoStart is the mono reading of a new clock: above 0, so that a user may let
// 0 stand for "never".
const monoStart = int64(time.Second)
