package ratelimit

// This file watches how a partition fares: for the metrics, and for the log, which
// hears of changes only.

import (
	"context"
	"log/slog"
	"time"

	"github.com/hanzoai/limiters/internal/level"
	"github.com/hanzoai/limiters/ratelimit/store"
)

// How long a partition waits before it connects again, after each failure twice as
// long as before. The longest is below a second, so that ticks of a second never
// wait.
const (
	firstBackoff = 100 * time.Millisecond
	lastBackoff  = 800 * time.Millisecond
)

// When a partition is down: one lost reply is none. So many attempts in a row must have
// failed, over so long a time.
const (
	downAttempts = 3
	downTime     = time.Second
)

// The log hears of so many outages at once, and then of one in outageInterval, so that a
// link that comes and goes does not fill it. The next line says how many it missed.
const (
	outagesSaid    = 5
	outageInterval = time.Minute
)

// noticeInterval is how often the log repeats that keys are poisoned or refused.
const noticeInterval = 10 * time.Minute

// health is what a partition's attempts taught. The partition's mu guards it.
type health struct {
	attempts, retries, replies uint64
	writes, reads              uint64 // counters, in acknowledged batches
	poisoned, refused          uint64 // writes
	unexpiring                 uint64 // writes
	forgotten                  uint64 // batches that met a store without what it had acknowledged
	lost                       uint64 // totals below what this node delivered
	transitions                [level.Tiers][level.Tiers]uint64
	mismatches                 uint64 // replies that showed another window
	deferred                   int    // entities that the last tick left for the next

	up, tried   bool
	asked       uint64 // round trips that ended, those of batches and questions
	askedAt     int64  // mono; the last of them; valid if tried
	failing     int    // attempts in a row that failed
	failedAt    int64  // mono; the first of them
	outage      outage
	lastSync    int64 // wall; 0 = never
	skew        time.Duration
	otherWindow int64 // ms; the fleet's window if it is not ours, else 0
	backoff     time.Duration
	down        downtime
	notBefore   int64 // mono; when to connect again
	noticed     [6]notice
}

// An outage is one that the log knows of, or should.
type outage struct {
	began   int64  // mono; the first attempt that failed
	dropped uint64 // partition.dropped then
	said    bool   // the log knows that the partition is down
	over    bool   // it is up again, and the log does not know yet
	ended   int64  // mono; valid if over
	missed  int    // outages before that the log was not told of
	lines   int    // said of late, of outagesSaid
	linesAt int64  // mono; when lines was brought up to date
}

// A notice is a log line that is repeated now and then while its cause lasts.
type notice struct {
	count uint64 // at the last line
	at    int64  // mono of the last line
}

// A line is a log line that waits for a lock to be free.
type line struct {
	level slog.Level
	text  string
	attrs []slog.Attr
}

// sayLocked logs a line, about this partition, once p.mu is free.
func (p *partition) sayLocked(level slog.Level, text string, attrs ...slog.Attr) {
	attrs = append([]slog.Attr{slog.String("scope", p.l.cfg.Scope), slog.String("partition", p.name)}, attrs...)
	p.lines = append(p.lines, line{level, text, attrs})
}

// observeLocked counts an attempt at a batch that returned, and says what changed. It
// requires p.mu.
func (p *partition) observeLocked(err error, sent, now reading) {
	if p.attemptedLocked(err, sent, now); err != nil {
		return
	}
	h, m := &p.health, p.l.metrics
	h.replies++
	// Half the round trip has passed since the store read its clock.
	h.skew = time.Duration(p.reply.Time*1000 - (sent.wall + (now.wall-sent.wall)/2))
	writing, reading := p.batch.sizes()
	m.pipelineSizeWrite.Update(float64(writing))
	m.pipelineSizeRead.Update(float64(reading))
	p.compareWindowLocked()
}

// attemptedLocked notes how a round trip ended, of a batch or of a question, and what that
// says about the partition. It requires p.mu.
func (p *partition) attemptedLocked(err error, sent, now reading) {
	h, m := &p.health, p.l.metrics
	h.down.observe(err, now.wall)
	m.pipelineMS[p.index].Update(float64(level.Elapsed(now.mono, sent.mono)) / 1e6)
	h.asked++
	if err == nil {
		if h.tried && !h.up {
			p.neighbors.due = len(p.neighbors.prefixes) > 0
		}
		if h.outage.said {
			h.outage.over, h.outage.ended = true, now.mono // the line follows when the turn ends
		}
		h.up, h.tried, h.askedAt, h.failing = true, true, sent.mono, 0
		h.backoff, h.notBefore = 0, 0
		return
	}
	failure := asStoreError(err)
	m.errorTotal(failure.Step, failure.Cause, p.index).Inc()
	if failure.Cause == store.CauseCanceled {
		return // a caller's context ended, which tells nothing of the partition
	}
	if failure.Fate == store.NotSent {
		h.backoff = min(max(2*h.backoff, firstBackoff), lastBackoff)
		h.notBefore = sent.mono + int64(h.backoff)
	}
	if h.failing == 0 {
		h.failedAt = sent.mono
		p.sayOverLocked() // of the outage before, if that just ended
		if !h.outage.said {
			h.outage.began, h.outage.dropped = sent.mono, p.dropped.load()
		}
	}
	h.failing++
	h.tried, h.askedAt = true, sent.mono
	if h.failing >= downAttempts && level.Elapsed(now.mono, h.failedAt) >= int64(downTime) {
		p.downLocked(failure, now)
	}
}

// downLocked notes that the partition is down, and tells the log if it does not know and may
// hear of it.
func (p *partition) downLocked(failure *store.Error, now reading) {
	h, o := &p.health, &p.health.outage
	if h.up || h.failing == downAttempts {
		h.up = false
		o.missed++
	}
	if o.said {
		return
	}
	for o.lines > 0 && level.Elapsed(now.mono, o.linesAt) >= int64(outageInterval) {
		o.lines--
		o.linesAt += int64(outageInterval)
	}
	if o.lines == outagesSaid {
		return
	}
	if o.lines == 0 {
		o.linesAt = now.mono
	}
	o.lines++
	p.sayLocked(slog.LevelWarn, "ratelimit: partition is down; deciding on what this node knows",
		slog.String("step", failure.Step), slog.String("cause", failure.Cause), slog.Any("error", failure.Err),
		slog.Duration("for", lasted(now.mono, h.failedAt)), slog.Int("attempts", h.failing), slog.Int("outages", o.missed))
	o.said, o.missed = true, 0
}

// sayOverLocked tells the log that an outage which it knows of is over, and what was dropped
// meanwhile. It requires p.mu.
func (p *partition) sayOverLocked() {
	o := &p.health.outage
	if !o.over {
		return
	}
	dropped := p.dropped.load()
	p.sayLocked(slog.LevelInfo, "ratelimit: partition is up again",
		slog.Duration("after", lasted(o.ended, o.began)), slog.Uint64("dropped", dropped-o.dropped))
	o.said, o.over = false, false
	p.health.noticed[0].count = dropped // said just now
}

// lasted is a time for people.
func lasted(now, since int64) time.Duration {
	return time.Duration(level.Elapsed(now, since)).Round(time.Millisecond)
}

// flush logs the lines that wait, and that an outage is over: the turn ends, and with it what
// the partition's return caused.
func (p *partition) flush() {
	p.mu.Lock()
	p.sayOverLocked()
	lines := p.lines
	p.lines = nil
	p.mu.Unlock()
	p.log(lines)
}

// log writes lines. No lock may be held.
func (p *partition) log(lines []line) {
	for _, line := range lines {
		p.l.logger.LogAttrs(context.Background(), line.level, line.text, line.attrs...)
	}
}

// compareWindowLocked says when another deployment works with another window under
// the same prefix, and when that ends.
func (p *partition) compareWindowLocked() {
	h, ours := &p.health, p.batch.Window.Milliseconds()
	theirs := p.reply.Window
	switch {
	case theirs <= 0:
		return // it cannot be told
	case theirs == ours:
		theirs = 0
	}
	if theirs != 0 {
		h.mismatches++
	}
	if theirs == h.otherWindow {
		return
	}
	h.otherWindow = theirs
	if theirs == 0 {
		p.sayLocked(slog.LevelInfo, "ratelimit: the fleet's window is this limiter's again",
			windowAttr("window", ours))
		return
	}
	p.sayLocked(slog.LevelWarn, "ratelimit: another window is in use under this key prefix; the budget is split until they agree",
		slog.String("prefix", p.prefix), windowAttr("window", ours), windowAttr("other_window", theirs))
}

// noticeLocked logs counters that cannot be written, and counts that are gone, at most
// once in noticeInterval each kind, with how many there were. It requires p.mu.
func (p *partition) noticeLocked(now reading) {
	h := &p.health
	dropped := p.dropped.load()
	if h.failing > 0 || h.outage.said {
		dropped = h.noticed[0].count // the line that ends the outage tells
	}
	for i, n := range [...]struct {
		count uint64
		what  string
		text  string
	}{
		{dropped, "units", "ratelimit: units were dropped, for they came too late or were too many; the fleet's totals lack them"},
		{h.poisoned, "writes", "ratelimit: counters hold no valid count; their units are dropped"},
		{h.refused, "writes", "ratelimit: the store refuses single counters; their units wait"},
		{h.unexpiring, "writes", "ratelimit: the store refuses to let new counters expire"},
		{h.forgotten, "batches", "ratelimit: the store forgot batches that it had acknowledged; counts are gone"},
		{h.lost, "counters", "ratelimit: the store holds less than this node delivered; counts are gone"},
	} {
		last := &h.noticed[i]
		if n.count == last.count || last.count > 0 && level.Elapsed(now.mono, last.at) < int64(noticeInterval) {
			continue
		}
		p.sayLocked(slog.LevelWarn, n.text, slog.Uint64(n.what, n.count-last.count))
		*last = notice{count: n.count, at: now.mono}
	}
}
