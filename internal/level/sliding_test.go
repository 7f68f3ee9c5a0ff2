package level

// This file tests the sliding window against a log of everything that was counted.

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// A slidingLog is a sliding window by definition: per slice of time what was counted in
// it, this node's and the others'.
type slidingLog struct {
	s           Sliding
	own, others map[int64]uint64 // by the number of the slice
}

func (l *slidingLog) slice(mono int64) int64 { return mono / l.s.Width }

// spread adds units that came evenly between two times, by cumulative rounding.
func (l *slidingLog) spread(from, to int64, units uint64, into map[int64]uint64) {
	if from >= to {
		into[l.slice(min(from, to))] += units
		return
	}
	done := uint64(0)
	for k := l.slice(from); k*l.s.Width < to; k++ {
		part := big.NewInt(min((k+1)*l.s.Width, to) - from)
		part.Mul(part, new(big.Int).SetUint64(units)).Div(part, big.NewInt(to-from))
		into[k] += part.Uint64() - done
		done = part.Uint64()
	}
}

// level is what the window ending at mono holds.
func (l *slidingLog) level(mono int64) float64 {
	now := l.slice(mono)
	sum := uint64(0)
	for k := now - int64(l.s.Slices) + 1; k <= now; k++ {
		sum += l.own[k] + l.others[k]
	}
	oldest := now - int64(l.s.Slices)
	aging := float64(l.own[oldest] + l.others[oldest])
	if !l.s.Strict {
		aging *= float64((now+1)*l.s.Width-mono) / float64(l.s.Width)
	}
	return float64(sum) + aging
}

// take removes units of the others that came until a time, the newest first, the slice that
// is leaving not.
func (l *slidingLog) take(mono, until int64, units uint64) (missing uint64) {
	for age := l.slice(mono) - l.slice(min(until, mono)); age < int64(l.s.Slices); age++ {
		k := l.slice(mono) - age
		take := min(units, l.others[k])
		l.others[k] -= take
		units -= take
	}
	return units
}

// giveBack removes units of this node that came at a time: see Ring.Take.
func (l *slidingLog) giveBack(mono, at int64, units uint64) {
	now, slices := l.slice(mono), int64(l.s.Slices)
	if l.slice(at) < now-slices {
		return
	}
	takes := func(k int64, from map[int64]uint64) {
		take := min(units, from[k])
		from[k] -= take
		units -= take
	}
	if takes(l.slice(at), l.own); l.slice(at) == now-slices {
		takes(l.slice(at), l.others)
	}
	for age := slices - 1; age >= 0; age-- {
		takes(now-age, l.own)
	}
	l.take(mono, mono, units)
}

func near(a, b float64) bool { d := a - b; return d < 1e-6 && d > -1e-6 }

func TestASlidingWindowHoldsWhatALogHolds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		slices := rapid.IntRange(2, 40).Draw(rt, "slices")
		window := rapid.Int64Range(int64(slices), 100_000).Draw(rt, "window")
		l := slidingLog{
			NewSliding(window, slices, rapid.Bool().Draw(rt, "strict")),
			map[int64]uint64{},
			map[int64]uint64{},
		}
		s := &l.s
		now := rapid.Int64Range(3*window, 4*window).Draw(rt, "start")
		var r Ring
		var h Slide
		r.Make(s, &h, now)
		units := rapid.Uint64Range(0, 1000)
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			now += rapid.OneOf(rapid.Int64Range(0, s.Width), rapid.Int64Range(0, 2*window)).Draw(rt, "later")
			r.Roll(s, &h, now)
			switch rapid.IntRange(0, 4).Draw(rt, "what") {
			case 0, 1:
				n := units.Draw(rt, "own")
				h.Sum += n
				l.own[l.slice(now)] += n
			case 2:
				from, n := now-rapid.Int64Range(0, 2*window).Draw(rt, "since"), units.Draw(rt, "others")
				to := rapid.Int64Range(from, now).Draw(rt, "to")
				own := rapid.Bool().Draw(rt, "mine")
				r.Spread(s, &h, from, to, n, own)
				into := l.others
				if own {
					into = l.own
				}
				l.spread(from, to, n, into)
			case 3:
				n := units.Draw(rt, "back")
				until := now - rapid.Int64Range(0, window).Draw(rt, "until")
				if got, want := r.TakeOthers(s, &h, until, n), l.take(now, until, n); got != want {
					rt.Fatalf("of %d units taken back %d are missing, want %d", n, got, want)
				}
			case 4:
				at, n := now-rapid.Int64Range(0, 2*window).Draw(rt, "given back"), units.Draw(rt, "back")
				r.Take(s, &h, at, n)
				l.giveBack(now, at, n)
			}
			if got, want := s.Level(&h, now), l.level(now); !near(got, want) {
				rt.Fatalf("at %d the level is %v, want %v (%+v, %+v)", now, got, want, h, r)
			}
			looksAhead(rt, &l, &r, &h, now)
		}
	})
}

// looksAhead checks when things leave the window.
func looksAhead(rt *rapid.T, l *slidingLog, r *Ring, h *Slide, now int64) {
	s := &l.s
	below := rapid.Float64Range(0.5, 3000).Draw(rt, "below")
	at := r.PassAt(s, h, now, func(level float64) bool { return level < below })
	if l.level(at) >= below+1e-6 || at > now && l.level(at-1) < below-1e-6 {
		rt.Fatalf("a level below %v is expected at %d + %d: it is %v then, %v just before", below, now, at-now, l.level(at), l.level(at-1))
	}
	threshold := rapid.Uint64Range(2, 300).Draw(rt, "threshold")
	r.Forget()
	one := r.OnePassesAt(s, h, now, threshold, false)
	if want := r.PassAt(s, h, now, func(level float64) bool { return Fits(level+1, threshold, false) }); one != want {
		rt.Fatalf("one unit passes at %d, want %d", one, want)
	}
	if kept := r.OnePassesAt(s, h, now, threshold, false); kept != one {
		rt.Fatalf("one unit passes at %d, and when asked again at %d", one, kept)
	}
	empty := r.EmptyAt(s, h, now)
	if l.level(empty) != 0 || empty > now && l.level(empty-1) == 0 {
		rt.Fatalf("empty at %d + %d: level %v then, %v just before", now, empty-now, l.level(empty), l.level(empty-1))
	}
}

// What a ring keeps about one unit holds while time passes, until something is added.
func TestWhenOneUnitPassesIsKeptUntilSomethingIsAdded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		s := NewSliding(3000, rapid.IntRange(2, 30).Draw(rt, "slices"), rapid.Bool().Draw(rt, "strict"))
		var r Ring
		var h Slide
		now := int64(10_000)
		r.Make(&s, &h, now)
		const threshold = 50
		for range 200 {
			now += rapid.Int64Range(0, 300).Draw(rt, "later")
			r.Roll(&s, &h, now)
			switch {
			case Fits(s.Level(&h, now)+1, threshold, false):
				h.Sum += rapid.Uint64Range(1, 40).Draw(rt, "own")
			case rapid.IntRange(0, 9).Draw(rt, "rarely") == 0:
				r.Spread(&s, &h, now-1000, now, 7, false)
			case rapid.IntRange(0, 9).Draw(rt, "now and then") == 0: // late, and all in the slice that is leaving
				r.Spread(&s, &h, now-3000, now-3000, 5, true)
			case rapid.IntRange(0, 9).Draw(rt, "seldom") == 0:
				r.TakeOthers(&s, &h, now, 3)
			}
			got := r.OnePassesAt(&s, &h, now, threshold, false)
			want := r.PassAt(&s, &h, now, func(level float64) bool { return Fits(level+1, threshold, false) })
			if got != want {
				rt.Fatalf("at %d one unit is kept to pass at %d, want %d", now, got, want)
			}
		}
	})
}

// Counts of any size keep exact sums, leave the window in the end, and never too early.
func TestCountsOfAnySizeKeepExactSums(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		s := NewSliding(3000, rapid.IntRange(2, 30).Draw(rt, "slices"), false)
		l := slidingLog{s, map[int64]uint64{}, map[int64]uint64{}}
		var r Ring
		var h Slide
		now := int64(10_000)
		r.Make(&s, &h, now)
		size := rapid.OneOf(rapid.Uint64Range(0, 1<<20), rapid.Uint64Range(1<<31, 1<<34), rapid.Uint64Range(0, 1<<53-1))
		counted := uint64(0)
		for range 20 {
			now += rapid.Int64Range(0, 150).Draw(rt, "later")
			r.Roll(&s, &h, now)
			n := size.Draw(rt, "units")
			if rapid.Bool().Draw(rt, "mine") {
				h.Sum += n
				l.own[l.slice(now)] += n
			} else {
				r.Spread(&s, &h, now-200, now, n, false)
				l.spread(now-200, now, n, l.others)
			}
			counted += n
			if want := l.level(now); s.Level(&h, now) < want*(1-1e-12) {
				rt.Fatalf("at %d the level is %v, want %v at least: units left too early", now, s.Level(&h, now), want)
			}
			sum := h.Sum + uint64(h.Aging)
			for age := 1; age < len(r.slices)-1; age++ {
				sum -= r.units(r.back(age))
			}
			if sum != r.current(&h)+uint64(h.Aging) {
				rt.Fatalf("the slices do not add up: %+v, %+v", h, r)
			}
			if now < 10_000+3000-s.Width && h.Sum+uint64(h.Aging) != counted {
				rt.Fatalf("%d units are in the window, want all %d", h.Sum+uint64(h.Aging), counted)
			}
		}
		at := r.EmptyAt(&s, &h, now)
		pass := r.PassAt(&s, &h, now, func(level float64) bool { return level < 1 })
		if r.Roll(&s, &h, pass); s.Level(&h, pass) >= 1 {
			rt.Fatalf("level %v when it should be below 1", s.Level(&h, pass))
		}
		if r.Roll(&s, &h, at); !r.Empty(&h) {
			rt.Fatalf("%+v when it should be empty", h)
		}
	})
}

func TestSlicesCoverTheWindow(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		window := rapid.Int64Range(100_000_000, 365*24*60*minute).Draw(t, "window")
		slices := rapid.IntRange(2, 1000).Draw(t, "slices")
		s := NewSliding(window, slices, false)
		if all := s.Width * int64(slices); all < window || all >= window+int64(slices) {
			t.Fatalf("%d slices of %d are %d, the window is %d", slices, s.Width, all, window)
		}
		if whole := float64(s.Width) * s.part; whole > 1 || whole < 1-1e-15 {
			t.Fatalf("a slice of %d is %v of itself", s.Width, whole)
		}
		mono := rapid.Int64Range(-10*window, 10*window).Draw(t, "mono")
		if end := s.EndOf(mono); end <= mono || end-mono > s.Width || end%s.Width != 0 {
			t.Fatalf("the slice of %d ends at %d", mono, end)
		}
	})
}
