package httplimit

// This file holds what can be changed about the middleware.

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/hanzoai/limiters/ratelimit"
)

// An Option changes what [New] makes. Of several that set the same thing the last
// one counts.
type Option func(*options)

type options struct {
	cost      func(*http.Request) uint64
	skip      func(*http.Request) bool
	keyErrors Action
	emptyKeys Action
	fields    Fields
	policy    string
	unit      string
	dryRun    bool
	onLimited func(http.ResponseWriter, *http.Request, ratelimit.Decision)
	onRefused func(http.ResponseWriter, *http.Request, error)
}

func collect(opts []Option) (*options, error) {
	o := &options{keyErrors: Refuse, emptyKeys: Refuse, fields: RateLimit, policy: "default"}
	for _, opt := range opts {
		opt(o)
	}
	if o.onRefused == nil {
		o.onRefused = refused
	}
	var errs []error
	if o.fields&^(RateLimit|XRateLimit) != 0 {
		errs = append(errs, fmt.Errorf("httplimit: WithFields: %d is no combination of RateLimit and XRateLimit", o.fields))
	}
	for _, a := range []Action{o.keyErrors, o.emptyKeys} {
		if a != Pass && a != Refuse {
			errs = append(errs, fmt.Errorf("httplimit: action %d is neither Pass nor Refuse", a))
		}
	}
	if err := checkPolicy(o.policy, o.unit); err != nil {
		errs = append(errs, fmt.Errorf("httplimit: WithPolicy: %w", err))
	}
	return o, errors.Join(errs...)
}

// An Action says what happens to a request that has no key to be counted under.
type Action uint8

const (
	// Refuse answers the request with status 400.
	Refuse Action = iota
	// Pass hands the request to the handler, uncounted.
	Pass
)

// WithCost has a request count as cost units instead of 1. A cost of 0 counts nothing
// and is answered as a cost of 1 would be: the request passes unless the key is limited.
func WithCost(cost func(r *http.Request) uint64) Option {
	return func(o *options) { o.cost = cost }
}

// WithSkip hands requests to the handler, uncounted, for which skip is true: see
// [Unlimited]. It is called before the key function.
func WithSkip(skip func(r *http.Request) bool) Option {
	return func(o *options) { o.skip = skip }
}

// WithKeyErrors says what happens to requests whose key function fails. The
// default is [Refuse]: a client may be able to provoke the failure.
func WithKeyErrors(a Action) Option {
	return func(o *options) { o.keyErrors = a }
}

// WithEmptyKeys says what happens to requests with an empty key. The default is
// [Refuse]: a client could leave out what the key is made of, and not be limited.
func WithEmptyKeys(a Action) Option {
	return func(o *options) { o.emptyKeys = a }
}

// WithFields says which fields responses carry; 0 is none. The default is
// [RateLimit]. Retry-After is not affected.
func WithFields(f Fields) Option {
	return func(o *options) { o.fields = f }
}

// WithDryRun has every request pass, and no response say anything, whatever the limiters say:
// Config.DryRun for one route of a limiter that enforces elsewhere. Requests are decided and
// counted as ever, those that would have been refused not at all; the handler finds the
// decisions by [AllDecisions].
func WithDryRun() Option {
	return func(o *options) { o.dryRun = true }
}

// WithPolicy names the limit in RateLimit fields and in the body of a 429, and the
// unit that it counts; both are printable ASCII. The defaults are "default" and "",
// which means requests. Units that the draft registers are requests, content-bytes
// and concurrent-requests.
func WithPolicy(name, unit string) Option {
	return func(o *options) { o.policy, o.unit = name, unit }
}

// WithLimited has f answer limited requests. The fields and Retry-After are set
// when it is called; it has to write the status, and may write a body. nil is the
// default: status 429 and a problem document (RFC 9457).
func WithLimited(f func(w http.ResponseWriter, r *http.Request, d ratelimit.Decision)) Option {
	return func(o *options) { o.onLimited = f }
}

// WithRefused has f answer requests that are refused for want of a key: the reason
// is [ErrEmptyKey], a [MissingError] among them, or what the key function returned. nil
// is the default: a problem document that names fields which are missing, and nothing
// else of the reason; status 400, or 503 if the reason is that a context ended.
func WithRefused(f func(w http.ResponseWriter, r *http.Request, reason error)) Option {
	return func(o *options) { o.onRefused = f }
}
