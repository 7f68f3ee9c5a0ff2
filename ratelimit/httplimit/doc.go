// Package httplimit limits HTTP requests by a [ratelimit.Limiter]. It depends on
// net/http alone, and works with every router that takes middleware of the form
// func(http.Handler) http.Handler.
//
//	limit, err := httplimit.New(lim, httplimit.Header("X-Api-Key"))
//	…
//	http.ListenAndServe(addr, limit(mux))
//
// # Keys
//
// A [KeyFunc] says whose request it is: [Header], [ClientIP], or any function. When
// it fails or answers the empty key, the request is refused with status 400, unless
// [WithKeyErrors] or [WithEmptyKeys] lets it pass uncounted.
//
// # Answers
//
// A limited request is answered with status 429 and never reaches the handler.
// Retry-After is the wait in whole seconds, rounded up, at least 1; it is missing
// if no wait helps, because the request's cost alone reaches the threshold.
//
// Responses tell the client where it stands, by the fields of
// draft-ietf-httpapi-ratelimit-headers-11 or by X-RateLimit-* fields; see [Fields].
// Since a threshold of T limits the request that would bring the level to T, the
// quota that clients are told is T − 1, and what is available one less than
// [ratelimit.Decision.Remaining]: a client that uses exactly what it was told is
// not limited.
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
