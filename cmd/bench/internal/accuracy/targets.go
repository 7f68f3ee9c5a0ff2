package accuracy

// This file says what the rows have to be.

import "fmt"

// countedLimit is the lowest threshold at which means and false limits are judged.
const countedLimit = 1000

// A target judges rows.
type target struct {
	what string
	of   func(r *row, rows []row) (got float64, least, most bound)
}

// A bound is a number, or none.
type bound struct {
	value float64
	there bool
}

func at(v float64) bound { return bound{v, true} }

// targets are all.
var targets = []target{
	{"worst window", func(r *row, rows []row) (got float64, least, most bound) {
		return r.Worst, bound{}, r.worstBound(rows)
	}},
	{"mean window", func(r *row, _ []row) (got float64, least, most bound) {
		least, most = r.meanBounds()
		return r.Mean, least, most
	}},
	{"false limits", func(r *row, _ []row) (got float64, least, most bound) {
		return float64(r.FalseLimits), bound{}, r.falseBound()
	}},
	{"scripts per node and second", func(r *row, rows []row) (got float64, least, most bound) {
		return r.Scripts, bound{}, r.scriptBound(rows)
	}},
	{"scripts of a node between two ticks", func(r *row, rows []row) (got float64, least, most bound) {
		return float64(r.most), bound{}, r.tickBound(rows)
	}},
	{"refused again, in %", func(r *row, _ []row) (got float64, least, most bound) {
		if r.RefusedAgain == nil {
			return 0, bound{}, bound{}
		}
		switch {
		case r.spec.nodes == 1:
			return *r.RefusedAgain, bound{}, at(0)
		case r.spec.threshold >= countedLimit && r.Schedule != oursTick:
			return *r.RefusedAgain, bound{}, at(5)
		default:
			return 0, bound{}, bound{}
		}
	}},
}

// A known miss is a target that is missed, how far it may be, and why.
type knownMiss struct {
	scenario string
	most     float64
	why      string
}

// knownMisses are of the target refused again.
var knownMisses = []knownMiss{
	{
		"polite clients 3 nodes", 14,
		"the node that says how long to wait does not know what the others counted within the last sync, " +
			"so the first wait after a busy spell is a little short",
	},
}

// missed returns a line for each target that a row misses, known misses apart.
func missed(rows []row) (lines []string) {
	lines, _ = judge(rows)
	return lines
}

// judge returns a line for each target that a row misses, and apart from these for those
// that are known.
func judge(rows []row) (lines, known []string) {
	for i := range rows {
		r := &rows[i]
		for _, t := range targets {
			got, least, most := t.of(r, rows)
			line := ""
			switch {
			case least.there && got < least.value:
				line = fmt.Sprintf("%s, %s: %s %.4g, want at least %.4g", r.Scenario, r.Schedule, t.what, got, least.value)
			case most.there && got > most.value:
				line = fmt.Sprintf("%s, %s: %s %.4g, want at most %.4g", r.Scenario, r.Schedule, t.what, got, most.value)
			default:
				continue
			}
			if why := r.known(); why != "" {
				known = append(known, line+": "+why)
			} else {
				lines = append(lines, line)
			}
		}
	}
	return lines, known
}

// known says why a row of polite clients misses its target; "" if that is not known, or
// if it misses it by more.
func (r *row) known() string {
	for _, k := range knownMisses {
		if k.scenario == r.spec.name && r.RefusedAgain != nil && *r.RefusedAgain <= k.most {
			return k.why
		}
	}
	return ""
}

// worstOfSteady is what a steady load of 3 × and of 10 × may admit in the worst window.
type worstOfSteady struct{ three, ten float64 }

// slidingBounds and burstBounds are by the number of nodes.
var (
	slidingBounds = map[int]worstOfSteady{1: {1.03, 1.10}, 10: {1.07, 1.16}, 50: {1.09, 1.25}, 100: {1.09, 1.25}}
	burstBounds   = map[int]worstOfSteady{1: {1.10, 1.18}, 10: {1.10, 1.18}, 50: {1.12, 1.28}, 100: {1.12, 1.28}}
)

// spikeBounds are what 4.5 thresholds within a second may admit, by the number of nodes.
var spikeBounds = map[int]struct{ sliding, leaky, trip float64 }{
	3: {1.12, 1.15, 1.15}, 10: {1.15, 1.20, 1.20}, 50: {1.35, 1.40, 1.40},
}

// worstBound is what the worst window may hold, in thresholds.
func (r *row) worstBound(rows []row) bound {
	s := r.spec
	switch {
	case r.Schedule == strict && s.nodes == 1:
		return at(1)
	case s.spike == 4.5 && (r.Schedule == sliding || r.Schedule == ours):
		return at(s.spikeBound(r.Schedule))
	case r.Schedule == oursTick && s.by[len(s.by)-1] == perfect:
		return at(s.plainBound(find(rows, s, oneNode).Worst))
	case s.usual() && r.Schedule == sliding:
		return slidingBounds[s.nodes].of(s.factor)
	case s.usual() && r.Schedule == burst:
		return burstBounds[s.nodes].of(s.factor)
	}
	return bound{}
}

// usual reports whether the scenario is a plain steady load at the usual threshold.
func (s *scenario) usual() bool {
	return s.steady && s.threshold == usualThreshold && s.window == steady(1, 1).window && s.skew == 0 && s.route == nil &&
		s.clocks == 0 && !s.cutOff && s.polite == nil
}

func (b worstOfSteady) of(load float64) bound {
	switch {
	case b.three == 0 || load > 10:
		return bound{}
	case load > 3:
		return at(b.ten)
	default:
		return at(b.three)
	}
}

func (s *scenario) spikeBound(by schedule) float64 {
	b := spikeBounds[s.nodes]
	switch {
	case s.trip.Milliseconds() >= 40:
		return 1.6
	case s.trip > 0:
		return b.trip
	case by == ours:
		return b.leaky
	default:
		return b.sliding
	}
}

// meanBounds is between what the mean window has to be, in thresholds.
func (r *row) meanBounds() (least, most bound) {
	s := r.spec
	if !s.usual() || s.factor < 1.5 || s.factor > 10 {
		return bound{}, bound{}
	}
	switch r.Schedule {
	case sliding:
		return at(0.97), at(1.05)
	case strict:
		return at(0.95), at(1.05)
	case burst:
		return at(0.99), at(1.015)
	}
	return bound{}, bound{}
}

// falseBound is how many requests may be limited that should not be.
func (r *row) falseBound() bound {
	s := r.spec
	if s.threshold < countedLimit && s.spike == 0 || s.polite != nil {
		return bound{}
	}
	switch r.Schedule {
	case sliding, slidingTick, slidingHot:
		if s.steady && s.factor > 0.97 && s.factor < 1 {
			return bound{}
		}
		return at(0)
	case ours, oursTick, hot:
		if s.steady && s.factor <= 0.97 || s.spike > 0 {
			return at(0)
		}
	}
	return bound{}
}

// scriptBound is how many scripts a node may send a second.
func (r *row) scriptBound(rows []row) bound {
	if r.Schedule != ours && r.Schedule != sliding {
		return bound{}
	}
	s := r.spec
	switch {
	case len(s.keys) > 0 && s.polite == nil:
		plain := find(rows, s, oursTick)
		return at(plain.Scripts + 6/s.ticks().Seconds())
	case s.name == hotEntity:
		return at(2)
	}
	return bound{}
}

// tickBound is how many scripts a node may send between two ticks.
func (r *row) tickBound(rows []row) bound {
	s := r.spec
	if len(s.keys) == 0 || s.polite != nil || r.Schedule != ours && r.Schedule != sliding {
		return bound{}
	}
	plain := find(rows, s, oursTick)
	return at(float64(plain.most) + 29)
}

// find returns the row of a scenario and a schedule.
func find(rows []row, spec *scenario, by schedule) *row {
	for i := range rows {
		if rows[i].spec == spec && rows[i].Schedule == by {
			return &rows[i]
		}
	}
	panic("accuracy: no row of " + spec.name + " by " + string(by))
}
