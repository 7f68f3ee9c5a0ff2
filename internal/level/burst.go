package level

// This file bounds bursts: a leaky bucket of the fleet's beside the level of the window.

// A Bucket is how full an entity's bucket is. It holds units and leaks threshold /
// window. The zero value is empty.
//
// Between syncs a node sees its own units fill it, and it never holds less than
// nothing. But what leaked while it held nothing, by what this node saw, leaked from
// what the others filled in meanwhile. So the bucket is kept without that bound, too,
// and what the others counted is added to that.
type Bucket struct {
	held     float64 // ≥ 0
	unbound  float64 // since the last sync, as if it could hold less than nothing; ≤ held
	leakedAt int64   // mono
}

// bucketSlack is how much more a bucket is expected to hold than computed, as a part of
// it: it leaks in steps, each of which is rounded. drained is so little that it is none.
const (
	bucketSlack = 1e-12
	drained     = 1e-9
)

// A Burst says how large the buckets are. The zero value is none.
type Burst struct {
	Interval, Window int64 // 0 < Interval ≤ Window, or Interval is 0
}

// Capacity is what a bucket may hold: threshold × interval / window, at least a unit.
func (b *Burst) Capacity(threshold uint64) float64 {
	return max(1, float64(threshold)*(float64(b.Interval)/float64(b.Window)))
}

// Held is what a bucket that holds so much now holds after a wait, or hardly more.
func (b *Burst) Held(held float64, threshold uint64, wait int64) float64 {
	return max(0, held*(1+bucketSlack)-float64(threshold)*(float64(wait)/float64(b.Window)))
}

// Fits reports whether units fit into a bucket that holds so much. More than the
// capacity fit into an empty one. A threshold above the largest count bounds nothing.
func (b *Burst) Fits(held, units float64, threshold uint64) bool {
	capacity := b.Capacity(threshold)
	return held+units <= capacity || held <= 0 && units > capacity || threshold > mostUnits
}

// Room is how many units still fit.
func (b *Burst) Room(held float64, threshold uint64) uint64 {
	if threshold > mostUnits {
		return threshold
	}
	return uint64(max(0, b.Capacity(threshold)-held))
}

// Leak lets the bucket leak until mono, and returns what it holds.
func (k *Bucket) Leak(b *Burst, threshold uint64, mono int64) float64 {
	if mono > k.leakedAt {
		leaked := float64(threshold) * (float64(mono-k.leakedAt) / float64(b.Window))
		if k.held -= leaked; k.held < drained {
			k.held = 0
		}
		k.unbound -= leaked
		k.leakedAt = mono
	}
	return k.held
}

// Begin makes the bucket one that is empty at mono.
func (k *Bucket) Begin(mono int64) { *k = Bucket{leakedAt: mono} }

// Fill adds units of this node.
func (k *Bucket) Fill(units float64) {
	k.held += units
	k.unbound += units
}

// Others takes into account what the others counted since the last sync, less than
// nothing if they took back. The bucket must have leaked until now.
func (k *Bucket) Others(units float64) {
	k.held = max(0, k.unbound+units)
	k.unbound = k.held
}

// Return takes out units that this node filled in so long ago, as far as they cannot
// have leaked since. The bucket must have leaked until now.
func (k *Bucket) Return(b *Burst, threshold uint64, units float64, ago int64) {
	units -= float64(threshold) * (float64(ago) / float64(b.Window))
	if units = min(units, k.held); units > 0 {
		k.held -= units
		k.unbound -= units
	}
}

// Learn fills the bucket after a first read: as if the last capacity units of the level
// had come at once.
func (k *Bucket) Learn(b *Burst, level float64, threshold uint64) {
	k.held = max(k.held, level-(float64(threshold)-b.Capacity(threshold)))
	k.unbound = k.held
}

// Cut bounds what the bucket holds.
func (k *Bucket) Cut(most float64) {
	k.held, k.unbound = min(k.held, most), min(k.unbound, most)
}

// Wait is the least wait from so much on after which units fit into a bucket that holds
// so much now and into which nothing more comes.
func (b *Burst) Wait(held, units float64, threshold uint64, from int64) int64 {
	fits := func(wait int64) bool { return b.Fits(b.Held(held, threshold, wait), units, threshold) }
	if fits(from) || threshold == 0 {
		return from
	}
	drained := int64(min(held*(1+2*bucketSlack)/float64(threshold)*float64(b.Window)+2, 1<<62))
	return from + LeastWait(max(0, drained-from), func(more int64) bool { return fits(from + more) })
}
