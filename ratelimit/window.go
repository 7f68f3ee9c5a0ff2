package ratelimit

// This file is what differs between the kinds of window: the level of an entity, what a
// record adds to it, and what a decision answers about waits (docs/design.md, the window).

import (
	"github.com/hanzoai/limiters/internal/level"
)

// A windowKind is a WindowKind for the hot path.
type windowKind uint8

const (
	leaky windowKind = iota
	sliding
	fixed
)

// kindOf returns the kind of a configuration that is valid.
func kindOf(w WindowKind) windowKind {
	switch w {
	case WindowSliding:
		return sliding
	case WindowFixed:
		return fixed
	}
	return leaky
}

// An extra is what an entry needs beside its hot fields: slices if the window slides and
// the entity has some pressure, a bucket if bursts are bounded, and what was asked back.
type extra struct {
	ring   level.Ring
	bucket *level.Bucket
	debts  *debts // nil if nothing was asked back
}

// newBucketed returns an extra with a bucket that is empty at mono.
func newBucketed(mono int64) *extra {
	both := new(struct {
		extra
		level.Bucket
	})
	both.bucket = &both.Bucket
	both.Begin(mono)
	return &both.extra
}

// fits reports whether units may be added to a level.
func (c *constants) fits(reached, asked float64, threshold uint64) bool {
	return level.Fits(reached+asked, threshold, c.inclusive)
}

// levelLocked is the entity's level at a reading to whose epoch the entry need not have
// been advanced.
func (e *entry) levelLocked(r *reading, c *constants) float64 {
	var m level.Leaky
	e.modelLocked(&m, r, c.window)
	switch r.epoch - e.epoch {
	case 0, -1:
	case 1:
		m.Into = r.into + c.window
	default:
		if c.kind != sliding || !e.ringed {
			return 0
		}
	}
	if c.kind == leaky {
		return m.Level(e.threshold, 0)
	}
	return e.reachedLocked(&m, r, c)
}

// reachedLocked is the level of an entity whose window is not leaky, as of a reading. m is
// its model.
func (e *entry) reachedLocked(m *level.Leaky, r *reading, c *constants) float64 {
	switch {
	case c.kind == fixed && r.epoch > e.epoch:
		return 0
	case c.kind == fixed:
		slot := &e.slots[1]
		if r.epoch < e.epoch {
			slot = &e.slots[0] // the clock stepped back
		}
		return level.Float(slot.pending) + level.Float(slot.total)
	case e.ringed:
		if r.mono >= e.slide.End {
			e.extra.ring.Roll(&c.sliding, &e.slide, r.mono)
		}
		return c.sliding.Level(&e.slide, r.mono)
	default:
		return m.Loose(c.sliding.Strict, 0)
	}
}

// slideLocked counts units in the sliding window, which came so long before now.
func (e *entry) slideLocked(c *constants, units uint64, ago, now int64) {
	mono := now - min(ago, 2*c.window)
	switch {
	case e.ringed && mono == now:
		e.slide.Add(units)
	case e.ringed:
		e.extra.ring.Spread(&c.sliding, &e.slide, mono, mono, units, true)
	default:
		e.slide.Note(mono)
	}
}

// bucketLocked is what the entity's bucket holds at a reading, at most what the window
// does unless that ends all at once.
func (e *entry) bucketLocked(c *constants, r *reading, reached float64) float64 {
	if e.extra == nil {
		e.extra = newBucketed(r.mono)
	}
	held := e.extra.bucket.Leak(&c.burst, e.threshold, r.mono)
	if c.kind != fixed && held > reached {
		e.extra.bucket.Cut(reached)
		held = reached
	}
	return held
}

// rethresholdLocked draws the consequences of a threshold that was another before.
func (e *entry) rethresholdLocked(c *constants, before uint64) {
	if c.kind == sliding && !e.ringed && e.threshold < before {
		e.partition.queue.notePressed(e) // its level may be a tenth of this one
	}
	if e.extra == nil {
		return
	}
	e.extra.ring.Forget()
	if c.bursts && e.threshold < before {
		e.extra.bucket.Cut(c.burst.Capacity(e.threshold))
	}
}

// answerLocked puts into d what it cannot find out later, for windows that are not
// leaky: what is left of the level after the check recorded, and the waits.
func (l *Limiter) answerLocked(d *Decision, e *entry, r *reading, open bool) {
	if l.kind == fixed {
		l.answerFixedLocked(d, e, r)
		return
	}
	d.after = e.reachedLocked(&d.model, r, &l.constants)
	if open && !e.ringed {
		e.pressLocked(d.level-level.Float(d.units), d.after)
	}
	d.reset = l.emptyAfterLocked(d, e, r)
	if d.verdict == VerdictLimited && d.passesAlone() {
		d.wait = l.slidingWaitLocked(d, e, r, open)
	}
}

// answerFixedLocked is answerLocked for a fixed window.
func (l *Limiter) answerFixedLocked(d *Decision, e *entry, r *reading) {
	count := func(s *slot) float64 { return level.Float(s.pending) + level.Float(s.total) }
	s := l.stretch(r)
	m := level.Fixed{Count: count(&e.slots[1]), Left: max(1, s.To-r.wall)}
	if r.epoch < e.epoch { // the clock stepped back
		m.Count, m.Next, m.Then = count(&e.slots[0]), count(&e.slots[1]), l.window
		if l.calendar != nil {
			next := l.calendar.at(s.To)
			m.Then = next.To - next.From
		}
	}
	d.after = m.Count
	d.reset = m.Wait(func(reached float64) bool { return reached <= 0 })
	if d.verdict != VerdictLimited || !d.passesAlone() {
		return
	}
	asked := d.asked()
	d.wait = m.Wait(func(reached float64) bool { return l.fits(reached, asked, d.threshold) })
	if l.bursts {
		d.wait = l.burst.Wait(d.held, asked, d.threshold, d.wait)
	}
}

// emptyAfterLocked is how long it takes until the sliding window is empty.
func (l *Limiter) emptyAfterLocked(d *Decision, e *entry, r *reading) int64 {
	mono := max(r.mono, e.usedAt)
	switch s := &l.sliding; {
	case e.ringed:
		return e.extra.ring.EmptyAt(s, &e.slide, mono) - mono
	case 10*d.after >= float64(d.threshold) && d.after > 0: // it is about to get slices
		_, last := e.slide.Noted(mono)
		return s.EndOf(last) + int64(s.Slices)*s.Width - mono
	case d.model.Local+d.model.Fleet > 0:
		return 2*l.window - d.model.Into
	case d.after > 0:
		return l.window - d.model.Into
	}
	return 0
}

// slidingWaitLocked is how long a refused request has to wait that passes alone.
func (l *Limiter) slidingWaitLocked(d *Decision, e *entry, r *reading, open bool) (wait int64) {
	s, asked := &l.sliding, d.asked()
	fits := func(reached float64) bool { return l.fits(reached, asked, d.threshold) }
	mono := r.mono
	if !e.ringed {
		return l.looseWaitLocked(d, e, r, open)
	}
	ring := &e.extra.ring
	mono = max(mono, e.slide.End-s.Width)
	if asked == 1 {
		wait = ring.OnePassesAt(s, &e.slide, mono, d.threshold, l.inclusive) - r.mono
	} else {
		wait = ring.PassAt(s, &e.slide, mono, fits) - r.mono
	}
	if !l.bursts {
		return wait
	}
	longest := l.burst.Wait(d.held, asked, d.threshold, wait)
	return wait + level.LeastWait(longest-wait, func(more int64) bool {
		held := l.burst.Held(d.held, d.threshold, wait+more)
		return l.burst.Fits(min(held, ring.LevelAt(s, &e.slide, max(mono, r.mono+wait+more))), asked, d.threshold)
	})
}

// looseWaitLocked is slidingWaitLocked of an entity without slices. The next tick gives it
// some, if it has the pressure for them.
func (l *Limiter) looseWaitLocked(d *Decision, e *entry, r *reading, open bool) int64 {
	asked, strict := d.asked(), l.sliding.Strict
	fits := func(reached float64) bool { return l.fits(reached, asked, d.threshold) }
	loose := func(wait int64) bool { return fits(d.model.Loose(strict, wait)) }
	wait := level.LeastWait(d.model.EmptyAfter(), loose)
	if open && 10*d.after >= float64(d.threshold) {
		begin := l.beginningLocked(e, r)
		sliced := begin.PassAt(&l.sliding, fits) - r.mono
		if 10*d.model.Loose(strict, l.tick) >= float64(d.threshold) {
			wait = min(wait, l.tick) // from the tick on the slices decide
		} // else they may, or not: by then it may be less than a tenth
		wait = max(sliced, wait)
	}
	if l.bursts {
		wait = l.burst.Wait(d.held, asked, d.threshold, wait)
	}
	return wait
}

// beginningLocked is what a ring begins with at a reading.
func (l *Limiter) beginningLocked(e *entry, r *reading) level.Beginning {
	into := r.into
	if r.epoch < e.epoch {
		into -= l.window
	}
	b := level.Beginning{Mono: r.mono, EpochAt: r.mono - into, Window: l.window, ReadAt: r.mono - into}
	for i, s := range e.slots {
		delivered := min(uint64(e.delivered[i]), s.total)
		b.Own[i], b.Others[i] = delivered+s.pending, s.total-delivered
	}
	if e.synced {
		b.ReadAt = e.syncedAt
	}
	b.First, b.Last = e.slide.Noted(r.mono)
	b.Base = uint64(e.slide.Aging)
	return b
}

// sliceLocked gives the entry slices if its window slides and it has the pressure for
// them. It is called by ticks alone: it allocates.
func (l *Limiter) sliceLocked(e *entry, r *reading) {
	if l.kind != sliding || e.ringed || e.threshold == 0 || e.epoch != r.epoch && e.epoch != r.epoch+1 {
		return
	}
	if 10*e.levelLocked(r, &l.constants) < float64(e.threshold) {
		return
	}
	b := l.beginningLocked(e, r)
	if e.extra == nil {
		e.extra = newExtra(&l.constants, r)
	}
	e.extra.ring.Begin(&l.sliding, &e.slide, &b)
	e.ringed = true
}

// pressLocked has the next tick give the entry slices if its level has risen from before to
// after, and so to a tenth of the threshold.
func (e *entry) pressLocked(before, after float64) {
	if threshold := float64(e.threshold); 10*after >= threshold && 10*before < threshold {
		e.partition.queue.notePressed(e)
	}
}

// slicePressed gives slices to the entries that need them, whether the store can be
// reached or not. It requires the turn.
func (p *partition) slicePressed() {
	if p.l.kind != sliding {
		return
	}
	r := p.l.read()
	p.pressed = p.queue.takePressed(p.pressed)
	for _, e := range p.pressed {
		e.lock()
		if e.inTableLocked() {
			e.advanceLocked(&r)
			p.l.sliceLocked(e, &r)
		}
		e.unlock()
	}
}

// unsliceLocked takes the entry's slices away. Its share of traffic that is over says
// nothing of what comes next.
func (e *entry) unsliceLocked() {
	e.ringed, e.slide, e.share = false, level.Slide{}, 0
	if e.extra.bucket == nil && e.extra.debts == nil {
		e.extra = nil
	} else {
		e.extra.ring = level.Ring{}
	}
}
