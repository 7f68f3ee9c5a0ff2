package level

// This file tests which requests fit.

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestFitsIsBelowTheThresholdOrAtAnInclusiveOne(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		level           float64
		threshold       uint64
		want, inclusive bool
	}{
		{0, 0, false, false},
		{0, 1, true, true},
		{1, 1, false, true},
		{99, 100, true, true},
		{math.Nextafter(100, 0), 100, true, true},
		{100, 100, false, true},
		{math.Nextafter(100, 101), 100, false, false},
		{1 << 53, 1<<53 + 2, true, true},
		{1 << 62, math.MaxUint64, true, true},
	} {
		if got := Fits(c.level, c.threshold, false); got != c.want {
			t.Errorf("Fits(%v, %d) = %v, want %v", c.level, c.threshold, got, c.want)
		}
		if got := Fits(c.level, c.threshold, true); got != c.inclusive {
			t.Errorf("Fits(%v, %d), inclusive, = %v, want %v", c.level, c.threshold, got, c.inclusive)
		}
	}
}

func TestRemainingIsWholeUnitsRoundedDown(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		level := rapid.OneOf(rapid.Float64Range(0, 1<<54), rapid.Float64Range(0, 200)).Draw(t, "level")
		threshold := rapid.OneOf(rapid.Uint64(), rapid.Uint64Range(0, 200)).Draw(t, "threshold")
		want := threshold - min(uint64(math.Ceil(level)), threshold)
		if got := Remaining(level, threshold); got != want {
			t.Fatalf("%d remain at %v of %d, want %d", got, level, threshold, want)
		}
	})
}
