// Package overrides keeps a limiter's overrides equal to what stands outside of the
// process: in a file, in a Redis key, or wherever a [Source] looks.
//
//	source := overrides.File("/etc/limits/overrides.json")
//	go overrides.Watch(ctx, lim, source, 10*time.Second)
//
// A source holds one JSON object that maps entity keys to thresholds in units per
// window:
//
//	{"team_42": 5000, "team_7": 0}
//
// # Fail-static
//
// What cannot be read changes nothing: a source that is absent, unreachable or
// malformed leaves the overrides in force as they are, which the log says once per
// change and a metric says always. An object that is empty removes all overrides.
// So a vanished file never lifts a block, and no half-written one is taken.
//
// What is read takes the place of all overrides, those of Config.CustomKeys
// included.
//
// # Metrics
//
// Each has the label scope. They are unregistered when the watch ends.
//
//	global_rate_limiter_overrides_refresh_total{result}             refreshes, by result: ok, absent, unreachable, malformed
//	global_rate_limiter_overrides_refresh_ok                        1 if the last refresh was ok, else 0
//	global_rate_limiter_overrides_refresh_success_timestamp_seconds Unix time of the last that was ok; 0 = none
//
// How many overrides are in force is the limiter's metric
// global_rate_limiter_overrides_loaded.
//
// # Concurrency
//
// All of a [Watcher] may be used from any goroutine; refreshes run one at a time.
// Two watchers of one limiter would take turns at replacing all overrides.
package overrides
