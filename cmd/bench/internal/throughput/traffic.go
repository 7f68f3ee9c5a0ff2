package throughput

// This file makes the traffic: which key each check is about. All of it is drawn
// before the run, so that a worker measures the limiter and not the draw.

import (
	"math"
	"math/rand/v2"
)

// headShare is v of the Zipf–Mandelbrot law as a share of the keys. With an
// exponent of defaultExponent it makes the pressures fall as the tiers are meant
// to fill: about 90 % of the keys idle, 8 % low, 1.2 % normal and 0.8 % hot, the
// hottest third of a percent above its threshold (see mix.go).
const headShare = 0.03

// defaultExponent is s of the law.
const defaultExponent = 1.68

// maxSlices bounds the traffic drawn for one worker; a longer run begins anew.
const maxSlices = 32

// A slot is one draw: the key to check, and the units of it that were recorded.
// They lie together, so that a worker reads and writes its memory in order.
type slot struct {
	key     string
	index   uint32 // of the key
	counted uint64 // units recorded by all passes over this slot
}

// A popularity says how often each key is drawn: key k in proportion to
// (v + k)^−s, key 0 being the most popular.
type popularity struct {
	keys     int
	exponent float64 // s > 1
	head     float64 // v ≥ 1
}

// newPopularity returns the law for that many keys.
func newPopularity(keys int, exponent float64) popularity {
	return popularity{keys: keys, exponent: exponent, head: max(1, headShare*float64(keys))}
}

// share is the probability that a draw is key k.
func (p popularity) share(k int) float64 {
	total := 0.0
	for i := range p.keys {
		total += p.weight(i)
	}
	return p.weight(k) / total
}

// weight is what share is in proportion to.
func (p popularity) weight(k int) float64 {
	return math.Pow(p.head+float64(k), -p.exponent)
}

// A traffic is what one worker checks: slices of draws. The worker repeats one
// slice for a tick and goes on to the next. The counts of a key then follow the
// law, while the entities that have something to say at a tick stay as few as a
// slice has keys, however fast the machine is. It belongs to its worker.
type traffic struct {
	slots []slot
	size  int // of a slice
}

// newTraffic draws slices of size draws each. Equal arguments give equal traffic;
// each worker of a run has its own.
func newTraffic(p popularity, names []string, seed uint64, worker, slices, size int) *traffic {
	random := rand.New(rand.NewPCG(seed, uint64(worker)))
	zipf := rand.NewZipf(random, p.exponent, p.head, uint64(p.keys-1))
	slots := make([]slot, slices*size)
	for i := range slots {
		k := uint32(zipf.Uint64())
		slots[i] = slot{key: names[k], index: k}
	}
	return &traffic{slots: slots, size: size}
}

// slice returns the i-th slice; after the last one comes the first.
func (t *traffic) slice(i int) []slot {
	from := i * t.size % len(t.slots)
	return t.slots[from : from+t.size]
}

// addCounted adds what the slots recorded to the counts of their keys.
func (t *traffic) addCounted(counted []uint64) {
	for i := range t.slots {
		counted[t.slots[i].index] += t.slots[i].counted
	}
}
