package level

// This file says when a node holds so many units back that it must tell the fleet
// (docs/design.md, sync by units).

// Part is how many units of an entity a node may hold back before it syncs between
// ticks: about its share of threshold / 32, so that the fleet hides that much whatever
// its size; threshold / 64 at most while others count too, for shares change before they
// are learned. A node that does not know its share holds back threshold / 1024. It is 2
// at least.
func Part(threshold uint64, share Share) uint64 {
	if share == 0 {
		return max(2, threshold/1024)
	}
	if share == alone {
		return max(2, threshold/32)
	}
	return max(2, threshold/4096, min(share.Of(threshold)/32, threshold/64))
}
