package level

// This file tests what a node learns of its share.

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestShareFollowsWhatRepliesSay(t *testing.T) {
	t.Parallel()
	var s Share
	for i, c := range []struct {
		own, growth uint64
		want        float64
	}{
		{0, 50, 0},       // nothing of its own yet: unknown
		{10, 10, 1},      // alone
		{0, 0, 1},        // silence tells nothing
		{10, 30, 2. / 3}, // half of it as news
		{10, 5, 2. / 3},  // less than its own: the store lost counts
		{0, 100, 1. / 3}, // the others' alone
		{1, 2, 5. / 12},
	} {
		s = s.Learn(c.own, c.growth)
		if got := s.Part(); math.Abs(got-c.want) > 1./255 {
			t.Errorf("reply %d (%d of %d): the share is %v, want %v", i, c.own, c.growth, got, c.want)
		}
	}
}

func TestShareOfANodeThatCountsIsNeverUnknownAgain(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := Share(0).Learn(1, rapid.Uint64Range(1, math.MaxUint64).Draw(t, "first"))
		for range rapid.IntRange(0, 30).Draw(t, "replies") {
			s = s.Learn(rapid.Uint64().Draw(t, "own"), rapid.Uint64().Draw(t, "growth"))
			if s == 0 || s.Part() > 1 {
				t.Fatalf("the share is %v", s.Part())
			}
		}
	})
}
