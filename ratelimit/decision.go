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
	kind      windowKind
	inclusive bool
	reads     bool // the check asked for the counters
	threshold uint64
	units     uint64      // of the request
	level     float64     // the request included
	held      float64     // by the bucket as the check left it, if bursts are bounded
	burst     level.Burst // if bursts are bounded
	tick      int64       // if the verdict is limited, or the check asked for the counters
	model     level.Leaky // as the check left it: what it recorded is included

	// Of a window that is not leaky.

	after       float64 // level as the check left it
	wait, reset int64   // what RetryAfter and Reset answer
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

// Remaining returns what is left of the threshold, in whole units rounded down, from 0 to
// the threshold: a request of fewer units would pass now, one of more would not. One of
// just as many would pass if the limiter is inclusive (Config.Inclusive) or the level is
// not whole. If the request was limited that is fewer than it asked for.
func (d Decision) Remaining() uint64 {
	left := level.Remaining(d.left(), d.threshold)
	if d.burst.Interval > 0 {
		left = min(left, d.burst.Room(d.held, d.threshold))
	}
	if d.verdict == VerdictLimited {
		left = min(left, max(d.units, 1)-1)
	}
	return left
}

// left is the level as the check left it.
func (d *Decision) left() float64 {
	if d.kind != leaky {
		return d.after
	}
	return d.model.Level(d.threshold, 0)
}

// asked is what the request must fit with: one of no units as one of one would.
func (d *Decision) asked() float64 { return max(1, level.Float(d.units)) }

// passesAlone reports whether the request would pass if nothing else was counted.
func (d *Decision) passesAlone() bool {
	return level.Fits(d.asked(), d.threshold, d.inclusive)
}

// RetryAfter returns the smallest wait after which this same request would pass if
// nothing else of the entity is counted meanwhile, here or elsewhere, and its threshold
// and the clock's course stay. Ticks, and the read that the refused request itself asked
// for, do not break that promise; a longer wait is as good. It is 0 if the verdict is
// not limited, and [Never] if no wait helps. (docs/design.md, the decision)
//
// In a leaky window a read of the fleet's counters replaces what has leaked. The wait is
// the least that suffices whether that read happens now, within a tick, or not at all; one that
// another request causes later may lengthen it.
func (d Decision) RetryAfter() time.Duration {
	if d.verdict != VerdictLimited {
		return 0
	}
	if !d.passesAlone() {
		return Never
	}
	if d.kind != leaky {
		return time.Duration(d.wait)
	}
	asked := d.asked()
	wait := level.LeastWait(d.model.EmptyAfter(), func(wait int64) bool {
		reached := d.model.Highest(d.threshold, d.tick, wait)
		return level.Fits(reached+asked, d.threshold, d.inclusive) &&
			(d.burst.Interval == 0 || d.burst.Fits(min(reached, d.burst.Held(d.held, d.threshold, wait)), asked, d.threshold))
	})
	if boundary := d.model.Window - d.model.Into; wait == boundary+1 {
		wait = boundary // see turnLocked
	}
	return time.Duration(wait)
}

// Reset returns how long it takes until the level is 0, if there is no more traffic
// anywhere. It is at most two windows (three after the wall clock stepped back), and 0
// if the level is 0 now. In a leaky window a read that this request did not ask for may
// lengthen it.
func (d Decision) Reset() time.Duration {
	if d.kind != leaky {
		return time.Duration(d.reset)
	}
	return time.Duration(d.model.Reset(d.threshold, d.reads, d.tick))
}
