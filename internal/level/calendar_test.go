package level

// This file tests the periods of calendars, in zones that do to their clocks what zones
// do.

import (
	"testing"
	"time"
	_ "time/tzdata"

	"pgregory.net/rapid"
)

func zone(t interface{ Fatal(...any) }, name string) *time.Location {
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func TestPeriodsOfACalendar(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		period         Period
		zone, at       string // RFC 3339
		epoch          int64
		from, to, what string
	}{
		{Hour, "Asia/Kolkata", "2026-03-01T00:10:00+05:30", 492306, "2026-02-28T18:00:00Z", "2026-02-28T19:00:00Z", "hours are those of UTC"},
		{Day, "UTC", "2026-01-01T00:00:00Z", 20454, "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", ""},
		{Day, "UTC", "1969-12-31T23:59:59Z", -1, "1969-12-31T00:00:00Z", "1970-01-01T00:00:00Z", ""},
		{Day, "Europe/Berlin", "2026-03-29T12:00:00+02:00", 20541, "2026-03-29T00:00:00+01:00", "2026-03-30T00:00:00+02:00", "23 hours"},
		{Day, "Europe/Berlin", "2026-10-25T02:30:00+01:00", 20751, "2026-10-25T00:00:00+02:00", "2026-10-26T00:00:00+01:00", "25 hours"},
		{Day, "America/Sao_Paulo", "2018-11-04T12:00:00-02:00", 17839, "2018-11-04T01:00:00-02:00", "2018-11-05T00:00:00-02:00", "midnight was skipped"},
		{Day, "America/Sao_Paulo", "2018-11-03T23:59:59-03:00", 17838, "2018-11-03T00:00:00-03:00", "2018-11-04T00:00:00-03:00", "the day before that"},
		{Day, "America/Havana", "2026-11-01T00:30:00-05:00", 20758, "2026-11-01T00:00:00-04:00", "2026-11-02T00:00:00-05:00", "midnight came twice"},
		{Day, "Australia/Lord_Howe", "2026-04-05T12:00:00+10:30", 20548, "2026-04-05T00:00:00+11:00", "2026-04-06T00:00:00+10:30", "half an hour more"},
		{Day, "Pacific/Apia", "2011-12-31T12:00:00+14:00", 15339, "2011-12-31T00:00:00+14:00", "2012-01-01T00:00:00+14:00", "the day before never was"},
		{Week, "UTC", "1970-01-04T23:00:00Z", 0, "1969-12-29T00:00:00Z", "1970-01-05T00:00:00Z", ""},
		{Week, "Europe/Berlin", "2026-01-01T00:00:00+01:00", 2922, "2025-12-29T00:00:00+01:00", "2026-01-05T00:00:00+01:00", "ISO week 1 of 2026"},
		{Week, "Europe/Berlin", "2026-03-29T23:59:59+02:00", 2934, "2026-03-23T00:00:00+01:00", "2026-03-30T00:00:00+02:00", "167 hours"},
		{Month, "UTC", "1970-01-31T23:59:59Z", 0, "1970-01-01T00:00:00Z", "1970-02-01T00:00:00Z", ""},
		{Month, "America/New_York", "2024-02-29T23:59:59-05:00", 649, "2024-02-01T00:00:00-05:00", "2024-03-01T00:00:00-05:00", "a leap year"},
		{Month, "America/New_York", "1969-12-31T12:00:00-05:00", -1, "1969-12-01T00:00:00-05:00", "1970-01-01T00:00:00-05:00", ""},
	} {
		parse := func(text string) int64 {
			at, err := time.Parse(time.RFC3339, text)
			if err != nil {
				t.Fatal(err)
			}
			return at.UnixNano()
		}
		c := Calendar{row.period, zone(t, row.zone)}
		want := Stretch{row.epoch, parse(row.from), parse(row.to)}
		if got := c.At(parse(row.at)); got != want {
			t.Errorf("%s %s (%s): epoch %d from %v to %v, want %d from %v to %v", row.zone, row.at, row.what,
				got.Epoch, time.Unix(0, got.From).In(c.Zone), time.Unix(0, got.To).In(c.Zone), want.Epoch, row.from, row.to)
		}
		if got := c.Number(row.epoch); got != want.From/second {
			t.Errorf("%s %s: the number of epoch %d is %d, want its start in Unix seconds", row.zone, row.at, row.epoch, got)
		}
	}
}

// Whatever a zone does to its clocks: epochs follow each other, each time is in one, and
// a period begins at the first moment of its first day.
func TestPeriodsFollowEachOtherInEveryZone(t *testing.T) {
	t.Parallel()
	zones := []string{
		"UTC", "Europe/Berlin", "America/New_York", "America/St_Johns", "America/Sao_Paulo", "America/Havana", "Asia/Beirut",
		"Africa/Cairo", "Asia/Gaza", "Australia/Lord_Howe", "Pacific/Apia", "Pacific/Kwajalein", "Antarctica/Troll", "Asia/Kathmandu", "America/Scoresbysund",
	}
	rapid.Check(t, func(rt *rapid.T) {
		c := Calendar{rapid.SampledFrom([]Period{Hour, Day, Week, Month}).Draw(rt, "period"), zone(rt, rapid.SampledFrom(zones).Draw(rt, "zone"))}
		from := time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()
		to := time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()
		at := c.At(rapid.Int64Range(from, to).Draw(rt, "wall"))
		for range 50 {
			if at.From >= at.To {
				rt.Fatalf("epoch %d is from %d to %d", at.Epoch, at.From, at.To)
			}
			for _, inside := range []int64{at.From, at.From + (at.To-at.From)/2, at.To - 1} {
				if got := c.At(inside); got != at {
					rt.Fatalf("%v is in %+v, want %+v", time.Unix(0, inside), got, at)
				}
			}
			next := c.At(at.To)
			if next.From != at.To || next.Epoch <= at.Epoch || next.Epoch > at.Epoch+2 {
				rt.Fatalf("%+v is followed by %+v", at, next)
			}
			if c.Period != Hour && civil(time.Unix(0, at.From).In(c.Zone)).Day() == civil(time.Unix(0, at.From-1).In(c.Zone)).Day() {
				rt.Fatalf("%v begins within a day", time.Unix(0, at.From).In(c.Zone))
			}
			at = next
		}
	})
}

func TestTimesBeyondACalendarCountAsItsEnds(t *testing.T) {
	t.Parallel()
	c := Calendar{Month, time.UTC}
	for _, wall := range []int64{-1 << 63, 1<<63 - 1} {
		if at := c.At(wall); at.From >= at.To {
			t.Errorf("%d is in %+v", wall, at)
		}
	}
}
