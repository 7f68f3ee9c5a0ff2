package level

// This file is the estimate that a store decides by: two counters, and a weight that is an
// integer, so that the arithmetic of both sides is the same.

import "math/bits"

// FullWeight is the weight of a counter that counts whole: store.FullWeight.
const FullWeight = 1 << 20

// A Fading says how the counter of the epoch before counts in a [Pair].
type Fading uint8

const (
	FadesEvenly Fading = iota // by the part of it that is within the last window
	FadesAtOnce               // whole, until its successor's epoch is over
	IsForgotten               // not at all
)

// A Pair is an entity's two counters, as of a moment into the later one's epoch.
type Pair struct {
	Before, Count uint64 // at most 2^53 − 1 each
	Into          int64  // since the epoch began; below 0 is taken as 0
	Window        int64  // length of the epoch, and of the next one
	Fading        Fading
}

// Weight is what the counter before weighs, in 2^20ths, rounded up.
func (p *Pair) Weight() uint32 { return p.weightAt(p.Into) }

func (p *Pair) weightAt(into int64) uint32 {
	switch {
	case p.Fading == IsForgotten || into >= p.Window:
		return 0
	case p.Fading == FadesAtOnce || into <= 0:
		return FullWeight
	}
	high, low := bits.Mul64(uint64(p.Window-into), FullWeight)
	weight, rest := bits.Div64(high, low, uint64(p.Window))
	if rest > 0 {
		weight++
	}
	return uint32(weight)
}

// Sum is ⌈before × weight / 2^20⌉ + count, exactly, after a wait: what the pair would be
// if nothing was counted meanwhile.
func (p *Pair) Sum(wait int64) uint64 {
	into := max(0, p.Into) + wait
	if into < p.Window {
		return portion(p.Before, p.weightAt(into)) + p.Count
	}
	return portion(p.Count, p.weightAt(into-p.Window))
}

// Wait is the least wait after which the sum is at most a limit.
func (p *Pair) Wait(limit uint64) int64 {
	return LeastWait(2*p.Window-max(0, p.Into), func(wait int64) bool { return p.Sum(wait) <= limit })
}

// portion is ⌈count × weight / 2^20⌉.
func portion(count uint64, weight uint32) uint64 {
	high, low := bits.Mul64(count, uint64(weight))
	whole := high<<44 | low>>20
	if low&(FullWeight-1) != 0 {
		whole++
	}
	return whole
}
