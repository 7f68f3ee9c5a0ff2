// Package figures writes numbers the way people read them.
package figures

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Grouped writes n with a comma after every third digit.
func Grouped(n uint64) string {
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

// Bytes writes a number of bytes, to three digits at least.
func Bytes(n float64) string {
	switch {
	case n < 10_000:
		return fmt.Sprintf("%.0f B", n)
	case n < 10_000_000:
		return fmt.Sprintf("%.1f kB", n/1e3)
	default:
		return fmt.Sprintf("%.1f MB", n/1e6)
	}
}

// Percent writes a share of a whole; of nothing it is 0.
func Percent(part, whole float64) string {
	if whole == 0 {
		return "0.0 %"
	}
	return fmt.Sprintf("%.1f %%", 100*part/whole)
}

// Nanoseconds writes a short duration in the unit that suits it.
func Nanoseconds(n int64) string {
	switch d := time.Duration(n); {
	case d < 10*time.Microsecond:
		return fmt.Sprintf("%d ns", n)
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	default:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
}

// Seconds writes a duration in seconds.
func Seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
