package ratelimit

// This file is the audit of units given back, for the harness of harness_test.go.

import (
	"context"
	"errors"
	"fmt"

	"pgregory.net/rapid"
)

// returned is what became of the units of one counter that were given back.
type returned struct{ vanished, taken, clamped, doubtful uint64 }

// returnedTo is the ledger's hook.
func (n *node) returnedTo(key string, epoch int64, units uint64, to *total) {
	n.audit.mu.Lock()
	defer n.audit.mu.Unlock()
	c := counter{key, epoch}
	r := n.audit.returned[c]
	switch to {
	case &n.ledger.vanished:
		r.vanished += units
	case &n.ledger.taken:
		r.taken += units
	case &n.ledger.clamped:
		r.clamped += units
	case &n.ledger.doubtful:
		r.doubtful += units
	}
	n.audit.returned[c] = r
}

// returns checks what must hold of units given back, counter by counter: no store was asked
// for more than this node delivered, none was returned twice, and each asked back is
// somewhere. It adds to taken what stores took, and to perhaps what they may have taken.
// Nothing else may run.
func (n *node) returns(i int, taken, perhaps map[counter]uint64) (found []string) {
	var waiting uint64
	asking := map[counter]uint64{} // owed, or in a batch without an answer
	for s := range n.table.shards {
		for e := range n.table.shards[s].entries.each() {
			if e.extra == nil || e.extra.debts == nil {
				continue
			}
			for j, d := range e.extra.debts {
				asking[counter{e.key, e.epoch - 1 + int64(j)}] += d.owed
				waiting += d.owed + d.flown
			}
		}
	}
	for _, p := range n.partitions {
		if !p.carrying {
			continue
		}
		for _, it := range p.batch.items {
			for j, units := range it.back {
				c := counter{it.entry.key, it.epoch - 1 + int64(j)}
				asking[c] += units
				waiting += units
				perhaps[c] += units
			}
		}
	}
	for c, r := range n.audit.returned {
		asking[c] += r.taken + r.doubtful
		taken[c] += r.taken
		perhaps[c] += r.doubtful
	}
	for c, units := range asking {
		if units > n.audit.delivered[c] {
			found = append(found, fmt.Sprintf("node %d, %q in epoch %d: %d asked back of the store, which was given %d; %+v",
				i, c.key, c.epoch, units, n.audit.delivered[c], n.audit.returned[c]))
		}
	}
	var sum returned
	for _, r := range n.audit.returned {
		sum.vanished += r.vanished
		sum.taken += r.taken
		sum.clamped += r.clamped
		sum.doubtful += r.doubtful
	}
	asked := n.ledger.asked.load()
	if all := sum.vanished + sum.taken + sum.clamped + sum.doubtful + waiting; asked != all {
		found = append(found, fmt.Sprintf("node %d: %d units were given back; %+v and %d that wait are %d", i, asked, sum, waiting, all))
	}
	want := Returned{Taken: sum.vanished + sum.taken, Clamped: sum.clamped, Unknown: sum.doubtful, Waiting: waiting}
	if got := n.Stats().Returned; got != want {
		found = append(found, fmt.Sprintf("node %d: Stats says %+v, want %+v", i, got, want))
	}
	return found
}

// asksFor adds what a store may have granted already to a batch without an answer.
func (n *node) asksFor(doubtful map[counter]uint64) {
	for _, p := range n.partitions {
		if !p.carrying {
			continue
		}
		for _, it := range p.batch.items {
			if it.ask == 0 {
				continue
			}
			for _, amount := range p.batch.asks[it.ask-1].amounts {
				doubtful[counter{it.entry.key, it.epoch}] += amount
			}
		}
	}
}

// reserve reserves units and counts what was recorded in the audit.
func (n *node) reserve(key string, units uint64) *Reservation {
	r := n.read()
	res := n.Reserve(key, units)
	if !n.closing.begun() && (res.Decision().Verdict() == VerdictAllowed || n.cfg.CountLimited) {
		n.audit.count(n.KeyName(key), r.epoch, units)
	}
	return res
}

// commit settles a reservation and counts what was recorded in the audit.
func (n *node) commit(res *Reservation, actual uint64) {
	r := n.read()
	if held := res.held.units; !res.settled.Load() && actual > held && !n.closing.begun() {
		n.audit.count(n.KeyName(res.key), r.epoch, actual-held)
	}
	res.Commit(actual)
}

// charge records, at whatever level.
func (m *machine) charge(rt *rapid.T) {
	n, key := m.someone(rt), someKey(rt)
	units := rapid.SampledFrom([]uint64{1, 3, 40}).Draw(rt, "units")
	if !n.closing.begun() {
		n.audit.count(n.KeyName(key), n.epochAt(0), units)
	}
	n.Record(key, units)
}

// reserve makes a reservation that stays open.
func (m *machine) reserve(rt *rapid.T) {
	n, key := m.someone(rt), someKey(rt)
	res := n.node.reserve(key, rapid.SampledFrom([]uint64{1, 5, 12, 300}).Draw(rt, "units"))
	judge(rt, res.Decision())
	n.open = append(n.open, res)
}

// ask makes a reservation by the fleet's counters, or looks at them.
func (m *machine) ask(rt *rapid.T) {
	n, key := m.someone(rt), someKey(rt)
	counted, told, epoch := n.Stats().Counted, n.told, n.epochAt(0)
	res, err := n.ReserveFleet(context.Background(), key, rapid.SampledFrom([]uint64{0, 1, 5, 12, 300}).Draw(rt, "units"))
	if err != nil && !errors.Is(err, ErrNotFleet) {
		rt.Fatalf("ReserveFleet: %v", err)
	}
	if locally := n.Stats().Counted - counted - (n.told - told); locally > 0 {
		n.audit.count(n.KeyName(key), epoch, locally)
	}
	n.open = append(n.open, res)
}

// settle settles an open reservation.
func (m *machine) settle(rt *rapid.T) {
	n := m.someone(rt)
	if len(n.open) == 0 {
		return
	}
	i := rapid.IntRange(0, len(n.open)-1).Draw(rt, "which")
	n.commit(n.open[i], rapid.SampledFrom([]uint64{0, 0, 2, 11, 20}).Draw(rt, "actual"))
	if rapid.Bool().Draw(rt, "twice") {
		n.open[i].Cancel()
	}
	n.open = append(n.open[:i], n.open[i+1:]...)
}

// settleAll cancels what is open.
func (m *machine) settleAll(rt *rapid.T) {
	n := m.someone(rt)
	for _, res := range n.open {
		n.commit(res, 0)
	}
	n.open = nil
}
