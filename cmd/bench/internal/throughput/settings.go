package throughput

// This file makes the limiters' configuration from the flags or the environment.

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
	_ "time/tzdata" // for calendars of a zone, wherever the bench runs

	"github.com/hanzoai/limiters/cmd/bench/internal/backend"
	"github.com/hanzoai/limiters/ratelimit"
)

// keptAfterRun is how long the counts outlive a run, to be read back and looked at.
const keptAfterRun = 2 * time.Minute

// settings returns the limiters' configuration: the library's defaults or the
// environment's, changed by the flags that were given, and kept apart from other
// users of the servers. RedisURLs is empty if the embedded server is to be used.
// The error holds everything that is wrong.
func settings(o *options) (ratelimit.Config, error) {
	config := ratelimit.DefaultConfig()
	if o.env {
		var err error
		if config, err = ratelimit.ConfigFromEnv(); err != nil {
			return config, err
		}
	}
	given := func(name string) bool { return !o.env || o.set[name] }
	if given("threshold") {
		config.GlobalThreshold = o.threshold
	}
	if given("window") {
		config.WindowInterval = o.window
	}
	if given("tick") {
		config.TickInterval = o.tick
	}
	if given("redis") {
		config.RedisURLs = o.redis
	}
	if !o.env {
		config.GlobalReadTimeout, config.GlobalWriteTimeout, config.ConnectTimeout = backend.Patience, backend.Patience, backend.Patience
		config.TierScanIntervalTicks = 5
	}
	config.RedisKeyPrefix += ":bench-" + backend.RandomName()
	kept := o.duration + o.closing + keptAfterRun
	config.GlobalCacheTTL = max(config.Resolved().GlobalCacheTTL, kept.Truncate(time.Second))

	valid := config
	if len(valid.RedisURLs) == 0 {
		valid.RedisURLs = []string{"memory://"} // the embedded server's come later
	}
	return config, valid.Validate()
}

// writeSettings prints the configuration, secrets masked.
func writeSettings(w io.Writer, config ratelimit.Config) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, s := range config.Settings() {
		fmt.Fprintf(table, "%s\t%s\t%s\n", s.Env, s.Value, s.Field)
	}
	_ = table.Flush()
}
