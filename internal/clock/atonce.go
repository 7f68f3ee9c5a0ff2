package clock

// This file tells a store of tests who asks: a tick, which may wait while a clock is
// advanced, or a caller for whom no time passes.

import "context"

type atOnce struct{}

// AtOnce returns a context for a request that a clock which stands still must not hold up.
func AtOnce(ctx context.Context) context.Context { return context.WithValue(ctx, atOnce{}, true) }

// IsAtOnce reports whether a context came from AtOnce.
func IsAtOnce(ctx context.Context) bool { return ctx.Value(atOnce{}) != nil }
