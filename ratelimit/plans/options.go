package plans

// This file holds what plans can be given.

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/ratelimit/httplimit"
)

// An Option changes what [Open] makes. Of several that set the same thing the last one counts.
type Option func(*options)

type options struct {
	keys       map[string]httplimit.KeyFunc
	planOf     func(key string) (plan string, ok bool)
	http       []httplimit.Option
	clock      ratelimit.Clock // nil: the system's
	logger     *slog.Logger
	set        *metrics.Set // nil: one of its own
	tls        *tls.Config
	partitions func(limit string) []ratelimit.Partition
	closing    time.Duration
}

func collect(opts []Option) *options {
	o := &options{keys: builtIn(), logger: slog.Default(), closing: 5 * time.Second}
	for _, opt := range opts {
		opt(o)
	}
	return o
}

// WithKey gives a key function a name, by which the file names it. It may take the place of ip:
// behind proxies that has to be an [httplimit.ClientIP] that trusts them. f is called from the
// goroutine of a request, for the allow list and the block list too.
func WithKey(name string, f httplimit.KeyFunc) Option {
	return func(o *options) { o.keys[name] = f }
}

// WithNames lets the file name key functions that are no HTTP ones: those of gRPC (package
// grpcplans). HTTP requests of their routes are refused with status 400.
func WithNames(names ...string) Option {
	return func(o *options) {
		for _, name := range names {
			if o.keys[name] == nil {
				o.keys[name] = func(*http.Request) (string, error) {
					return "", fmt.Errorf("plans: there is no key function %q for HTTP", name)
				}
			}
		}
	}
}

// WithPlanOf has f say which plan a key has that the file does not name. ok is false for keys that
// f does not know; those, and those of a plan that the file does not have, have the default plan.
// It is called on every decision, from the goroutine that decides, so it should be quick.
func WithPlanOf(f func(key string) (plan string, ok bool)) Option {
	return func(o *options) { o.planOf = f }
}

// WithHTTP has the middleware of every route made with these options: [httplimit.WithFields],
// [httplimit.WithLimited] and the like.
func WithHTTP(opts ...httplimit.Option) Option {
	return func(o *options) { o.http = append(o.http, opts...) }
}

// WithClock gives the limiters another clock than the system's, and the reloads, too, if it
// drives them (see [ratelimit.Clock]). nil changes nothing.
func WithClock(c ratelimit.Clock) Option {
	return func(o *options) {
		if c != nil {
			o.clock = c
		}
	}
}

// WithLogger has changes logged there instead of to [slog.Default]. nil silences them.
func WithLogger(logger *slog.Logger) Option {
	return func(o *options) {
		if o.logger = logger; logger == nil {
			o.logger = slog.New(slog.DiscardHandler)
		}
	}
}

// WithMetricsSet has metrics registered with set, the limiters' too. Without it each has a set of
// its own, which package metrics exposes with its others. nil changes nothing.
func WithMetricsSet(set *metrics.Set) Option {
	return func(o *options) {
		if set != nil {
			o.set = set
		}
	}
}

// WithTLS has connections to rediss:// addresses use a clone of cfg, as [ratelimit.WithTLS] does.
func WithTLS(cfg *tls.Config) Option {
	return func(o *options) { o.tls = cfg }
}

// WithPartitions has f answer the partitions of a limit's limiter, in place of the configured
// URLs: for stores of go-redis, say, each limit with stores of its own over one client. f is
// called when a limiter is made; nobody closes what it answers.
func WithPartitions(f func(limit string) []ratelimit.Partition) Option {
	return func(o *options) { o.partitions = f }
}

// WithCloseTimeout bounds how long a reload waits for a limiter that goes to deliver what it
// counted, by 5 s otherwise. What is left then is logged, and counted as dropped. A duration of 0
// or less changes nothing.
func WithCloseTimeout(d time.Duration) Option {
	return func(o *options) {
		if d > 0 {
			o.closing = d
		}
	}
}

// bounded is the context of what has to end within the close timeout.
func (o *options) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), o.closing)
}
