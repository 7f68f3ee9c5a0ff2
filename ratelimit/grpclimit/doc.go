// Package grpclimit limits gRPC calls by a [ratelimit.Limiter]: by an interceptor
// for unary calls and one for streams.
//
//	limit, err := grpclimit.New(lim, grpclimit.Metadata("x-api-key"),
//		grpclimit.WithSkip(grpclimit.Health))
//	…
//	server := grpc.NewServer(
//		grpc.ChainUnaryInterceptor(limit.Unary),
//		grpc.ChainStreamInterceptor(limit.Stream),
//	)
//
// It is a module of its own, so that the library does not bring gRPC with it.
//
// # Keys
//
// A [KeyFunc] says whose call it is: [Metadata], [ClientIP], or any function. When it
// fails or answers the empty key, the call is refused with InvalidArgument, or with
// the status that the function's error carries, unless [WithKeyErrors] or
// [WithEmptyKeys] lets it pass uncounted.
//
// # Answers
//
// A limited call ends with ResourceExhausted and never reaches the handler. The
// status has a RetryInfo detail (google.rpc.RetryInfo) with the wait, which is
// missing if no wait helps, because the call's cost alone reaches the threshold. Trailers say
// where the client stands, after a call that passed too: ratelimit-policy and ratelimit, in the
// words of [httplimit.RateLimit], and, if it was limited, grpc-retry-pushback-ms, the wait in
// milliseconds after which a client with a retry policy tries again, -1 for never.
// [NewAll] takes several limits.
//
// A stream counts once, when it is opened, or with [WithMessages] each time the
// handler receives a message instead.
//
// # Dry run
//
// In a dry run (Config.DryRun) every call passes and the client learns nothing; the
// handler finds the decision by [Decision].
//
// # Concurrency
//
// An [Interceptor] may be used from any goroutine. Functions given to it are called
// from the goroutine of the call, and must be safe for concurrent use.
package grpclimit
