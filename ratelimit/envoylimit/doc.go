// Package envoylimit is the rate limit service that Envoy asks: the gRPC service
// envoy.service.ratelimit.v3.RateLimitService, deciding in memory. It reads the configuration of
// github.com/envoyproxy/ratelimit and answers as that does; where that asks Redis about
// every request, this asks once per tick, or sooner in a burst.
//
//	rules, _, err := envoylimit.ReadRules(files, false)
//	…
//	service, err := envoylimit.New(cfg)
//	…
//	err = service.SetRules(rules)
//	…
//	service.Register(grpcServer)
//
// The command envoylimit beside it is a whole server: configuration by the original's
// environment, reloading, health, metrics, a status page. docs/envoy.md tells how to run it
// and how it differs from the original.
//
// # Counting
//
// A descriptor counts in the window of its rule: units of time from the Unix epoch on. Each descriptor
// of a request counts by itself, hits beyond the limit included. Counts belong to domain, descriptor
// and window; a rule whose limit changes goes on with them.
//
// # Windows
//
// window: sliding in a rate_limit counts over the last unit of time instead of the current one. Refused
// hits then count nothing. fleet: true asks Redis about each request, in scripts that concurrent requests
// share, and never passes more than the limit; nor do its refused hits count.
//
// # Concurrency
//
// A [Service] and [Rules] may be used from any goroutine.
package envoylimit
