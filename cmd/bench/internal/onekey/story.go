package onekey

// This file is the minute: who asks whom for how much, and when.

import (
	"time"

	"github.com/hanzoai/limiters/ratelimit"
)

const (
	key       = "ann"
	threshold = 60 // per window of a minute, so that a second is worth one unit
	seconds   = 60
	nodes     = 2
	perSecond = 4 // moments of which a second is made in the picture
)

// start is half a window after an epoch began: the next begins in the middle of the story.
var start = time.Date(2026, time.January, 1, 0, 0, 30, 0, time.UTC)

// kinds are those under which the minute is lived.
var kinds = []ratelimit.WindowKind{ratelimit.WindowLeaky, ratelimit.WindowSliding}

// A spell is so many requests per second to each node, for some seconds.
type spell struct {
	from, until int // seconds since the start
	asked       [nodes]int
}

// spells is the story.
var spells = []spell{
	{0, 5, [nodes]int{2, 0}},
	{5, 6, [nodes]int{2, 1}},
	{6, 9, [nodes]int{2, 0}},
	{9, 10, [nodes]int{0, 20}}, // a burst on B
	{10, 14, [nodes]int{3, 0}},
	{14, 20, [nodes]int{0, 0}}, // silence
	{20, 32, [nodes]int{4, 4}}, // over the limit, across the boundary
	{32, 38, [nodes]int{0, 0}},
	{38, 50, [nodes]int{1, 0}},
	{50, 60, [nodes]int{1, 1}},
}

// askedAt is what each node is asked in a second.
func askedAt(second int) [nodes]int {
	for _, s := range spells {
		if second >= s.from && second < s.until {
			return s.asked
		}
	}
	return [nodes]int{}
}

// config is the fleet's configuration: everything is the default but for the limit and
// the kind.
func config(kind ratelimit.WindowKind) ratelimit.Config {
	cfg := ratelimit.DefaultConfig()
	cfg.GlobalThreshold, cfg.Inclusive = threshold, true
	cfg.Window = kind
	return cfg
}
