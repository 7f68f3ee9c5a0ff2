// This file has the fault suite's traffic ask the fleet: what was granted, to callers who
// waited and to those who had left, is in the books to the unit.

package integration

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/ratelimit/store"
)

// ask asks the fleet about units of a key, and may leave before it is answered.
func (m *member) ask(key string, units uint64, rng *rand.Rand) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if rng.IntN(3) == 0 {
		defer time.AfterFunc(time.Duration(rng.Int64N(int64(m.fleet.clock.real(reply)))), cancel).Stop()
	}
	d, err := m.CheckFleet(ctx, key, units)
	switch {
	case errors.Is(err, context.Canceled):
	case err == nil && d.Verdict() == ratelimit.VerdictAllowed:
		m.granted[key] += units
		m.counted[key] += units
	case d.Verdict() == ratelimit.VerdictAllowed || m.fleet.cfg.CountLimited:
		m.counted[key] += units
	}
}

// An asking is what a witness knows of grants.
type asking struct {
	granted map[string]uint64 // by counter
	doubt   map[string]uint64 // by counter; what batches of unknown fate asked for
}

// asks is what an attempt at a batch asks for, by counter.
func asks(b *store.Batch) map[string]uint64 {
	var sums map[string]uint64
	for i := range b.Writes {
		if c := b.Writes[i].Condition; c != nil && c.Limit > 0 {
			for _, amount := range c.Amounts {
				if sums == nil {
					sums = map[string]uint64{}
				}
				sums[b.Writes[i].Key] += amount
			}
		}
	}
	return sums
}

// grantsLocked notes what an answer grants. It requires w.mu.
func (w *witness) grantsLocked(b *store.Batch, r *store.Reply, losses int) {
	for i, result := range r.Writes {
		for j, granted := range result.Granted {
			if !granted {
				continue
			}
			key, units := b.Writes[i].Key, b.Writes[i].Condition.Amounts[j]
			w.asking.granted[key] += units
			w.acked[key] += units
			if losses == w.losses {
				w.since[key] += units
			}
		}
	}
}

// late counts what was granted, or may have been, when nobody waited for it. What is certain
// was given back.
func (m *member) late(sum *tally) {
	granted := map[string]uint64{} // by key
	for _, w := range m.witnesses {
		w.mu.Lock()
		for counter, units := range w.asking.granted {
			granted[keyOf(counter)] += units
		}
		for counter, units := range w.asking.doubt {
			m.counted[keyOf(counter)] += units
		}
		w.mu.Unlock()
	}
	for key, told := range m.granted {
		if told > granted[key] {
			m.fleet.Errorf("GRANTED IN VAIN: %s: %q: callers were granted %d, stores granted %d", m.name, key, told, granted[key])
		}
	}
	for key, units := range granted {
		sum.granted += units
		if late := units - min(units, m.granted[key]); late > 0 {
			sum.late += late
			m.counted[key] += late
			m.lends.asked[key] += late
		}
	}
}
