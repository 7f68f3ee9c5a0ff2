package throughput

import (
	"math"
	"slices"
	"testing"

	"github.com/hanzoai/limiters/cmd/bench/internal/backend"
)

func TestTrafficIsTheSeeds(t *testing.T) {
	t.Parallel()
	law, names := newPopularity(1000, defaultExponent), backend.KeyNames(1000)
	draw := func(seed uint64, worker int) []slot { return newTraffic(law, names, seed, worker, 3, 100).slots }
	same := func(a, b []slot) bool { return slices.Equal(a, b) }
	if !same(draw(1, 0), draw(1, 0)) {
		t.Error("equal seeds and workers draw different traffic")
	}
	if same(draw(1, 0), draw(2, 0)) {
		t.Error("different seeds draw equal traffic")
	}
	if same(draw(1, 0), draw(1, 1)) {
		t.Error("different workers draw equal traffic")
	}
}

func TestALongerRunBeginsLikeAShorterOne(t *testing.T) {
	t.Parallel()
	law, names := newPopularity(1000, defaultExponent), backend.KeyNames(1000)
	short, long := newTraffic(law, names, 1, 0, 2, 64), newTraffic(law, names, 1, 0, 5, 64)
	if !slices.Equal(short.slots, long.slots[:2*64]) {
		t.Error("the first slices depend on how many follow")
	}
}

func TestSlicesFollowEachOtherAndBeginAnew(t *testing.T) {
	t.Parallel()
	traffic := newTraffic(newPopularity(10, defaultExponent), backend.KeyNames(10), 1, 0, 3, 4)
	for i, want := range []int{0, 4, 8, 0, 4} {
		slice := traffic.slice(i)
		if len(slice) != 4 || &slice[0] != &traffic.slots[want] {
			t.Errorf("slice(%d) does not begin at draw %d", i, want)
		}
	}
}

func TestSlotsNameTheirKey(t *testing.T) {
	t.Parallel()
	names := backend.KeyNames(50)
	for i, s := range newTraffic(newPopularity(50, 2), names, 7, 0, 2, 500).slots {
		if s.key != names[s.index] || s.counted != 0 {
			t.Fatalf("slot %d = %+v, want key %s and nothing counted", i, s, names[s.index])
		}
	}
}

func TestDrawsFollowTheLaw(t *testing.T) {
	t.Parallel()
	const keys, draws = 1000, 400_000
	law := newPopularity(keys, defaultExponent)
	var drawn [keys]float64
	for _, s := range newTraffic(law, backend.KeyNames(keys), 1, 0, 1, draws).slots {
		drawn[s.index]++
	}
	for _, k := range []int{0, 10, 50, 100} {
		want := law.share(k) * draws
		if deviation := math.Abs(drawn[k] - want); deviation > 5*math.Sqrt(want) {
			t.Errorf("key %d drawn %v times, want about %.0f", k, drawn[k], want)
		}
	}
}

func TestOneKeyGetsAllDraws(t *testing.T) {
	t.Parallel()
	law := newPopularity(1, defaultExponent)
	if got := law.share(0); got != 1 {
		t.Errorf("share(0) = %v, want 1", got)
	}
	for _, s := range newTraffic(law, backend.KeyNames(1), 1, 0, 1, 100).slots {
		if s.index != 0 {
			t.Fatalf("drew key %d of one", s.index)
		}
	}
}

func TestCountedUnitsAddUpByKey(t *testing.T) {
	t.Parallel()
	traffic := &traffic{slots: []slot{{index: 2, counted: 3}, {index: 0, counted: 1}, {index: 2, counted: 4}}, size: 3}
	counted := []uint64{10, 0, 0}
	traffic.addCounted(counted)
	if want := []uint64{11, 0, 7}; !slices.Equal(counted, want) {
		t.Errorf("counted = %v, want %v", counted, want)
	}
}

func TestKeysAreSeventeenBytes(t *testing.T) {
	t.Parallel()
	names := backend.KeyNames(3)
	if names[2] != "entity_0000000002" || len(names[2]) != 17 {
		t.Errorf("backend.KeyNames(3)[2] = %q", names[2])
	}
}
