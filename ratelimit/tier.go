package ratelimit

// This file decides how often an entity's counters are read: the closer it is to
// its threshold, the oftener (SEED: adaptive sync; docs/design.md, tiers).

// A Tier says how close an entity is to its threshold. Tiers order [Stats.Tiers].
type Tier uint8

const (
	Idle   Tier = iota // pressure below 10 %: its counters are never read on its own account
	Low                // below 50 %: read every 4 sync intervals
	Normal             // below 80 %: read every sync interval
	Hot                // from 80 % on: read every half sync interval
)

// tiers is how many tiers there are.
const tiers = 4

// String returns the tier's name as metrics show it; of a value that is no tier, that
// of the highest.
func (t Tier) String() string { return [...]string{"idle", "low", "normal", "hot"}[min(t, Hot)] }

// tierOf returns the tier of a pressure; a boundary belongs to the higher tier.
func tierOf(pressure float64) Tier {
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

// readInterval returns how old an entity's last read may become in this tier, in
// the unit of sync; ok is false if the tier asks for no reads.
func (t Tier) readInterval(sync int64) (interval int64, ok bool) {
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

// pressureOf is level / threshold. An entity whose threshold is 0 has none: all
// it is asked is refused, and no reading of counters would change that.
func pressureOf(level float64, threshold uint64) float64 {
	if threshold == 0 {
		return 0
	}
	return level / float64(threshold)
}
