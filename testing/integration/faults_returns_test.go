// This file has the fault suite's traffic reserve units, settle them later at less or
// more, and record what happened: the books must stay exact.

package integration

import (
	"math/rand/v2"

	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/ratelimit/store"
)

// mostOpen is how many reservations a node leaves open at once.
const mostOpen = 64

// A pledge is a reservation that is not settled, and what it counted.
type pledge struct {
	*ratelimit.Reservation
	key  string
	held uint64
}

// A lender is what a node's callers know of units given back. It is of the traffic's
// goroutine.
type lender struct {
	open  []pledge
	asked map[string]uint64 // by key; units given back
}

// reserve reserves units of a key and leaves the reservation open.
func (m *member) reserve(key string, units uint64) {
	p := pledge{m.Reserve(key, units), key, 0}
	if p.Decision().Verdict() == ratelimit.VerdictAllowed || m.fleet.cfg.CountLimited {
		p.held = min(units, store.MaxUnits)
		m.counted[key] += p.held
	}
	m.lends.open = append(m.lends.open, p)
}

// settle settles the reservation at i, twice.
func (m *member) settle(i int, actual uint64) {
	p := m.lends.open[i]
	last := len(m.lends.open) - 1
	m.lends.open[i] = m.lends.open[last]
	m.lends.open = m.lends.open[:last]
	if actual < p.held {
		m.lends.asked[p.key] += p.held - actual
	} else {
		m.counted[p.key] += actual - p.held
	}
	p.Commit(actual)
	p.Cancel()
}

// spend does what a caller does whose costs are known later: it reserves, settles at less
// or at more, some time after that, or records.
func (m *member) spend(key string, rng *rand.Rand) {
	switch rng.IntN(4) {
	case 0:
		m.Record(key, 2)
		m.counted[key] += 2
	default:
		m.reserve(key, 1+rng.Uint64N(9))
	}
	for len(m.lends.open) > 0 && (len(m.lends.open) > mostOpen || rng.IntN(2) == 0) {
		m.settle(rng.IntN(len(m.lends.open)), rng.Uint64N(6))
	}
}

// returned compares what the node's callers gave back with what it and its stores say
// became of that, once it is closed.
func (m *member) returned(sum *tally, all *account) {
	t := m.fleet
	t.Helper()
	took := map[string]uint64{} // by key
	for counter, units := range all.back.taken {
		if acked := all.acked[counter]; units+all.back.takenPerhaps[counter] > acked {
			sum.twice += units + all.back.takenPerhaps[counter] - acked
			t.Errorf("RETURNED TWICE: %s: %s: %d were delivered, %d taken back and %d perhaps", m.name, counter, acked, units, all.back.takenPerhaps[counter])
		}
		took[keyOf(counter)] += units
	}
	var asked uint64
	for key, units := range m.lends.asked {
		asked += units
		if took[key] > units {
			sum.twice += took[key] - units
			t.Errorf("RETURNED TWICE: %s: %q: callers gave %d back, stores took %d", m.name, key, units, took[key])
		}
		delete(took, key)
	}
	for key, units := range took {
		sum.twice += units
		t.Errorf("RETURNED TWICE: %s: %q: nobody gave any back, stores took %d", m.name, key, units)
	}
	r := m.Stats().Returned
	if got := r.Taken + r.Clamped + r.Unknown; r.Waiting != 0 || got > asked || got < asked && !m.dead && m.closed == nil {
		t.Errorf("%s: callers gave %d units back, Stats says %+v", m.name, asked, r)
	}
	sum.returned += r.Taken
}
