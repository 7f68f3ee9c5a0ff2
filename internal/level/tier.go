package level

// This file decides how often an entity's counters are read: the closer it is to its
// threshold, the oftener (SEED: adaptive sync; docs/design.md, the decision).

// A Tier says how close an entity is to its threshold.
type Tier uint8

const (
	Idle   Tier = iota // pressure below 10 %
	Low                // below 50 %
	Normal             // below 80 %
	Hot                // from 80 % on
)

// Tiers is how many tiers there are.
const Tiers = 4

// TierOf returns the tier of a pressure; a boundary belongs to the higher tier.
func TierOf(pressure float64) Tier {
	switch {
	case pressure < 0.10:
		return Idle
	case pressure < 0.50:
		return Low
	case pressure < 0.80:
		return Normal
	default:
		return Hot
	}
}

// ReadInterval returns how old an entity's last read may become in this tier, in the
// unit of sync; ok is false if the tier asks for no reads.
func (t Tier) ReadInterval(sync int64) (interval int64, ok bool) {
	switch t {
	case Idle:
		return 0, false
	case Low:
		return 4 * sync, true
	case Normal:
		return sync, true
	default:
		return sync / 2, true
	}
}
