package ratelimit

// This file says in which epoch a time is.

import (
	"sync/atomic"
	"time"

	"github.com/hanzoai/limiters/internal/level"
)

// A calendar numbers the epochs of a calendar's periods, and knows the one that was asked
// for last. It is safe for concurrent use.
type calendar struct {
	level.Calendar
	last atomic.Pointer[level.Stretch]
}

// periods are those of calendars.
var periods = map[Calendar]level.Period{
	CalendarHour: level.Hour, CalendarDay: level.Day, CalendarWeek: level.Week, CalendarMonth: level.Month,
}

// newCalendar returns the calendar of a configuration that is valid, nil if it has none.
func newCalendar(cfg Config) *calendar {
	period, ok := periods[cfg.WindowCalendar]
	if !ok {
		return nil
	}
	zone, err := cfg.zone()
	if err != nil {
		return nil // it was loaded a moment ago
	}
	return &calendar{Calendar: level.Calendar{Period: period, Zone: zone}}
}

// at returns the epoch of a wall reading.
func (c *calendar) at(wall int64) level.Stretch {
	if last := c.last.Load(); last != nil && last.From <= wall && wall < last.To {
		return *last
	}
	s := c.At(wall)
	c.last.Store(&s)
	return s
}

// epochAt returns the epoch of a wall reading, and how far into it that is.
func (l *Limiter) epochAt(wall int64) (epoch, into int64) {
	if l.calendar == nil {
		return level.EpochAt(wall, l.window)
	}
	s := l.calendar.at(wall)
	return s.Epoch, min(max(0, wall-s.From), l.window-1)
}

// stretch returns the epoch of a reading and its bounds.
func (l *Limiter) stretch(r *reading) level.Stretch {
	if l.calendar != nil {
		return l.calendar.at(r.wall)
	}
	return level.Stretch{Epoch: r.epoch, From: r.wall - r.into, To: r.wall - r.into + l.window}
}

// number is what stands for an epoch in the name of a counter.
func (l *Limiter) number(epoch int64) int64 {
	if l.calendar == nil {
		return epoch
	}
	return l.calendar.Number(epoch)
}

// counterTTL is how long a counter of a calendar that is written at a reading lives at
// least: until its period ends, and a margin.
func (l *Limiter) counterTTL(r *reading) time.Duration {
	rest := time.Duration(max(0, l.calendar.at(r.wall).To-r.wall))
	return (rest + expiryMargin(l.cfg)).Truncate(time.Millisecond)
}
