// Package httplimit limits HTTP requests by a [ratelimit.Limiter]. It depends on
// net/http alone, and works with every router that takes middleware of the form
// func(http.Handler) http.Handler.
//
//	limit, err := httplimit.New(lim, httplimit.Header("X-Api-Key"),
//		httplimit.WithSkip(httplimit.Unlimited("/healthz")))
//	…
//	http.ListenAndServe(addr, limit(mux))
//
// # Keys
//
// A [KeyFunc] says whose request it is: [Header], [ClientIP], or any function. When
// it fails or answers the empty key, the request is refused with status 400, unless
// [WithKeyErrors] or [WithEmptyKeys] lets it pass uncounted. Probes and CORS preflights
// have no key: skip them by [Unlimited].
//
// # Several limits
//
// [NewAll] has a request pass several limits: all are counted, or none, each is a policy of its
// own, and the one that refuses speaks.
//
// # Answers
//
// A limited request is answered with status 429 and never reaches the handler.
// Retry-After is the wait in whole seconds, rounded up, at least 1. It is omitted
// if waiting cannot help: the request's cost alone reaches the threshold. Handlers that
// call a limiter themselves set it by [SetRetryAfter].
//
// Responses tell the client where it stands, by the fields of
// draft-ietf-httpapi-ratelimit-headers-11 or by X-RateLimit-* fields; see [Fields].
// A threshold of T limits the request that would bring the level to T, so clients are
// told a quota of T − 1, unless Config.Inclusive is set: then T. A client that uses
// exactly what it was told is available is not limited.
//
// # Dry run
//
// In a dry run (Config.DryRun) every request passes and no response says anything:
// a client that slowed down because of a field would change what is being observed.
// The handler finds the decision by [Decision], and the limiter's metrics count
// what would have been limited.
//
// # Concurrency
//
// Middleware may be used from any goroutine. Functions given to it are called from
// the goroutine of the request, and must be safe for concurrent use.
package httplimit
