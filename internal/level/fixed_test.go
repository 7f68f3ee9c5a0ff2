package level

// This file tests the fixed window and parts.

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestAFixedWindowEndsWithItsEpoch(t *testing.T) {
	t.Parallel()
	below := func(limit float64) func(float64) bool { return func(level float64) bool { return level < limit } }
	for _, c := range []struct {
		name  string
		m     Fixed
		limit float64
		wait  int64
	}{
		{"it fits", Fixed{Count: 4, Left: 10, Then: 60}, 5, 0},
		{"not before the boundary", Fixed{Count: 5, Left: 10, Then: 60}, 5, 10},
		{"the clock stepped back, and the epoch after is full too", Fixed{Count: 5, Left: 10, Next: 5, Then: 60}, 5, 70},
		{"the epoch after has room", Fixed{Count: 5, Left: 10, Next: 4, Then: 60}, 5, 10},
	} {
		ok := below(c.limit)
		if got := c.m.Wait(ok); got != c.wait || !ok(c.m.Level(got)) || got > 0 && ok(c.m.Level(got-1)) {
			t.Errorf("%s: wait %d, want %d", c.name, got, c.wait)
		}
	}
}

func TestPartIsAboutAThirtySecondOfTheThresholdForTheFleet(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		threshold uint64
		share     Share
		want      uint64
	}{
		{0, 0, 2},
		{100, 255, 3},
		{100, 254, 2},
		{4096, 0, 4},        // unknown
		{6400, 255, 200},    // alone: a 32nd
		{6400, 254, 100},    // nearly: a 64th
		{64_000, 128, 1000}, // still
		{64_000, 26, 203},   // a tenth of a 32nd
		{409_600, 1, 100},   // never below a 4096th
		{math.MaxUint64, 255, math.MaxUint64 / 32},
		{math.MaxUint64, 254, math.MaxUint64 / 64},
		{math.MaxUint64, 0, math.MaxUint64 / 1024},
	} {
		if got := Part(c.threshold, c.share); got != c.want {
			t.Errorf("Part(%d, %d) = %d, want %d", c.threshold, c.share, got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		threshold := rapid.OneOf(rapid.Uint64(), rapid.Uint64Range(0, 100_000)).Draw(t, "threshold")
		share := Share(rapid.Uint8Range(1, 255).Draw(t, "share"))
		want := max(2, float64(threshold)/4096, min(float64(threshold)*share.Part()/32, float64(threshold)/64))
		if share == alone {
			want = max(2, float64(threshold)/32)
		}
		if got := float64(Part(threshold, share)); got > want*1.000001 || got < want*0.999999-2 {
			t.Fatalf("Part = %v, want about %v", got, want)
		}
	})
}
