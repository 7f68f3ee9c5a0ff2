package level

// This file tests where tiers begin.

import (
	"math"
	"testing"
	"time"
)

func TestTierBoundariesBelongToTheHigherTier(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pressure float64
		want     Tier
	}{
		{0, Idle},
		{math.Nextafter(0.10, 0), Idle},
		{0.10, Low},
		{math.Nextafter(0.50, 0), Low},
		{0.50, Normal},
		{math.Nextafter(0.80, 0), Normal},
		{0.80, Hot},
		{1, Hot},
		{1e300, Hot},
	} {
		if got := TierOf(c.pressure); got != c.want {
			t.Errorf("TierOf(%v) = %v, want %v", c.pressure, got, c.want)
		}
	}
}

func TestTierBoundariesScaleWithTheThreshold(t *testing.T) {
	t.Parallel()
	for _, threshold := range []uint64{10, 100, 1000, 1_000_000, 1 << 50} {
		for i, want := range []Tier{Idle, Low, Low, Low, Low, Normal, Normal, Normal, Hot, Hot, Hot} {
			level := float64(threshold / 10 * uint64(i))
			if got := TierOf(Pressure(level, threshold)); threshold%10 == 0 && got != want {
				t.Errorf("%v of %d is %v, want %v", level, threshold, got, want)
			}
		}
	}
	if got := Pressure(5, 0); got != 0 {
		t.Errorf("pressure at a threshold of 0 is %v, want 0", got)
	}
}

func TestReadIntervalsOfTiers(t *testing.T) {
	t.Parallel()
	const sync = int64(15 * time.Second)
	for tier, want := range map[Tier]time.Duration{Low: 60 * time.Second, Normal: 15 * time.Second, Hot: 7500 * time.Millisecond} {
		if got, ok := tier.ReadInterval(sync); !ok || got != int64(want) {
			t.Errorf("%v is read every %v (%v), want %v", tier, time.Duration(got), ok, want)
		}
	}
	if _, ok := Idle.ReadInterval(sync); ok {
		t.Error("an idle entity is read on its own account")
	}
}
