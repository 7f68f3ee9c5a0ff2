package level

import (
	"math/big"
	"math/rand/v2"
	"testing"
)

func TestPairWeighsAsTheStoreDoes(t *testing.T) {
	const window = 1000
	for _, c := range []struct {
		fading Fading
		into   int64
		weight uint32
		sum    uint64 // of 100 before and 7 now
	}{
		{FadesEvenly, -5, FullWeight, 107},
		{FadesEvenly, 0, FullWeight, 107},
		{FadesEvenly, 500, FullWeight / 2, 57},
		{FadesEvenly, 999, 1049, 8}, // rounded up, both times
		{FadesAtOnce, 0, FullWeight, 107},
		{FadesAtOnce, 999, FullWeight, 107},
		{IsForgotten, 0, 0, 7},
	} {
		p := Pair{Before: 100, Count: 7, Into: c.into, Window: window, Fading: c.fading}
		if w, s := p.Weight(), p.Sum(0); w != c.weight || s != c.sum {
			t.Errorf("fading %d, %d into: weight %d, sum %d; want %d, %d", c.fading, c.into, w, s, c.weight, c.sum)
		}
	}
}

func TestPairIsExactForAbsurdCounts(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 10000 {
		window := 1 + rng.Int64N(1<<58)
		p := Pair{Before: rng.Uint64N(1 << 53), Count: rng.Uint64N(1 << 53), Into: rng.Int64N(window), Window: window}
		weight := new(big.Int).Mul(big.NewInt(window-p.Into), big.NewInt(FullWeight))
		weight.Div(weight.Add(weight, big.NewInt(window-1)), big.NewInt(window))
		sum := new(big.Int).Mul(weight, new(big.Int).SetUint64(p.Before))
		sum.Add(sum, big.NewInt(FullWeight-1)).Rsh(sum, 20)
		sum.Add(sum, new(big.Int).SetUint64(p.Count))
		if p.Weight() != uint32(weight.Uint64()) || p.Sum(0) != sum.Uint64() {
			t.Fatalf("%+v: weight %d, sum %d; want %d, %d", p, p.Weight(), p.Sum(0), weight, sum)
		}
	}
}

func TestPairWaitIsTheLeast(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		p := Pair{
			Before: rng.Uint64N(50), Count: rng.Uint64N(50), Into: rng.Int64N(1000) - 100, Window: 1000,
			Fading: Fading(rng.IntN(3)),
		}
		limit := rng.Uint64N(60)
		wait := p.Wait(limit)
		if p.Sum(wait) > limit || wait > 0 && p.Sum(wait-1) <= limit {
			t.Fatalf("%+v: Wait(%d) = %d: then %d, just before %d", p, limit, wait, p.Sum(wait), p.Sum(max(0, wait-1)))
		}
	}
}
