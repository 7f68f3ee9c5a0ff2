// This file changes counters: additions, takings, and units that are granted only if
// they fit.

package memstore

import (
	"time"

	"github.com/hanzoai/limiters/ratelimit/store"
)

// changeLocked applies write i of the batch, notes what was not done as asked, and
// returns the total. It requires s.mu.
func (s *Store) changeLocked(batch *store.Batch, i int) int64 {
	w := &batch.Writes[i]
	if w.Condition == nil && w.Delta > 0 {
		total, status := s.addLocked(w.Key, w.Delta, batch.Lifetime(i))
		s.noteStatus(i, status)
		return total
	}
	total := s.table.total(w.Key)
	if total < 0 {
		s.noteStatus(i, store.Poisoned)
		return total
	}
	change := max(w.Delta, -total)
	clamped := change > w.Delta
	taken := -change
	var granted []bool
	if w.Condition != nil {
		var sum int64
		sum, granted = s.grantLocked(w.Condition, total+change)
		change += sum
	}
	if change != 0 {
		var status store.Status
		total, status = s.addLocked(w.Key, change, batch.Lifetime(i))
		s.noteStatus(i, status)
		if status != store.Written && status != store.Unexpiring {
			return total
		}
	}
	if clamped {
		s.notes = append(s.notes, note{int64(i) + 1, noteTaken, taken})
	}
	s.noteGrants(i, granted)
	return total
}

// addLocked adds to one counter, which lives for lifetime if it held nothing. It
// requires s.mu.
func (s *Store) addLocked(key string, delta int64, lifetime time.Duration) (total int64, status store.Status) {
	fail := s.failures[key]
	if fail == store.Refused {
		return s.table.total(key), store.Refused
	}
	sum, ok := s.table.add(key, delta)
	switch {
	case !ok && s.table.total(key) == store.MaxUnits:
		return store.MaxUnits, store.Saturated
	case !ok, sum < 0:
		return store.Invalid, store.Poisoned
	case sum != delta:
	case fail == store.Unexpiring:
		status = store.Unexpiring
	default:
		s.table.find(key).expireAfter(s.table.now, lifetime)
	}
	return min(sum, store.MaxUnits), status
}

// grantLocked decides about each amount of the condition, in order, on a counter at
// counted, and returns the sum of those it grants. It requires s.mu.
func (s *Store) grantLocked(c *store.Condition, counted int64) (sum int64, granted []bool) {
	granted = make([]bool, len(c.Amounts))
	previous := int64(0)
	if c.Previous != "" {
		if previous = s.table.total(c.Previous); previous < 0 {
			return 0, granted
		}
	}
	used := uint64(counted) + weigh(uint64(previous), c.Weight)
	limit := min(c.Limit, store.MaxUnits)
	for i, amount := range c.Amounts {
		if used <= limit && min(amount, store.MaxUnits) <= limit-used {
			granted[i] = true
			used += amount
			sum += int64(amount)
		}
	}
	return sum, granted
}

// weigh is ⌈n × weight / 2^20⌉, without a product above 2^64.
func weigh(n uint64, weight uint32) uint64 {
	high, low := n/store.FullWeight, n%store.FullWeight
	return high*uint64(weight) + (low*uint64(weight)+store.FullWeight-1)/store.FullWeight
}

// noteStatus notes that write i was not simply written.
func (s *Store) noteStatus(i int, status store.Status) {
	if status != store.Written {
		s.notes = append(s.notes, note{int64(i) + 1, statusCodes[status], 0})
	}
}

// noteGrants notes which amounts of write i were not granted.
func (s *Store) noteGrants(i int, granted []bool) {
	for from := 0; from < len(granted); from += wordBits {
		var bits int64
		for j, yes := range granted[from:min(from+wordBits, len(granted))] {
			if !yes {
				bits |= 1 << j
			}
		}
		if bits != 0 {
			word := int64(from / wordBits)
			s.notes = append(s.notes, note{int64(i) + 1, noteUngranted, word<<wordBits | bits})
		}
	}
}
