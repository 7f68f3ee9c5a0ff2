package overrides

// This file reads a source again and again, and gives a limiter what it holds.

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"sync"
	"time"
)

// A Target is what overrides are for: a limiter.
type Target interface {
	// SetOverrides puts thresholds in place of all overrides before.
	SetOverrides(overrides map[string]uint64)
}

// A Watcher keeps a limiter's overrides equal to a source's. Make one with [New],
// and [Watcher.Close] it; [Watch] does both.
type Watcher struct {
	target  Target   // immutable
	source  Source   // immutable
	options *options // immutable
	gauges  *gauges  // immutable

	text func(key string) string // immutable; how the log shows a key

	turn    chan struct{}     // holds one while a refresh runs; that one has the fields below
	hung    *loading          // a Load that outlived its refresh; nil if none
	loaded  bool              // the source was read once
	current map[string]uint64 // what was read last, never changed
	last    result            // of the last refresh
	problem string            // what was malformed, "" if nothing
	closing sync.Once
}

// New returns a watcher that has not read the source yet.
func New(target Target, source Source, opts ...Option) *Watcher {
	o := collect(opts)
	return &Watcher{
		target: target, source: source, options: o, gauges: openGauges(o.set, o.scope),
		text: textOf(target, o.keyText), turn: make(chan struct{}, 1),
	}
}

// Watch refreshes at once and then every interval, a tenth more or less so that the
// nodes of a fleet do not meet at the source, until ctx ends. It returns ctx's
// error; another one only if the interval is not positive. Run it in a goroutine
// of its own.
//
// A service that must not start without its overrides makes its watcher by [New],
// calls [Watcher.Refresh] first, and then [Watcher.Run].
func Watch(ctx context.Context, target Target, source Source, interval time.Duration, opts ...Option) error {
	w := New(target, source, opts...)
	defer w.Close()
	return w.Run(ctx, interval)
}

// Run is [Watch] for a watcher.
func (w *Watcher) Run(ctx context.Context, interval time.Duration) error {
	if interval <= 0 {
		return fmt.Errorf("overrides: the interval is %v, want more than 0", interval)
	}
	refresh := func() {
		if ctx.Err() == nil {
			_ = w.Refresh(ctx) // it has logged and counted the error
		}
	}
	refresh()
	if d, ok := w.options.clock.(driver); ok {
		stop := d.Tick(interval, refresh)
		defer stop()
		<-ctx.Done()
		return ctx.Err()
	}
	timer := time.NewTimer(jittered(interval))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		}
		refresh()
		timer.Reset(jittered(interval))
	}
}

// A driver is a clock that calls what is due while it advances, as fake clocks do.
type driver interface {
	Tick(interval time.Duration, f func()) (stop func())
}

// jittered is d, a tenth more or less.
func jittered(d time.Duration) time.Duration {
	spread := int64(d / 10)
	return d - time.Duration(spread) + time.Duration(rand.Int64N(2*spread+1))
}

// Refresh reads the source once. If it holds other overrides than the last time it
// was read, they take the place of all that are in force; an error leaves those as
// they are. A refresh that ctx ended counts as unreachable, and so does one whose
// source does not return in time, with an error that is [ErrHanging].
//
// Refresh returns soon after ctx or the time of [WithTimeout] ends, whatever the source
// does. Of several calls at once one reads; the others wait their turn, and return
// ctx's error if it ends before.
func (w *Watcher) Refresh(ctx context.Context) error {
	select {
	case w.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-w.turn }()
	bounded, cancel := context.WithTimeout(ctx, w.options.timeout)
	defer cancel()
	next, err := w.load(bounded)
	r := resultOf(err)
	w.gauges.observe(r, w.wall())
	if err != nil {
		w.keep(r, err)
		return err
	}
	w.take(next)
	return nil
}

// resultOf says what an error of a source means.
func resultOf(err error) result {
	switch {
	case err == nil:
		return resultOK
	case errors.Is(err, ErrAbsent):
		return resultAbsent
	case errors.Is(err, ErrMalformed):
		return resultMalformed
	}
	return resultUnreachable
}

// keep notes that the source was not read, and says so if it was before or failed for
// another reason. Only whoever has the turn may call it.
func (w *Watcher) keep(r result, err error) {
	problem := ""
	if r == resultMalformed { // what is unreachable words every error anew
		problem = err.Error()
	}
	if r == w.last && problem == w.problem {
		return
	}
	w.last, w.problem = r, problem
	w.log(slog.LevelWarn, "ratelimit: overrides cannot be read; those in force stay",
		slog.String("result", r.String()), slog.Any("error", err))
}

// take puts what was read in force if it differs. Only whoever has the turn may call it.
func (w *Watcher) take(next map[string]uint64) {
	failed := w.last != resultOK
	changed := !w.loaded || !maps.Equal(w.current, next)
	w.last, w.problem = resultOK, ""
	if changed {
		before := w.current
		if !w.loaded {
			before = inForce(w.target)
		}
		w.current, w.loaded = next, true
		w.target.SetOverrides(next)
		w.log(slog.LevelInfo, "ratelimit: overrides changed", changes(before, next, w.text)...)
	} else if failed {
		w.log(slog.LevelInfo, "ratelimit: overrides can be read again", slog.Int("overrides", len(next)))
	}
}

func (w *Watcher) log(level slog.Level, text string, attrs ...slog.Attr) {
	w.options.logger.LogAttrs(context.Background(), level, text, append([]slog.Attr{slog.String("scope", w.options.scope)}, attrs...)...)
}

// wall is the time in nanoseconds since the Unix epoch.
func (w *Watcher) wall() int64 {
	if w.options.clock == nil {
		return time.Now().UnixNano()
	}
	wall, _ := w.options.clock.Now()
	return wall
}

// Close unregisters the metrics. It does not end a [Watcher.Run], whose context
// does. It may be called more than once.
func (w *Watcher) Close() { w.closing.Do(w.gauges.unregister) }
