package level

// This file numbers the periods of a calendar, so that each is an epoch: consecutive
// ordinals, and when each begins.

import (
	"math"
	"time"
)

// A Period is what a calendar's epochs are.
type Period uint8

const (
	Hour Period = iota // of UTC
	Day                // of the zone, 23 to 25 hours long
	Week               // from Monday, as ISO 8601 has it
	Month
)

// A Calendar numbers the periods of a time zone. Hour 0, day 0 and month 0 began with
// 1970 in the zone; week 0 is the one that 1970 began in. It is immutable.
type Calendar struct {
	Period Period
	Zone   *time.Location
}

// A Stretch is an epoch and its bounds, in wall time: From ≤ a time in it < To.
type Stretch struct{ Epoch, From, To int64 }

// Bounds of what a calendar numbers: wall times before and beyond count as these.
var (
	earliest = time.Date(1678, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()
	latest   = time.Date(2262, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()
)

// At returns the epoch of a wall reading. The first and the last that are numbered have
// no end.
func (c *Calendar) At(wall int64) Stretch {
	wall = min(max(wall, earliest), latest)
	epoch := c.guess(wall)
	for c.Start(epoch) > wall {
		epoch--
	}
	for c.Start(epoch+1) <= wall {
		epoch++
	}
	s := Stretch{Epoch: epoch, From: c.Start(epoch), To: c.Start(epoch + 1)}
	if s.From <= earliest {
		s.From = math.MinInt64
	}
	if latest < s.To {
		s.To = math.MaxInt64
	}
	return s
}

// guess is the epoch of a wall reading, or one near it: where clocks change, a civil
// date may come twice.
func (c *Calendar) guess(wall int64) int64 {
	if c.Period == Hour {
		epoch, _ := EpochAt(wall, int64(time.Hour))
		return epoch
	}
	year, month, day := time.Unix(0, wall).In(c.Zone).Date()
	if c.Period == Month {
		return int64(year-1970)*12 + int64(month-1)
	}
	days, _ := EpochAt(time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix(), 24*60*60)
	if c.Period == Week {
		days, _ = EpochAt(days+3, 7) // 1970-01-01 was a Thursday
	}
	return days
}

// Start is when an epoch begins, in wall time: at the first moment of its first day.
func (c *Calendar) Start(epoch int64) int64 {
	switch c.Period {
	case Hour:
		return epoch * int64(time.Hour)
	case Day:
		return c.midnight(1970, 1, 1+int(epoch))
	case Week:
		return c.midnight(1970, 1, 1+int(7*epoch-3))
	default:
		return c.midnight(1970, time.Month(1+epoch), 1)
	}
}

// midnight is the first moment of a day. Where the clocks skip midnight, the day begins
// when they do; where it comes twice, the first time.
func (c *Calendar) midnight(year int, month time.Month, day int) int64 {
	t := time.Date(year, month, day, 0, 0, 0, 0, c.Zone)
	want := time.Date(year, month, day, 0, 0, 0, 0, time.UTC) // normal form of the date
	from, to := t.ZoneBounds()
	switch _, offset := t.Zone(); {
	case civil(t).Before(want): // midnight was skipped, and t is before that
		return to.UnixNano()
	case civil(t).After(want): // or after
		return from.UnixNano()
	default:
		if from.IsZero() {
			return t.UnixNano()
		}
		_, before := from.Add(-1).Zone()
		if again := time.Duration(before-offset) * time.Second; again > 0 && t.Sub(from) < again {
			return t.Add(-again).UnixNano()
		}
		return t.UnixNano()
	}
}

// civil is what a clock on the wall shows, as a time of UTC.
func civil(t time.Time) time.Time {
	_, offset := t.Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

// Number is what stands for an epoch in the name of a counter: its start in Unix
// seconds.
func (c *Calendar) Number(epoch int64) int64 { return c.Start(epoch) / int64(time.Second) }
