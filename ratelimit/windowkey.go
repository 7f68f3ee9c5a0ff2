package ratelimit

// This file is the number that the window key holds, so that two deployments with
// different windows under one prefix are told: whichever comes second says so, whatever
// differs.

import (
	"hash/fnv"
	"log/slog"
	"time"
)

// Numbers below millisInKind are windows in milliseconds. Windows that leak and those that
// slide count in the same epochs, so they share a number and may follow each other in a
// rolling upgrade.
const (
	millisInKind   = 1_000_000_000_000 // more than a window has milliseconds
	plainFixed     = 1                 // windows of WindowInterval that are fixed
	firstCalendar  = 2                 // of hours; days, weeks and months follow
	kindsOfNumbers = 6
)

// windowNumber is what stands for the window in the window key.
func windowNumber(cfg Config) int64 {
	if cfg.Window != WindowFixed {
		return cfg.WindowInterval.Milliseconds()
	}
	period, ok := periods[cfg.WindowCalendar]
	if !ok {
		return plainFixed*millisInKind + cfg.WindowInterval.Milliseconds()
	}
	zone := fnv.New64a()
	if cfg.WindowCalendar != CalendarHour { // hours are the same everywhere
		zone.Write([]byte(cfg.WindowZone))
	}
	return (firstCalendar+int64(period))*millisInKind + int64(zone.Sum64()%millisInKind)
}

// windowAttr says for a log line what a number in the window key means.
func windowAttr(name string, number int64) slog.Attr {
	window := time.Duration(number%millisInKind) * time.Millisecond
	switch kind := number / millisInKind; {
	case number < millisInKind:
		return slog.Duration(name, time.Duration(number)*time.Millisecond)
	case kind == plainFixed:
		return slog.String(name, "fixed "+window.String())
	case kind < kindsOfNumbers:
		period := [...]string{"hour", "day", "week", "month"}[kind-firstCalendar]
		return slog.String(name, "fixed, each "+period+" of a time zone")
	}
	return slog.Int64(name, number)
}
