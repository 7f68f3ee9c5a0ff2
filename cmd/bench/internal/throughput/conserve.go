package throughput

// This file says whether every unit that was counted is where it should be: in
// the fleet's counts, once, or lost for a reason that the limiters name.

import (
	"fmt"

	"github.com/hanzoai/limiters/cmd/bench/internal/figures"
)

// A lossReport is what the nodes say after Close about units that are not in the
// fleet's counts, or may not be.
type lossReport struct {
	// Undelivered units were still with a node when it closed.
	Undelivered uint64
	// Unknown units were sent and never answered for: they may be in the counts.
	Unknown uint64
	// Dropped units were given up for a known cause: stale, poisoned, overflow or
	// closed. They are not in the counts.
	Dropped uint64
}

// none reports whether nothing was lost.
func (l lossReport) none() bool { return l == lossReport{} }

// maxExamples bounds how many keys a broken audit names.
const maxExamples = 5

// An audit compares what the workers counted with what the fleet's counts hold.
type audit struct {
	Counted uint64 // units that the workers saw recorded
	Found   uint64 // units in the fleet's counts
	Loss    lossReport
	Exact   bool     // nothing was lost: each key was held to equality
	Wrong   int      // keys whose counts are impossible
	Broken  []string // what does not hold; empty: conserved
}

// conserved reports whether every unit is accounted for.
func (a *audit) conserved() bool { return len(a.Broken) == 0 }

// newAudit judges. counted and found hold units by key, from the workers and from
// the fleet's counts; byNodes is the sum that the nodes counted themselves.
//
// No key may hold more than was counted. If nothing was lost each key must hold
// exactly what was counted; otherwise, with R found and K dropped for a known
// cause: counted − unknown − undelivered ≤ R + K ≤ counted (docs/design.md, tests).
func newAudit(names []string, counted, found []uint64, byNodes uint64, loss lossReport) *audit {
	a := &audit{Loss: loss, Exact: loss.none()}
	var examples []string
	for k, name := range names {
		a.Counted += counted[k]
		a.Found += found[k]
		if found[k] > counted[k] || a.Exact && found[k] != counted[k] {
			a.Wrong++
			if len(examples) < maxExamples {
				examples = append(examples, fmt.Sprintf("%s: counted %s, found %s", name, figures.Grouped(counted[k]), figures.Grouped(found[k])))
			}
		}
	}
	if a.Wrong > 0 {
		a.Broken = append(a.Broken, fmt.Sprintf("%s keys hold other counts than were counted", figures.Grouped(uint64(a.Wrong))))
		a.Broken = append(a.Broken, examples...)
	}
	if byNodes != a.Counted {
		a.Broken = append(a.Broken, fmt.Sprintf("the nodes say that they counted %s units, the workers saw %s", figures.Grouped(byNodes), figures.Grouped(a.Counted)))
	}
	known := a.Found + loss.Dropped
	if known > a.Counted {
		a.Broken = append(a.Broken, fmt.Sprintf("%s units found or dropped, only %s counted", figures.Grouped(known), figures.Grouped(a.Counted)))
	}
	if known+loss.Unknown+loss.Undelivered < a.Counted {
		a.Broken = append(a.Broken, fmt.Sprintf("%s units are nowhere", figures.Grouped(a.Counted-known-loss.Unknown-loss.Undelivered)))
	}
	return a
}
