package ratelimit

// This file decides when ticks happen.

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/hanzoai/limiters/internal/level"
)

// A driver is a clock that calls the ticks itself: while it advances, in the order
// of time. A fake clock does, and so a limiter on one starts no goroutine.
type driver interface {
	Tick(interval time.Duration, f func()) (stop func())
}

// An alarm is a driver that can call once. One that cannot has Tick called, and stop in
// its first call.
type alarm interface {
	After(d time.Duration, f func()) (stop func())
}

// after has f called once, after d: by the clock if that drives the limiter, else in a
// goroutine of its own. Once stop has returned no call begins on a clock that drives the
// limiter; elsewhere one may be under way.
func (l *Limiter) after(d time.Duration, f func()) (stop func()) {
	drives, driven := l.clock.(driver)
	if !driven {
		timer := time.AfterFunc(d, f)
		return func() { timer.Stop() }
	}
	if a, ok := drives.(alarm); ok {
		return a.After(d, f)
	}
	var ends atomic.Pointer[func()] // the clock may call before Tick has returned
	var fired atomic.Bool
	end := drives.Tick(d, func() {
		if fired.CompareAndSwap(false, true) {
			f()
		}
		if end := ends.Load(); end != nil {
			(*end)()
		}
	})
	ends.Store(&end)
	return end
}

// driven reports whether the clock calls the ticks.
func (l *Limiter) driven() bool {
	_, ok := l.clock.(driver)
	return ok
}

// drive has the clock call this limiter's ticks until Close.
func (l *Limiter) drive(d driver) {
	var stops []func()
	if hot := l.cfg.HotSyncInterval; hot > 0 {
		stops = append(stops, d.Tick(hot, func() {
			for _, p := range l.partitions {
				p.tickIfFree(rankHot)
			}
		}))
	}
	stops = append(stops, d.Tick(l.cfg.TickInterval, func() {
		for _, p := range l.partitions {
			p.tickIfFree(rankIdle)
		}
		l.housekeep()
	}))
	l.closing.onStop = func() {
		for _, stop := range stops {
			stop()
		}
	}
}

// loop ticks once per interval until Close, first at a random phase of it, so that the
// nodes of a fleet do not meet at Redis. A tick that takes longer skips those it covers.
func (p *partition) loop() {
	tick := p.l.cfg.TickInterval
	step := tick
	if hot := p.l.cfg.HotSyncInterval; hot > 0 {
		step = hot
	}
	phase, units, ticker := time.NewTimer(time.Duration(rand.Int64N(int64(tick)))), time.NewTimer(tick), time.NewTicker(step)
	ticker.Stop() // until the phase is over; syncs by units do not wait for it
	defer phase.Stop()
	defer units.Stop()
	defer ticker.Stop()
	var since time.Duration
	for {
		select {
		case <-p.l.life.Done():
			return
		case <-phase.C:
			ticker.Reset(step)
			p.tickIfFree(rankIdle)
			continue
		case <-p.fleet.wake:
			p.syncFleetIfFree()
			continue
		case <-p.units.wake:
			units.Reset(p.untilDue())
			continue
		case <-units.C:
			p.tickByUnits()
			continue
		case <-ticker.C:
		}
		if since += step; since < tick {
			p.tickIfFree(rankHot)
			continue
		}
		since -= tick
		p.tickIfFree(rankIdle)
	}
}

// houseLoop keeps house once per tick until Close.
func (l *Limiter) houseLoop() {
	ticker := time.NewTicker(l.cfg.TickInterval)
	defer ticker.Stop()
	for {
		select {
		case <-l.life.Done():
			return
		case <-ticker.C:
			l.housekeep()
		}
	}
}

// tickIfFree ticks unless another tick is under way or the partition waits to
// connect again.
func (p *partition) tickIfFree(lowest rank) {
	select {
	case <-p.turn:
	default:
		if lowest == rankIdle && p.units.busy.Load() {
			p.units.owed.Store(true) // what syncs by units goes on with a whole tick
		}
		return
	}
	defer p.endTurn()
	if p.backsOff() {
		p.slicePressed()
		return
	}
	p.tickTimed(lowest)
}

// tickTimed ticks and measures how long that takes. It requires the turn.
func (p *partition) tickTimed(lowest rank) {
	before := p.l.read()
	p.tick(p.l.life, lowest) // the error is in the metrics and the log
	p.l.metrics.tickMS.Update(float64(level.Elapsed(p.l.read().mono, before.mono)) / 1e6)
}

// syncOnce ticks once, after the tick under way.
func (p *partition) syncOnce(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-p.turn:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer p.endTurn()
	before := p.asked()
	if err := p.tick(ctx, rankIdle); err != nil || p.asked() != before {
		return err
	}
	return p.question(ctx) // nothing was to be synced; that the partition is there says this
}

// endTurn lets others tick. What became ready for a sync by units meanwhile follows, and calls
// to the fleet that came too late for the last script.
func (p *partition) endTurn() {
	p.flush()
	more := p.moreUnits()
	p.turn <- struct{}{}
	if p.fleet.len() > 0 {
		p.wakeFleet()
	}
	if p.units.kept.Swap(false) || more {
		p.wakeUp()
	}
}

func (p *partition) backsOff() bool {
	now := p.l.read()
	p.mu.Lock()
	defer p.mu.Unlock()
	return now.mono < p.health.notBefore
}
