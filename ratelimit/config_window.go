// The settings that say what a window is: what they may be together, and what
// follows from a calendar.

package ratelimit

import (
	"errors"
	"time"
)

// A WindowKind is what counts against a threshold (docs/design.md, the window).
type WindowKind string

const (
	// WindowLeaky: the fleet's count at the last sync, leaking at threshold per
	// window, and what this node counted since.
	WindowLeaky WindowKind = "leaky"
	// WindowSliding: what this node knows of the last window, in slices.
	WindowSliding WindowKind = "sliding"
	// WindowFixed: what came since the window began.
	WindowFixed WindowKind = "fixed"
)

// A Calendar says which periods a fixed window follows.
type Calendar string

const (
	CalendarNone  Calendar = ""      // windows of WindowInterval from the Unix epoch
	CalendarHour  Calendar = "hour"  // of UTC
	CalendarDay   Calendar = "day"   // 23 to 25 hours long where clocks change
	CalendarWeek  Calendar = "week"  // of ISO 8601: from Monday
	CalendarMonth Calendar = "month" // of the Gregorian calendar
)

// hoursOf are the hours of the longest period of each calendar, without a change of
// the clocks.
var hoursOf = map[Calendar]time.Duration{CalendarHour: 1, CalendarDay: 24, CalendarWeek: 7 * 24, CalendarMonth: 31 * 24}

var errLocalZone = errors.New("every machine has another one")

// deriveCalendar makes the window that of the calendar, if there is one, and fills in
// what would else be quarters and multiples of a month.
func (c *Config) deriveCalendar() {
	hours, ok := hoursOf[c.WindowCalendar]
	if !ok || c.Window != WindowFixed {
		return
	}
	if c.WindowCalendar != CalendarHour && c.WindowZone != "UTC" {
		hours++ // the clocks are put back
	}
	c.WindowInterval = hours * time.Hour
	if c.SyncInterval == 0 {
		c.SyncInterval = min(15*time.Minute, c.WindowInterval/8)
	}
	if c.LocalCacheIdleTimeout == 0 {
		c.LocalCacheIdleTimeout = c.WindowInterval
	}
	if c.LocalCacheTTL == 0 {
		c.LocalCacheTTL = 2 * c.WindowInterval
	}
}

// windowProblems finds fault with what the settings of the window are together. It
// passes over fields that are bad already, and marks those that it finds so.
func (c *Config) windowProblems(fail func(field int, format string, args ...any), bad *[fieldCount]bool) {
	if bad[fieldWindow] {
		return
	}
	kind := func(field int, shown string, set bool, want WindowKind) bool {
		wrong := set && !bad[field] && c.Window != want
		if wrong {
			fail(field, "%s: want a Window of %s, which is %s (%s)", shown, want, c.Window, c.variable(fieldWindow))
			bad[field] = true
		}
		return !wrong
	}
	kind(fieldWindowStrict, "true", c.WindowStrict, WindowSliding)
	kind(fieldWindowCalendar, shown(string(c.WindowCalendar)), c.WindowCalendar != CalendarNone, WindowFixed)
	if !kind(fieldWindowZone, shown(c.WindowZone), c.WindowZone != "UTC", WindowFixed) || bad[fieldWindowZone] {
		return
	}
	if _, err := c.zone(); err != nil {
		fail(fieldWindowZone, "%s: want the IANA name of a time zone (a program may need to import time/tzdata): %v", shown(c.WindowZone), err)
		bad[fieldWindowZone] = true
	}
}

// zone loads the time zone. The machine's own is none: nodes must agree.
func (c *Config) zone() (*time.Location, error) {
	if c.WindowZone == "Local" {
		return nil, errLocalZone
	}
	return time.LoadLocation(c.WindowZone)
}
