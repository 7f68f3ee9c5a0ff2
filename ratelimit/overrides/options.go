package overrides

// This file holds what a watcher can be given.

import (
	"log/slog"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"github.com/hanzoai/limiters/ratelimit"
)

// An Option changes how a [Watcher] works. Of several that set the same thing the
// last one counts.
type Option func(*options)

type options struct {
	clock   ratelimit.Clock // nil: the system's
	logger  *slog.Logger
	set     *metrics.Set // nil: one of its own
	scope   string
	timeout time.Duration
	keyText func(key string) string // nil: the target's name for it
}

func collect(opts []Option) *options {
	o := &options{logger: slog.Default(), scope: "default", timeout: 10 * time.Second}
	for _, opt := range opts {
		opt(o)
	}
	return o
}

// WithClock gives the watcher another clock than the system's. If it is one that
// drives a limiter (see [ratelimit.Clock]), it calls the refreshes too, exactly one
// interval apart. nil changes nothing.
func WithClock(c ratelimit.Clock) Option {
	return func(o *options) {
		if c != nil {
			o.clock = c
		}
	}
}

// WithLogger has the watcher log changes of state there instead of to
// [slog.Default]. nil silences it.
func WithLogger(logger *slog.Logger) Option {
	return func(o *options) {
		if o.logger = logger; logger == nil {
			o.logger = slog.New(slog.DiscardHandler)
		}
	}
}

// WithMetricsSet has the watcher register its metrics with set, until it is closed.
// Without it, it has a set of its own, which package metrics exposes with its
// others. nil changes nothing.
func WithMetricsSet(set *metrics.Set) Option {
	return func(o *options) {
		if set != nil {
			o.set = set
		}
	}
}

// WithScope sets the metrics' label scope, "default" otherwise: that of the
// limiter's configuration.
func WithScope(scope string) Option {
	return func(o *options) { o.scope = scope }
}

// WithTimeout bounds each Load, by 10 s otherwise, even if it does not heed its
// context. A duration of 0 or less changes
// nothing: there is no unbounded wait.
func WithTimeout(d time.Duration) Option {
	return func(o *options) {
		if d > 0 {
			o.timeout = d
		}
	}
}

// WithKeyText has the log line about a change show text(key) for a key, to mask it for
// instance. nil is the default: the key itself, or its digest if the target is a limiter
// with [ratelimit.WithKeyHash].
func WithKeyText(text func(key string) string) Option {
	return func(o *options) { o.keyText = text }
}
