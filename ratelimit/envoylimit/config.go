package envoylimit

// This file is what a service can be given.

import (
	"errors"
	"log/slog"
	"time"

	"github.com/hanzoai/limiters/ratelimit"
)

// A Config is what a service is told when it is made. A Config is a value.
type Config struct {
	// Limiter is where and how counts are shared: the Redis servers, the prefix of keys,
	// timeouts, the size of the table. What a window is, and how requests count in it, is
	// the rules' matter: Window, WindowInterval, Inclusive, CountLimited,
	// StrictFirstContact, SyncInterval, LocalCacheTTL, LocalCacheIdleTimeout, Scope are
	// overwritten, and RedisKeyPrefix is extended by the window's name. Start from
	// ratelimit.DefaultConfig.
	Limiter ratelimit.Config

	// Options are given to each limiter, after the service's own clock and logger.
	Options []ratelimit.Option

	// Clock is asked for the time, by the limiters too. nil: the system's.
	Clock ratelimit.Clock

	// Logger is told of changes of state. nil: slog.Default.
	Logger *slog.Logger

	// ShadowMode lets every request pass: the overall code is always OK. The statuses and
	// metrics say what would have been.
	ShadowMode bool

	// QuotaMode answers OK for every limit that is used up, and lists them in the
	// dynamic metadata.
	QuotaMode bool

	// DynamicMetadata adds the request and what quota mode found to the answer.
	DynamicMetadata bool

	// Headers, if not nil, are added to the answer for the client.
	Headers *Headers

	// NearLimitRatio is from which part of a limit on units count as near in the metrics;
	// 0 … 1. It decides nothing.
	NearLimitRatio float32

	// StopWhenOver counts a request's other descriptors only if none of them is over its
	// limit. Without it each counts by itself.
	StopWhenOver bool
}

// Headers are the names of the headers that tell a client of the descriptor closest to its
// limit.
type Headers struct {
	Limit     string // the limit, in requests per unit
	Remaining string // what is left of it
	Reset     string // whole seconds until the unit ends
}

// DefaultHeaders are the names that envoyproxy/ratelimit uses.
var DefaultHeaders = Headers{Limit: "RateLimit-Limit", Remaining: "RateLimit-Remaining", Reset: "RateLimit-Reset"}

// DefaultConfig returns a configuration that is valid once Limiter.RedisURLs is set.
func DefaultConfig() Config {
	limiter := ratelimit.DefaultConfig()
	limiter.RedisKeyPrefix = "envoylimit"
	return Config{Limiter: limiter, NearLimitRatio: 0.8}
}

func (c *Config) validate() error {
	var errs []error
	if !(c.NearLimitRatio >= 0 && c.NearLimitRatio <= 1) {
		errs = append(errs, fieldError("NearLimitRatio", "want 0 … 1"))
	}
	if h := c.Headers; h != nil && (h.Limit == "" || h.Remaining == "" || h.Reset == "") {
		errs = append(errs, fieldError("Headers", "each header needs a name"))
	}
	return errors.Join(errs...)
}

type configError struct{ field, problem string }

func fieldError(field, problem string) error { return &configError{field, problem} }

func (e *configError) Error() string { return "envoylimit: Config." + e.field + ": " + e.problem }

// wall returns the clock's time in whole seconds since the Unix epoch.
func (c *Config) wall() int64 {
	if c.Clock == nil {
		return time.Now().Unix()
	}
	wall, _ := c.Clock.Now()
	return wall / int64(time.Second)
}
