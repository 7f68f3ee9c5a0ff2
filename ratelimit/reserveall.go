package ratelimit

// This file counts several entities at once, so that what was counted can be given back.

// Reservations are the answers to the items of one [Limiter.ReserveAll], in their order.
// Items of one limiter with equal keys share a reservation of their sum. Each may be settled
// on its own; [Reservations.Cancel] gives all back.
type Reservations []*Reservation

// ReserveAll is [Limiter.CheckAll] whose units can be given back: a reservation for each
// item, all holding what they asked for, or none anything if an item is limited. What
// CheckAll counts against the verdicts (Config.CountLimited, a dry run) a reservation holds
// too. It costs what CheckAll does, and an allocation for each item.
func (l *Limiter) ReserveAll(items []Item) Reservations {
	if len(items) == 0 {
		return nil
	}
	reservations := make(Reservations, len(items))
	made := make([]Reservation, len(items))
	for i := range made {
		reservations[i] = &made[i]
	}
	l.checkAll(items, reservations)
	return reservations
}

// hold makes the reservation, which is new, one of what was counted for the demand.
func (r *Reservation) hold(dm *demand, d *Decision) {
	r.limiter, r.key, r.decision = dm.l, dm.key, *d
	if dm.counted {
		r.held = holding{entry: dm.entry, epoch: dm.at.epoch, mono: dm.at.mono, units: dm.units, fleet: dm.open}
	}
}

// Decisions returns the answers to the items.
func (rs Reservations) Decisions() Decisions {
	ds := make(Decisions, len(rs))
	for i, r := range rs {
		ds[i] = r.decision
	}
	return ds
}

// Cancel settles all reservations at no cost, as [Reservation.Cancel] does one.
func (rs Reservations) Cancel() {
	for _, r := range rs {
		r.Cancel()
	}
}
