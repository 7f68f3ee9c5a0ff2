package ratelimit

// This file names the tiers for users; package level says where they begin.

import "github.com/hanzoai/limiters/internal/level"

// A Tier says how close an entity is to its threshold. Tiers order [Stats.Tiers].
type Tier uint8

const (
	Idle   = Tier(level.Idle)   // pressure below 10 %: its counters are never read on its own account
	Low    = Tier(level.Low)    // below 50 %: read every 4 sync intervals
	Normal = Tier(level.Normal) // below 80 %: read every sync interval
	Hot    = Tier(level.Hot)    // from 80 % on: read every half sync interval
)

// String returns the tier's name as metrics show it; of a value that is no tier, that
// of the highest.
func (t Tier) String() string { return [...]string{"idle", "low", "normal", "hot"}[min(t, Hot)] }
