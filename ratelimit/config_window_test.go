// Tests of what the settings of the window may be together, and of calendars.

package ratelimit

import (
	"strings"
	"testing"
	"time"
)

func TestSettingsOfTheWindowTogether(t *testing.T) {
	t.Parallel()
	const v = "GLOBAL_RATE_LIMIT_"
	for _, row := range []struct {
		what string
		set  func(c *Config)
		want string
	}{
		{"leaky", func(*Config) {}, ""},
		{"sliding and strict", func(c *Config) { c.Window, c.WindowStrict = WindowSliding, true }, ""},
		{"fixed", func(c *Config) { c.Window = WindowFixed }, ""},
		{"a month in a zone", func(c *Config) {
			c.Window, c.WindowCalendar, c.WindowZone = WindowFixed, CalendarMonth, "Europe/Berlin"
		}, ""},
		{"no kind", func(c *Config) { c.Window = "" }, "Window (" + v + `WINDOW): "": want leaky, sliding or fixed`},
		{"an unknown kind", func(c *Config) { c.Window = "Sliding" }, "Window (" + v + `WINDOW): "Sliding": want leaky, sliding or fixed`},
		{"an unknown calendar", func(c *Config) { c.Window, c.WindowCalendar = WindowFixed, "year" }, "WindowCalendar (" + v + `WINDOW_CALENDAR): "year": want empty, hour, day, week or month`},
		{"strict and leaky", func(c *Config) { c.WindowStrict = true }, "WindowStrict (" + v + "WINDOW_STRICT): true: want a Window of sliding, which is leaky (" + v + "WINDOW)"},
		{"strict and fixed", func(c *Config) { c.Window, c.WindowStrict = WindowFixed, true }, "WindowStrict (" + v + "WINDOW_STRICT): true: want a Window of sliding, which is fixed (" + v + "WINDOW)"},
		{"a calendar and leaky", func(c *Config) { c.WindowCalendar = CalendarDay }, "WindowCalendar (" + v + `WINDOW_CALENDAR): "day": want a Window of fixed, which is leaky (` + v + "WINDOW)"},
		{"a calendar and sliding", func(c *Config) { c.Window, c.WindowCalendar = WindowSliding, CalendarHour }, "WindowCalendar (" + v + `WINDOW_CALENDAR): "hour": want a Window of fixed, which is sliding (` + v + "WINDOW)"},
		{"a zone and leaky", func(c *Config) { c.WindowZone = "Europe/Berlin" }, "WindowZone (" + v + `WINDOW_ZONE): "Europe/Berlin": want a Window of fixed, which is leaky (` + v + "WINDOW)"},
		{"no zone", func(c *Config) { c.Window, c.WindowZone = WindowFixed, "" }, "WindowZone (" + v + `WINDOW_ZONE): "": want 1 … 128 bytes of UTF-8 without control characters`},
	} {
		c := validConfig()
		row.set(&c)
		want := row.want
		if want != "" {
			want = "ratelimit: " + want
		}
		wantFault(t, row.what, c.Validate(), want)
	}
}

func TestAZoneThatDoesNotLoadIsAnErrorThatNamesTheDatabase(t *testing.T) {
	t.Parallel()
	for _, zone := range []string{"Mars/Olympus", "../etc/passwd", "Local", "utc+1", "Europe/berlin "} {
		c := validConfig()
		c.Window, c.WindowCalendar, c.WindowZone = WindowFixed, CalendarDay, zone
		err := c.Validate()
		if err == nil || !strings.Contains(err.Error(), "WindowZone (GLOBAL_RATE_LIMIT_WINDOW_ZONE)") || !strings.Contains(err.Error(), "time/tzdata") {
			t.Errorf("zone %q: %v, want an error that names the field, its variable and time/tzdata", zone, err)
		}
	}
}

// What follows from a calendar is the same again when it is resolved twice, and valid.
func TestACalendarSetsTheWindow(t *testing.T) {
	t.Parallel()
	const h = time.Hour
	for _, row := range []struct {
		calendar           Calendar
		zone               string
		window, sync, idle time.Duration
	}{
		{CalendarHour, "UTC", h, h / 8, h},
		{CalendarHour, "Europe/Berlin", h, h / 8, h},
		{CalendarDay, "UTC", 24 * h, h / 4, 24 * h},
		{CalendarDay, "Europe/Berlin", 25 * h, h / 4, 25 * h},
		{CalendarWeek, "UTC", 168 * h, h / 4, 168 * h},
		{CalendarMonth, "America/New_York", 745 * h, h / 4, 745 * h},
	} {
		for _, set := range []time.Duration{time.Minute, 200 * time.Millisecond, 20 * h} {
			c := validConfig()
			c.Window, c.WindowCalendar, c.WindowZone, c.WindowInterval = WindowFixed, row.calendar, row.zone, set
			if err := c.Validate(); err != nil {
				t.Errorf("%s in %s: %v", row.calendar, row.zone, err)
			}
			r := c.Resolved()
			if r.WindowInterval != row.window || r.SyncInterval != row.sync || r.LocalCacheIdleTimeout != row.idle || r.LocalCacheTTL != 2*row.window {
				t.Errorf("%s in %s: %v, want a window of %v read every %v, idle after %v", row.calendar, row.zone, r, row.window, row.sync, row.idle)
			}
			if err := r.Validate(); err != nil || r.Resolved().String() != r.String() {
				t.Errorf("%s in %s, resolved again: %v, %v", row.calendar, row.zone, err, r.Resolved())
			}
		}
	}
}
