package grpclimit

// This file holds what can be changed about the interceptors.

import (
	"context"

	"github.com/hanzoai/limiters/ratelimit"
)

// An Option changes what [New] makes. Of several that set the same thing the last
// one counts.
type Option func(*options)

type options struct {
	cost      func(context.Context, Call) uint64
	skip      func(context.Context, Call) bool
	keyErrors Action
	emptyKeys Action
	messages  bool
	dryRun    bool
	limited   func(ratelimit.Decision) error
}

// An Action says what happens to a call that has no key to be counted under.
type Action uint8

const (
	// Refuse ends the call with an error.
	Refuse Action = iota
	// Pass hands the call to the handler, uncounted.
	Pass
)

// WithCost has a call count as cost units instead of 1. A cost of 0 counts nothing and is
// answered as a cost of 1 would be: the call passes unless the key is limited.
func WithCost(cost func(ctx context.Context, call Call) uint64) Option {
	return func(o *options) { o.cost = cost }
}

// WithSkip hands calls to the handler, uncounted, for which skip is true: [Health]
// checks, for instance. It is called before the key function.
func WithSkip(skip func(ctx context.Context, call Call) bool) Option {
	return func(o *options) { o.skip = skip }
}

// WithKeyErrors says what happens to calls whose key function fails. The default is
// [Refuse]: a client may be able to provoke the failure.
func WithKeyErrors(a Action) Option {
	return func(o *options) { o.keyErrors = a }
}

// WithEmptyKeys says what happens to calls with an empty key. The default is
// [Refuse]: a client could leave out what the key is made of, and not be limited.
func WithEmptyKeys(a Action) Option {
	return func(o *options) { o.emptyKeys = a }
}

// WithMessages has a stream count each message that its handler receives, instead
// of its opening. The handler gets a limited message's status from Recv: if it
// returns it, the stream ends with it; if not, it may go on. Skip, key and cost
// functions are asked about each message.
func WithMessages() Option {
	return func(o *options) { o.messages = true }
}

// WithLimited has f make the error with which a limited call ends; of nil, or an error
// with the code OK, the default is taken: no limited call passes. A nil f is the
// default: ResourceExhausted, with RetryInfo.
func WithLimited(f func(d ratelimit.Decision) error) Option {
	return func(o *options) { o.limited = f }
}

// WithDryRun has every call pass and the client learn nothing, whatever the limiters say:
// Config.DryRun for one service of a limiter that enforces elsewhere. Calls are decided and counted
// as ever, those that would have been refused not at all; the handler finds the decisions by
// [AllDecisions].
func WithDryRun() Option {
	return func(o *options) { o.dryRun = true }
}
