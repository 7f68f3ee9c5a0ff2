package main

// This file writes numbers the way people read them.

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// grouped writes n with a comma after every third digit.
func grouped(n uint64) string {
	digits := strconv.FormatUint(n, 10)
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}

// byteSize writes a number of bytes, to three digits at least.
func byteSize(n float64) string {
	switch {
	case n < 10_000:
		return fmt.Sprintf("%.0f B", n)
	case n < 10_000_000:
		return fmt.Sprintf("%.1f kB", n/1e3)
	default:
		return fmt.Sprintf("%.1f MB", n/1e6)
	}
}

// percent writes a share of a whole; of nothing it is 0.
func percent(part, whole float64) string {
	if whole == 0 {
		return "0.0 %"
	}
	return fmt.Sprintf("%.1f %%", 100*part/whole)
}

// nanoseconds writes a short duration in the unit that suits it.
func nanoseconds(n int64) string {
	switch d := time.Duration(n); {
	case d < 10*time.Microsecond:
		return fmt.Sprintf("%d ns", n)
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	default:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
}

// seconds writes a duration in seconds.
func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
