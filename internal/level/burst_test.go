package level

// This file tests the bucket that bounds bursts.

import (
	"testing"

	"pgregory.net/rapid"
)

func TestABucketBoundsWhatComesAtOnce(t *testing.T) {
	t.Parallel()
	b := Burst{Interval: 3 * second, Window: minute}
	const threshold = 600 // 30 at once, 10 a second
	var k Bucket
	k.Begin(0)
	for i, row := range []struct {
		at    int64
		units float64
		fits  bool
		held  float64 // afterwards
	}{
		{0, 30, true, 30},
		{0, 1, false, 30},
		{second / 10, 1, true, 30},
		{second, 9, true, 30},
		{2 * second, 11, false, 20},
		{2 * second, 31, false, 20}, // more than the capacity: only into an empty one
		{4*second - 1, 31, false, 1e-8},
		{4 * second, 200, true, 200}, // a debt
		{20 * second, 0, false, 40},
		{21 * second, 1, false, 30},
		{21*second + second/10, 1, true, 30},
	} {
		held := k.Leak(&b, threshold, row.at)
		fits := b.Fits(held, row.units, threshold)
		if fits {
			k.Fill(row.units)
		}
		if held = k.Leak(&b, threshold, row.at); fits != row.fits || !near(held, row.held) {
			t.Errorf("row %d: %v units fit: %v, and the bucket holds %v; want %v, %v", i, row.units, fits, held, row.fits, row.held)
		}
	}
}

func TestABucketTakesAUnitHoweverSmallTheBurst(t *testing.T) {
	t.Parallel()
	b := Burst{Interval: 1, Window: minute}
	for _, threshold := range []uint64{1, 7, 600} {
		if !b.Fits(0, 1, threshold) || b.Fits(1, 1, threshold) {
			t.Errorf("threshold %d: capacity %v", threshold, b.Capacity(threshold))
		}
	}
}

// What leaked while a node saw its bucket empty is not lost when it learns of the
// others.
func TestWhatTheOthersCountedLeaksFromTheLastSyncOn(t *testing.T) {
	t.Parallel()
	b := Burst{Interval: 3 * second, Window: minute}
	var k Bucket
	k.Begin(0)
	k.Fill(5)
	if held := k.Leak(&b, 600, second); held != 0 {
		t.Fatalf("holds %v after a second, want 0", held)
	}
	k.Others(25)
	if held := k.Leak(&b, 600, second); !near(held, 20) {
		t.Fatalf("holds %v, want 5 + 25 − 10", held)
	}
	k.Others(-30)
	if held := k.Leak(&b, 600, second); held != 0 {
		t.Fatalf("holds %v after a return, want 0", held)
	}
}

func TestABucketBeginsWithWhatIsAboveTheRest(t *testing.T) {
	t.Parallel()
	b := Burst{Interval: 3 * second, Window: minute}
	for _, row := range []struct{ level, want float64 }{{0, 0}, {500, 0}, {570, 0}, {590, 20}, {700, 130}} {
		var k Bucket
		k.Begin(0)
		if k.Learn(&b, row.level, 600); !near(k.Leak(&b, 600, 0), row.want) {
			t.Errorf("level %v fills the bucket to %v, want %v", row.level, k.held, row.want)
		}
	}
}

// Over any time a bucket lets no more through than its capacity and what leaked, if no
// request is larger than it.
func TestABucketKeepsItsRate(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		b := Burst{Interval: rapid.Int64Range(1, minute).Draw(rt, "interval"), Window: minute}
		threshold := rapid.Uint64Range(1, 10_000).Draw(rt, "threshold")
		var k Bucket
		k.Begin(0)
		type pass struct {
			at    int64
			units float64
		}
		var passed []pass
		now := int64(0)
		for range 100 {
			now += rapid.Int64Range(0, minute/50).Draw(rt, "later")
			units := float64(rapid.Uint64Range(1, uint64(b.Capacity(threshold))).Draw(rt, "units"))
			held := k.Leak(&b, threshold, now)
			if !b.Fits(held, units, threshold) {
				if wait := LeastWait(4*minute, func(wait int64) bool { return b.Fits(b.Held(held, threshold, wait), units, threshold) }); wait == 0 {
					rt.Fatalf("%v units are refused at %v, and told to come at once", units, held)
				}
				continue
			}
			k.Fill(units)
			passed = append(passed, pass{now, units})
			sum := 0.0
			for i := len(passed) - 1; i >= 0; i-- {
				sum += passed[i].units
				may := b.Capacity(threshold) + float64(threshold)*float64(now-passed[i].at)/float64(minute)
				if sum > may+1e-6 {
					rt.Fatalf("%v units within %d ns, want %v at most", sum, now-passed[i].at, may)
				}
			}
		}
	})
}
