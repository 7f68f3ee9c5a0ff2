package ratelimit

// This file puts calls that ask the fleet into batches, and answers them from replies.

import (
	"errors"

	"github.com/hanzoai/limiters/internal/level"
	"github.com/hanzoai/limiters/ratelimit/store"
)

// An ask is what calls about one entity ask of a batch.
type ask struct {
	entry       *entry
	first, last *fleetCall // linked by next, oldest first
	amounts     []uint64   // of the calls that ask for units, in their order
	looks       bool       // some ask for none
	pair        level.Pair // of which only the times are known before the reply
	limit       uint64     // less what the epoch before weighs, if that is known
	previous    span       // where the key of the counter before is in the batch's
}

// limitOf is the largest sum that a threshold admits.
func (c *constants) limitOf(threshold uint64) uint64 {
	switch {
	case threshold == 0 || threshold > store.MaxUnits:
		return min(threshold, store.MaxUnits)
	case c.inclusive:
		return threshold
	}
	return threshold - 1
}

// takeFleetLocked moves calls that wait into the batch. It requires p.mu and the turn.
func (p *partition) takeFleetLocked(r *reading) {
	q := &p.fleet
	q.take(p.fleetCalls())
	if len(q.taken) == 0 {
		return
	}
	if q.found == nil {
		q.found = make(map[string]int32)
	}
	for _, look := range [...]bool{false, true} { // looks make no entry, and find what others made
		for _, c := range q.taken {
			if (c.units == 0) == look {
				p.joinLocked(c, r)
			}
		}
	}
	b := &p.batch
	for i := range b.asks {
		a := &b.asks[i]
		from := len(b.amounts)
		for c := a.first; c != nil; c = c.next {
			if c.units > 0 {
				b.amounts = append(b.amounts, c.units)
			}
		}
		a.amounts = b.amounts[from:len(b.amounts):len(b.amounts)]
		a.entry.lock()
		p.askLocked(i, r)
		a.entry.unlock()
	}
	for i := range b.asks {
		if e := b.asks[i].entry; len(b.asks[i].amounts) > 0 {
			p.l.table.makeRoom(e.hash, e, r)
		}
	}
}

// joinLocked adds a call to the ask of its entity, which it makes, with an entry, if there
// is none.
func (p *partition) joinLocked(c *fleetCall, r *reading) {
	q, b := &p.fleet, &p.batch
	c.next, c.granted = nil, false
	at, ok := q.found[c.name]
	if !ok {
		at = int32(len(b.asks))
		q.found[c.name] = at
		b.asks = append(b.asks, ask{entry: p.entryFor(c, r)})
	}
	a := &b.asks[at]
	if a.last == nil {
		a.first = c
	} else {
		a.last.next = c
	}
	a.last = c
	a.looks = a.looks || c.units == 0
	a.entry.lock()
	p.l.setThresholdLocked(a.entry, &c.request, c.overrides, c.key)
	a.entry.unlock()
}

// entryFor returns the entry for a call, which stays where it is until the batch is answered:
// the table's, for units a new one if need be, for a look one that only the batch knows.
func (p *partition) entryFor(c *fleetCall, r *reading) *entry {
	s := c.shard
	s.mu.Lock()
	defer s.mu.Unlock()
	c.at = *r
	e := s.usedLocked(&c.request, c.hash, c.name, r)
	switch {
	case e != nil:
	case c.units > 0:
		e = s.createLocked(&c.check)
	default:
		e = newEntry(c.name)
		e.hash, e.partition, e.place = c.hash, p, asked
		e.epoch, e.usedAt, e.wantRead = r.epoch, r.mono, true
		e.inFlight = true
		return e
	}
	e.inFlight = true
	e.unlock()
	return e
}

// askLocked makes the item of an ask. It requires the lock of its entry.
func (p *partition) askLocked(i int, r *reading) {
	l, b := p.l, &p.batch
	a := &b.asks[i]
	e := a.entry
	l.sliceLocked(e, r)
	e.netLocked(r, l.window)
	a.pair = l.pairLocked(e, r)
	a.limit = l.limitOf(e.threshold)
	read := a.looks || e.wantRead || !e.read || l.kind != fixed && !e.prevFinal
	a.previous = b.addLocked(e, read, p.prefix, i+1)
	switch {
	case a.pair.Fading == level.IsForgotten:
		a.previous = span{}
	case !read: // what the epoch before holds is final, and known
		a.previous = span{}
		a.pair.Before = e.slots[0].total
		a.limit -= min(a.limit, a.pair.Sum(0))
	}
}

// pairLocked is what a script knows of an entity's counters, at a reading to which the entry
// was advanced, without the counts.
func (l *Limiter) pairLocked(e *entry, r *reading) level.Pair {
	pair := level.Pair{Window: l.window, Into: r.into + (r.epoch-e.epoch)*l.window}
	switch {
	case l.kind == fixed:
		pair.Fading = level.IsForgotten
		s := l.stretch(r)
		pair.Into = 0
		pair.Window = max(1, s.To-r.wall)
		if r.epoch < e.epoch { // the clock stepped back
			pair.Window += l.window
		}
	case l.kind == sliding && l.sliding.Strict:
		pair.Fading = level.FadesAtOnce
	}
	return pair
}

// finishAsks gives the asks' writes their conditions. The batch's keys are in place.
func (b *batch) finishAsks(keys string) {
	b.conditions = b.conditions[:0]
	for i := range b.items {
		it := &b.items[i]
		if it.ask == 0 {
			break // those with one come first
		}
		a := &b.asks[it.ask-1]
		if len(a.amounts) == 0 {
			continue
		}
		b.conditions = append(b.conditions, store.Condition{
			Amounts: a.amounts, Limit: a.limit, Previous: keys[a.previous.from:a.previous.to],
		})
		if a.previous != (span{}) {
			b.conditions[len(b.conditions)-1].Weight = a.pair.Weight()
		}
	}
	n := 0
	for i := range b.items {
		if it := &b.items[i]; it.ask != 0 && len(b.asks[it.ask-1].amounts) > 0 {
			b.Writes[it.at[1]].Condition = &b.conditions[n]
			n++
		}
	}
}

// asked returns how many units the batch asks for that may be granted.
func (b *batch) asked() (n uint64) {
	for i := range b.conditions {
		if c := &b.conditions[i]; c.Limit > 0 {
			for _, amount := range c.Amounts {
				n = plus(n, amount)
			}
		}
	}
	return n
}

// failFleetLocked answers all calls, of the batch that was not answered and those that wait.
// What no attempt can have granted, none will. It requires p.mu and the turn.
func (p *partition) failFleetLocked(err error) {
	if err == nil {
		err = errSequenceTaken
	}
	b := &p.batch
	b.failCalls(err)
	if !b.Retry {
		for i := range b.conditions {
			b.conditions[i].Limit = 0
		}
	}
	p.fleet.shut(err)
}

// failCalls answers all calls of the batch that have no answer.
func (b *batch) failCalls(err error) {
	for i := range b.asks {
		for c := b.asks[i].first; c != nil; c = c.next {
			c.fail(err)
		}
	}
}

// grantLocked accounts for what the store granted to an item's calls, and returns how many
// units that is. They are this node's, delivered at this moment. It requires the lock of the
// entry.
func (p *partition) grantLocked(it *item, slot *slot, now *reading) (sum uint64) {
	e, a := it.entry, &p.batch.asks[it.ask-1]
	if len(a.amounts) == 0 {
		return 0
	}
	granted := p.reply.Writes[it.at[1]].Granted
	i := 0
	for c := a.first; c != nil; c = c.next {
		if c.units > 0 {
			if c.granted = granted[i]; c.granted {
				sum = plus(sum, c.units)
			}
			i++
		}
	}
	if sum == 0 {
		return 0
	}
	p.l.countGrantLocked(e, it.epoch, sum)
	if slot == nil {
		return sum
	}
	e.deliveredLocked(slot, sum)
	if d := e.debtLocked(it.epoch); d != nil {
		d.delivered += sum
	}
	if p.l.kind == sliding {
		e.slideLocked(&p.l.constants, sum, 0, now.mono)
	}
	if p.l.bursts {
		e.bucketLocked(&p.l.constants, now, e.levelLocked(now, &p.l.constants))
		e.extra.bucket.Fill(level.Float(min(sum, store.MaxUnits)))
	}
	return sum
}

// countGrantLocked counts units that a store granted: recorded, and delivered already.
func (l *Limiter) countGrantLocked(e *entry, epoch int64, units uint64) {
	e.units += units
	if e.toldAt.Load() == 0 {
		e.tellLocked(l.table.shardOf(e.hash))
	}
	l.ledger.grant(e, epoch, units)
}

// answerFleetLocked answers an item's calls, and gives back what was granted to callers who
// no longer wait. It returns the calls to be asked again: those of an epoch that was over
// when the answer came. It requires the lock of the entry, which has learned the totals.
func (p *partition) answerFleetLocked(it *item, now *reading, again []*fleetCall) []*fleetCall {
	e, a := it.entry, &p.batch.asks[it.ask-1]
	s := p.l.table.shardOf(e.hash)
	open := !s.closed.Load()
	over := p.l.kind != fixed && now.epoch > it.epoch
	failing := p.readAskLocked(it, a)
	for c := a.first; c != nil; {
		next := c.next
		switch {
		case failing:
			c.fail(errUnusable)
		case over && c.fate.Load() == fateOpen:
			p.giveGrantBackLocked(it, a, c, now, open)
			c.next = nil
			again = append(again, c)
		case c.settle(fateAnswered):
			p.answerLocked(it, a, c, now, open)
			e.countLocked(s, c.decision.verdict, c.units)
			c.done <- struct{}{}
		default:
			p.giveGrantBackLocked(it, a, c, now, open)
		}
		c = next
	}
	a.first, a.last = nil, nil
	return again
}

// readAskLocked puts the counts into the ask's pair: as they were before the store granted
// anything. It reports whether they are unusable.
func (p *partition) readAskLocked(it *item, a *ask) (unusable bool) {
	e := it.entry
	var counts [2]uint64
	for i := range counts {
		total, written := int64(0), i == 1 && len(a.amounts) > 0 || it.units[i]|it.back[i] != 0
		switch {
		case written:
			total = p.reply.Writes[it.at[i]].Total
			if status := p.reply.Writes[it.at[i]].Status; i == 1 && (status == store.Poisoned || status == store.Refused) {
				return true
			}
		case it.read:
			total = p.reply.Reads[it.at[i]]
		default: // of the epoch before; nobody could add to it any more
			if slot := e.slotLocked(it.epoch - 1); slot != nil {
				total = int64(slot.total)
			}
		}
		if total < 0 && (i == 1 || a.pair.Fading != level.IsForgotten) {
			return true
		}
		counts[i] = uint64(max(0, total))
	}
	a.pair.Before, a.pair.Count = counts[0], counts[1]
	for c := a.first; c != nil; c = c.next {
		if c.granted {
			a.pair.Count -= min(c.units, a.pair.Count)
		}
	}
	return false
}

// giveGrantBackLocked gives back what was granted to a call that was told otherwise, or will
// be.
func (p *partition) giveGrantBackLocked(it *item, a *ask, c *fleetCall, now *reading, open bool) {
	if !c.granted {
		return
	}
	c.granted = false
	a.pair.Count = min(a.pair.Count+c.units, store.MaxUnits)
	p.l.ledger.asked.add(c.units)
	p.l.giveBackLocked(it.entry, it.epoch, c.units, now.mono, now, open)
}

// doubtFleetLocked accounts for what a batch of unknown fate asked for: it may have been
// granted, and nobody was told. It requires p.mu.
func (p *partition) doubtFleetLocked() {
	b := &p.batch
	for i := range b.items {
		it := &b.items[i]
		if it.ask == 0 || len(b.asks[it.ask-1].amounts) == 0 || b.Writes[it.at[1]].Condition.Limit == 0 {
			continue
		}
		for _, amount := range b.asks[it.ask-1].amounts {
			p.l.ledger.doubtGrant(it.entry, it.epoch, amount)
		}
	}
}

// endFleet does what is to be done for calls once a batch is concluded: tell them that it
// failed, or ask again. It requires p.mu and the turn.
func (p *partition) endFleetLocked(err error) {
	if p.carrying {
		var failure *store.Error
		if errors.As(err, &failure) {
			err = failure
		}
		p.failFleetLocked(err)
		return
	}
	p.batch.failCalls(errGivenUp)
	p.fleet.open()
	if len(p.again) > 0 {
		p.fleet.again(p.again)
		clear(p.again)
		p.again = p.again[:0]
	}
}
