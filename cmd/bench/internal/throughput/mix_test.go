package throughput

import (
	"math"
	"testing"
	"time"
)

func TestTheLawFillsTheTiersAsPowerLawTrafficDoes(t *testing.T) {
	t.Parallel()
	const keys, checks = 100_000, 1e9
	law := newPopularity(keys, defaultExponent)
	threshold := thresholdFor(law, checks)
	scale := checks / weightSum(law)
	levels := make([]float64, keys)
	for k := range levels {
		levels[k] = law.weight(k) * scale
	}
	tiers := tiersOf(levels, threshold)
	for i, bounds := range [4][2]int{{88_000, 92_000}, {7_000, 9_000}, {800, 1_800}, {300, 1_000}} {
		if tiers[i] < bounds[0] || tiers[i] > bounds[1] {
			t.Errorf("%s: %d of %d keys, want %d to %d", tierNames[i], tiers[i], keys, bounds[0], bounds[1])
		}
	}
	if hottest := levels[0] / float64(threshold); hottest < 1.05 || hottest > 1.5 {
		t.Errorf("the hottest key reaches %.2f × the threshold, want some to be limited", hottest)
	}
}

func TestTheThresholdAdmitsSomething(t *testing.T) {
	t.Parallel()
	if got := thresholdFor(newPopularity(1000, 2), 0); got != 2 {
		t.Errorf("thresholdFor(no checks) = %d, want 2", got)
	}
	if got := thresholdFor(newPopularity(1, 2), 500); got != 5000 {
		t.Errorf("thresholdFor(one key, 500 checks) = %d, want 5000", got)
	}
}

func TestWeighingSpan(t *testing.T) {
	t.Parallel()
	at := func(s float64) time.Time { return time.Unix(1_000_000, 0).Add(time.Duration(s * float64(time.Second))) }
	const window = 10 * time.Second // 1,000,000 s is a boundary
	for _, row := range []struct {
		name       string
		start, end float64
		want       time.Duration
	}{
		{"within an epoch", 1, 9, 8 * time.Second},
		{"over a boundary", 5, 15, 5*time.Second + 2500*time.Millisecond},
		{"ends on a boundary", 5, 10, 5 * time.Second},
		{"longer than two epochs", -25, 5, 5*time.Second + 5*time.Second},
		{"nothing", 5, 5, 0},
	} {
		if got := weighingSpan(at(row.start), at(row.end), window); got != row.want {
			t.Errorf("%s: weighingSpan = %v, want %v", row.name, got, row.want)
		}
	}
}

func TestWeightAt(t *testing.T) {
	t.Parallel()
	const window = 10 * time.Second
	at := time.Unix(1_000_002, 500_000_000) // a quarter into epoch 100,000
	for epoch, want := range map[int64]float64{99_998: 0, 99_999: 0.75, 100_000: 1, 100_001: 0} {
		if got := weightAt(epoch, at, window); math.Abs(got-want) > 1e-12 {
			t.Errorf("weightAt(%d) = %v, want %v", epoch, got, want)
		}
	}
}

func TestTierBoundariesBelongToTheHigherTier(t *testing.T) {
	t.Parallel()
	got := tiersOf([]float64{0, 9.99, 10, 49.9, 50, 79.9, 80, 1000}, 100)
	if want := [4]int{2, 2, 2, 2}; got != want {
		t.Errorf("tiersOf = %v, want %v", got, want)
	}
	if got := tiersOf([]float64{0, 5}, 0); got != [4]int{2, 0, 0, 0} {
		t.Errorf("with a threshold of 0: %v, want all idle", got)
	}
}

// weightSum is what the weights of all keys add up to.
func weightSum(p popularity) float64 {
	sum := 0.0
	for k := range p.keys {
		sum += p.weight(k)
	}
	return sum
}
