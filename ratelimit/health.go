package ratelimit

// This file watches how a partition fares: for the metrics, and for the log, which
// hears of changes only.

import (
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

// flapInterval is how often the log hears of an outage at most, so that a link that
// comes and goes does not fill it. One that lasts is told when the interval is over.
const flapInterval = time.Minute

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
	announced   bool  // the log knows that it is down
	outages     int   // since the log was told last
	quietUntil  int64 // mono; when the log may hear of an outage again
	lastSync    int64 // wall; 0 = never
	downSince   int64 // mono
	skew        time.Duration
	otherWindow int64 // ms; the fleet's window if it is not ours, else 0
	backoff     time.Duration
	notBefore   int64 // mono; when to connect again
	noticed     [5]notice
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

// observeLocked counts an attempt that returned, and says what changed. It requires
// p.mu.
func (p *partition) observeLocked(err error, sent, now reading) {
	h, m := &p.health, p.l.metrics
	m.pipelineMS[p.index].Update(float64(level.Elapsed(now.mono, sent.mono)) / 1e6)
	if err != nil {
		failure := asStoreError(err)
		m.errorTotal(failure.Step, failure.Cause, p.index).Inc()
		if failure.Cause == store.CauseCanceled {
			return // a caller's context ended, which tells nothing of the partition
		}
		if failure.Fate == store.NotSent {
			h.backoff = min(max(2*h.backoff, firstBackoff), lastBackoff)
			h.notBefore = sent.mono + int64(h.backoff)
		}
		if h.up || !h.tried {
			h.downSince, h.announced = now.mono, false
			h.outages++
		}
		if !h.announced && now.mono >= h.quietUntil {
			h.announced, h.quietUntil = true, now.mono+int64(flapInterval)
			p.sayLocked(slog.LevelWarn, "ratelimit: partition is down; deciding on what this node knows",
				slog.String("step", failure.Step), slog.String("cause", failure.Cause), slog.Any("error", failure.Err),
				slog.Int("outages", h.outages))
			h.outages = 0
		}
		h.up, h.tried = false, true
		return
	}
	if h.tried && !h.up && h.announced {
		p.sayLocked(slog.LevelInfo, "ratelimit: partition is up again",
			slog.Duration("after", time.Duration(level.Elapsed(now.mono, h.downSince))))
	}
	if h.tried && !h.up {
		p.neighbors.due = len(p.neighbors.prefixes) > 0
	}
	h.up, h.tried = true, true
	h.replies++
	h.backoff, h.notBefore = 0, 0
	// Half the round trip has passed since the store read its clock.
	h.skew = time.Duration(p.reply.Time*1000 - (sent.wall + (now.wall-sent.wall)/2))
	writing, reading := p.batch.sizes()
	m.pipelineSizeWrite.Update(float64(writing))
	m.pipelineSizeRead.Update(float64(reading))
	p.compareWindowLocked()
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
	for i, n := range [...]struct {
		count uint64
		what  string
		text  string
	}{
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
