package ratelimit

// This file is the answer to a check.

import (
	"math"
	"time"

	"github.com/hanzoai/limiters/internal/level"
)

// A Verdict is what a check found.
type Verdict uint8

const (
	// VerdictAllowed: the request keeps the level below the threshold.
	VerdictAllowed Verdict = iota
	// VerdictLimited: the request would bring the level to the threshold or above.
	VerdictLimited
	// VerdictNotApplicable: [Limiter.CheckCustom] was asked about a key that has
	// no threshold of its own. Nothing was counted.
	VerdictNotApplicable
)

// String returns allowed, limited or not_applicable.
func (v Verdict) String() string {
	switch v {
	case VerdictAllowed:
		return "allowed"
	case VerdictLimited:
		return "limited"
	default:
		return "not_applicable"
	}
}

// A Basis is what a check's level rests on.
type Basis uint8

const (
	// BasisFirstContact: this node knew nothing of the key.
	BasisFirstContact Basis = iota
	// BasisFleet: the fleet's count was learned within the last two windows.
	BasisFleet
	// BasisLocal: only what this node counted itself.
	BasisLocal
)

// String returns first_contact, fleet or local.
func (b Basis) String() string {
	switch b {
	case BasisFirstContact:
		return "first_contact"
	case BasisFleet:
		return "fleet"
	default:
		return "local"
	}
}

// Never is what [Decision.RetryAfter] answers when no wait helps: the request
// alone reaches the threshold.
const Never time.Duration = math.MaxInt64

// A Decision is the answer to one check, as of the reading of the clock that the
// check made. It is a value: it may be copied, kept, and used from any goroutine.
// Its zero value is an allowed decision about nothing.
type Decision struct {
	verdict   Verdict
	basis     Basis
	custom    bool
	dryRun    bool
	threshold uint64
	units     uint64      // of the request
	level     float64     // the request included
	model     level.Leaky // as the check left it: what it recorded is included
}

// Allowed reports whether the caller should go on: unless the verdict is limited,
// and always in a dry run.
func (d Decision) Allowed() bool { return d.verdict != VerdictLimited || d.dryRun }

// Verdict returns what the check found. In a dry run it is what enforcement would
// have said.
func (d Decision) Verdict() Verdict { return d.verdict }

// Basis returns what the level rests on.
func (d Decision) Basis() Basis { return d.basis }

// DryRun reports whether the limiter only observes (Config.DryRun).
func (d Decision) DryRun() bool { return d.dryRun }

// Custom reports whether the threshold is the key's own: from an override or from
// the resolver.
func (d Decision) Custom() bool { return d.custom }

// Threshold returns the threshold that applied, in units per window; 0 blocks all.
func (d Decision) Threshold() uint64 { return d.threshold }

// Level returns the entity's level in units, this request included whether it was
// allowed or not. It is finite and never negative.
func (d Decision) Level() float64 { return d.level }

// Remaining returns how far the level is below the threshold, in whole units rounded
// down, from 0 to the threshold. A request of fewer units would pass now, one of
// more would not; one of just as many would pass unless the level is whole.
func (d Decision) Remaining() uint64 {
	// The model contains what was recorded, and what follows from that.
	reached := max(d.level, d.model.Level(d.threshold, 0))
	used := uint64(math.Ceil(reached)) // exact: a level is far below 2^63
	return d.threshold - min(used, d.threshold)
}

// RetryAfter returns the smallest wait after which this same request would pass,
// to the nanosecond, if this node saw no other traffic of the entity and heard
// nothing of the fleet meanwhile. It is 0 if the verdict is not limited, and
// [Never] if no wait helps. (docs/design.md, the decision)
func (d Decision) RetryAfter() time.Duration {
	if d.verdict != VerdictLimited {
		return 0
	}
	units := level.Float(d.units)
	if !level.Fits(units, d.threshold) {
		return Never
	}
	return time.Duration(d.model.Wait(func(wait int64) bool {
		return level.Fits(d.model.Level(d.threshold, wait)+units, d.threshold)
	}))
}

// Reset returns how long it takes until the level is 0, if there is no more
// traffic anywhere. It is at most two windows (three after the wall clock
// stepped back), and 0 if the level is 0 now.
func (d Decision) Reset() time.Duration {
	return time.Duration(d.model.Wait(func(wait int64) bool {
		return d.model.Level(d.threshold, wait) <= 0
	}))
}
