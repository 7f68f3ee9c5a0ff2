package ratelimit

// This file syncs between ticks what a node must not hold back any longer: entities of
// which it has more unsent units than its part of what the fleet may hide (docs/design.md,
// sync by units).

import (
	"sync/atomic"
	"time"

	"github.com/hanzoai/limiters/internal/level"
)

// Entities below 80 % of their thresholds share a budget, so that thousands of small ones
// do not make a script of every MinSyncInterval.
const (
	scriptsPerTick = 4  // that they gain with each tick
	scriptsSaved   = 25 // that they may have at once
)

// afterHold is how many times as long as the last script held the store a sync by units
// waits.
const afterHold = 10

// A unitSync is the state of one partition's syncs between ticks.
type unitSync struct {
	wake  chan struct{} // immutable; wakes the loop; holds one value at most
	armed atomic.Bool   // the loop was woken, or the clock was told when to call
	busy  atomic.Bool   // a sync by units holds the turn
	owed  atomic.Bool   // a whole tick was due meanwhile
	kept  atomic.Bool   // a wake-up came during a tick
	due   atomic.Int64  // mono; no script by units before

	// Of the holder of turn.

	scripts  int   // left of the budget
	keys     int   // left of Config.MaxSyncKeysPerTick until the next whole tick
	shortest int64 // round trip seen, in ns; 0 = none
}

// reachesPartLocked reports whether the entry has so many unsent units that they should
// not wait for the tick.
func (e *entry) reachesPartLocked() bool {
	unsent := e.slots[0].unsent + e.slots[1].unsent
	return unsent >= 2 && unsent >= e.threshold/4096 && e.threshold > 0 && unsent >= level.Part(e.threshold, e.share)
}

// queueUnitsLocked queues an entry that has something to say at a rank, and reports
// whether its partition should be woken.
func (e *entry) queueUnitsLocked(c *constants, r rank) (wake bool) {
	ready := e.ready || c.byUnits && e.reachesPartLocked()
	if e.queued && r <= e.rank && ready == e.ready {
		return false
	}
	e.queueReadyLocked(r, ready)
	return ready
}

// wakeUp has the partition sync by units as soon as it may. It is called without locks.
func (p *partition) wakeUp() {
	if !p.units.armed.CompareAndSwap(false, true) {
		return
	}
	if p.l.driven() {
		p.l.after(p.untilDue(), p.tickByUnits)
		return
	}
	select {
	case p.units.wake <- struct{}{}:
	default:
	}
}

// untilDue is how long a sync by units has to wait.
func (p *partition) untilDue() time.Duration {
	_, mono := p.l.precise()
	return max(1, time.Duration(p.units.due.Load()-mono))
}

// precise reads the clock itself, not a copy that is some milliseconds old.
func (l *Limiter) precise() (wall, mono int64) {
	if l.system != nil {
		return l.system.Precise()
	}
	return l.clock.Now()
}

// tickByUnits syncs what is ready, unless a batch has to be repeated or the partition
// waits to connect again: then the next tick does.
func (p *partition) tickByUnits() {
	p.units.armed.Store(false)
	if !p.takeTurn() {
		p.units.kept.Store(true) // until the end of the tick under way
		if !p.takeTurn() {
			return
		}
		p.units.kept.Store(false) // it ended just now
	}
	p.units.busy.Store(true)
	defer p.endUnits()
	if p.backsOff() || p.isCarrying() || p.l.closing.begun() || p.untilDue() > 1 {
		return // what is due later is called again at the end of this turn
	}
	u := &p.units
	hot, others := p.queue.readyFor()
	switch {
	case hot:
	case others && u.scripts > 0:
		u.scripts--
	default:
		return
	}
	p.taken = p.queue.popReady(p.taken[:0], min(p.batchSize(), u.keys))
	if len(p.taken) == 0 {
		return
	}
	u.keys -= len(p.taken)
	encoded := p.encode()
	clear(p.taken)
	if encoded {
		p.deliver(p.l.life) // the error is in the metrics and the log
	}
}

// takeTurn takes the turn if it is free.
func (p *partition) takeTurn() bool {
	select {
	case <-p.turn:
		return true
	default:
		return false
	}
}

// endUnits ends a sync by units, and makes up for a whole tick that was due meanwhile.
func (p *partition) endUnits() {
	p.units.busy.Store(false)
	if p.units.owed.Swap(false) && !p.backsOff() && !p.l.closing.begun() {
		p.tickTimed(rankIdle)
	}
	p.endTurn()
}

// moreUnits reports whether a sync by units is due as soon as it may be. It requires the
// turn.
func (p *partition) moreUnits() bool {
	if !p.l.byUnits || p.units.keys == 0 || p.l.closing.begun() || p.isCarrying() || p.backsOff() {
		return false
	}
	hot, others := p.queue.readyFor()
	return hot || others && p.units.scripts > 0
}

// beginTick gives syncs by units what they gain with a whole tick, and returns how many
// entities this one may take. It requires the turn.
func (u *unitSync) beginTick(lowest rank, keysPerTick int) (limit int) {
	if lowest == rankIdle {
		u.scripts = min(u.scripts+scriptsPerTick, scriptsSaved)
		u.keys = keysPerTick
	}
	return u.keys
}

// noteScript notes when a script was sent and when its reply came, and so when the next
// by units may follow. It requires the turn.
func (p *partition) noteScript(sent, answered int64) {
	u := &p.units
	took := level.Elapsed(answered, sent)
	if u.shortest == 0 || took < u.shortest {
		u.shortest = took
	}
	u.due.Store(max(sent+int64(p.l.cfg.MinSyncInterval), answered+afterHold*(took-u.shortest)))
}
