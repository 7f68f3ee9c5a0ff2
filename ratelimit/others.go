package ratelimit

// This file anticipates the others: between two syncs a node sees its own units of
// an entity, but the other nodes count too, and all would find the same last units
// of room. What they count is taken to be in proportion to what this node counts, as
// it was between the syncs before. docs/accuracy.md has the numbers.

import "math"

// Bounds of what is anticipated. It is little, so that an entity well below its
// threshold is never limited for a guess; it ends when syncs fail, so that in an
// outage a node limits by its own traffic alone; and small thresholds have none, nor
// has a limiter that syncs Hot entities between ticks, for a share cannot be told
// from a handful of units.
const (
	aheadPart      = 32   // of the threshold at most one part in so many
	aheadTime      = 16   // after a sync for one part of the window in so many
	aheadThreshold = 1000 // the lowest threshold with anticipation
)

// A proportion is how many units of others there are for each of this node's: a float of
// eight bits, an eighth of an octave apart from 2^-16 to 2^16, so that an entry has
// room for it. 0 is none.
type proportion uint8

// proportionBase are the upper bits of the float32 below the least.
const proportionBase = (127-16)<<3 - 1

// proportionOf returns the proportion nearest to a ratio.
func proportionOf(ratio float32) proportion {
	const half = 1 << 19
	upper := int32((math.Float32bits(ratio)+half)>>20) - proportionBase
	return proportion(max(0, min(upper, math.MaxUint8)))
}

// ratio is the proportion as a number.
func (p proportion) ratio() float32 {
	if p == 0 {
		return 0
	}
	return math.Float32frombits((uint32(p) + proportionBase) << 20)
}

// growth is what a reply tells of an entity's totals since the reply before.
type growth struct {
	own   uint64 // units delivered by this item
	fleet int64  // by which the totals grew, own included
}

// learnOthersLocked takes a reply's growth into account, half of it as news. since is
// how long ago the totals before were asked for, in nanoseconds: growth over a
// longer time than a node anticipates tells nothing of what happens between two
// syncs.
func (e *entry) learnOthersLocked(g growth, since, window int64) {
	switch {
	case e.threshold < aheadThreshold:
		e.others = 0
	case g.own > 0 && g.fleet >= int64(g.own) && since < window/aheadTime:
		news := float32(g.fleet-int64(g.own)) / float32(g.own)
		e.others = proportionOf((e.others.ratio() + news) / 2)
	}
}

// anticipated is how many units the others are taken to have counted after a wait,
// given this node's weighted pending units. It never grows with wait.
func (m *model) anticipated(threshold uint64, local float64, wait int64) float64 {
	until := m.window / aheadTime
	if m.elapsed >= until || wait >= until-m.elapsed {
		return 0
	}
	return min(local*float64(m.others.ratio()), float64(threshold)/aheadPart)
}
