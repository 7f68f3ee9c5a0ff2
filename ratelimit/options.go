package ratelimit

// This file holds what a limiter can be given that is not configuration.

import (
	"crypto/tls"
	"log/slog"

	"github.com/VictoriaMetrics/metrics"
	"github.com/gomodule/redigo/redis"

	"github.com/hanzoai/limiters/internal/clock"
	"github.com/hanzoai/limiters/ratelimit/store"
)

// An Option changes what [New] makes. Of several that set the same thing the last
// one counts.
type Option func(*options)

type options struct {
	clock      Clock
	logger     *slog.Logger
	metricsSet *metrics.Set
	resolver   OverridesResolver
	tls        *tls.Config
	keySecret  []byte
	hashKeys   bool
	pools      []Pool
	partitions []Partition
}

func collect(opts []Option) *options {
	o := &options{logger: slog.Default()}
	for _, opt := range opts {
		opt(o)
	}
	if o.clock == nil {
		o.clock = clock.NewSystem()
	}
	return o
}

func (o *options) hasStores() bool { return len(o.pools) > 0 || len(o.partitions) > 0 }

// A Clock tells a limiter the time. Now returns nanoseconds since the Unix epoch,
// which may step, and nanoseconds since any fixed time, which never decrease. It is
// called once per check, so it should be fast, and from many goroutines at once.
//
// A clock that also has a method Tick(interval time.Duration, f func()) (stop
// func()) drives the limiter: it must call f once per interval, never twice at
// once, until stop is called; the limiter then starts no goroutine. The fake clock
// of package ratelimittest is one.
type Clock interface {
	Now() (wall, mono int64)
}

// WithClock gives the limiter another clock than the system's, which it reads
// from a copy at most some milliseconds old. nil changes nothing.
func WithClock(c Clock) Option {
	return func(o *options) {
		if c != nil {
			o.clock = c
		}
	}
}

// WithLogger has the limiter log changes of state there instead of to
// [slog.Default]. nil silences it.
func WithLogger(logger *slog.Logger) Option {
	return func(o *options) {
		if o.logger = logger; logger == nil {
			o.logger = slog.New(slog.DiscardHandler)
		}
	}
}

// WithMetricsSet has the limiter register its metrics with set until it is closed.
// Without it, it has a set of its own, which package metrics exposes with its
// others. nil changes nothing.
func WithMetricsSet(set *metrics.Set) Option {
	return func(o *options) {
		if set != nil {
			o.metricsSet = set
		}
	}
}

// WithResolver has r asked for the threshold of keys without an exact override. nil
// is none.
func WithResolver(r Resolver) Option {
	if r == nil {
		return WithOverridesResolver(nil)
	}
	return WithOverridesResolver(func(key string, _ func(string) (uint64, bool)) (uint64, bool) { return r(key) })
}

// WithOverridesResolver is [WithResolver] for a resolver that looks at the overrides
// in force. Of the two options the last one counts.
func WithOverridesResolver(r OverridesResolver) Option {
	return func(o *options) { o.resolver = r }
}

// WithTLS has connections to rediss:// addresses use a clone of cfg: for a CA of
// one's own, or a client certificate. An empty ServerName becomes the address's
// host. nil is Go's defaults.
func WithTLS(cfg *tls.Config) Option {
	return func(o *options) { o.tls = cfg }
}

// A Pool is a partition on a Redis that the caller connects to.
type Pool struct {
	// Name decides which keys the partition owns, and is its label in metrics and
	// logs. It must be the same on every node, and different from the other
	// partitions'.
	Name string
	// Pool makes the connections. It must bound dialling, reading and writing by
	// timeouts: a hung server holds the partition's tick for as long as they allow.
	// The limiter uses one connection at a time and does not close the pool.
	Pool *redis.Pool
	// HashTag, if not empty, begins every key of the partition in braces, so that
	// a Redis Cluster keeps them in one slot, and a sharding proxy that hashes by it
	// on one server. Without it such a proxy splits the budget by node; that is
	// logged. It holds no brace itself.
	HashTag string
}

// WithPools makes one partition of each pool; Config.RedisURLs is then not used, and
// how long a write to the socket may take is the pool's matter. With
// [WithPartitions] it is an error of New. No pools change nothing.
func WithPools(pools ...Pool) Option {
	return func(o *options) { o.pools = append([]Pool(nil), pools...) }
}

// A Partition is a share of the keys, and the store that holds their counters.
type Partition struct {
	Name    string      // as in [Pool]
	Store   store.Store // the limiter does not close it
	HashTag string      // as in [Pool]
}

// WithPartitions gives the limiter its partitions; Config.RedisURLs is then not
// used. With [WithPools] it is an error of New, as is a partition without a Store.
// No partitions change nothing.
func WithPartitions(partitions ...Partition) Option {
	return func(o *options) { o.partitions = append([]Partition(nil), partitions...) }
}
