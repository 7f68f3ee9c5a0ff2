package httplimit

// This file is the way of a request through the middleware.

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/hanzoai/limiters/ratelimit"
)

// A KeyFunc says whose request r is. The key is what the limiter counts under.
type KeyFunc func(r *http.Request) (key string, err error)

// ErrEmptyKey is the reason for which a request with an empty key is refused.
var ErrEmptyKey = errors.New("httplimit: the request has no key")

// New returns middleware that asks lim about every request, under the key that key
// answers. The error names an option whose value is wrong.
func New(lim *ratelimit.Limiter, key KeyFunc, opts ...Option) (func(http.Handler) http.Handler, error) {
	if lim == nil || key == nil {
		return nil, errors.New("httplimit: New needs a limiter and a key function")
	}
	o, err := collect(opts)
	if err != nil {
		return nil, err
	}
	m := &middleware{
		lim: lim, key: key, options: o,
		writer: newFieldWriter(o.fields, o.policy, o.unit, lim.Config()),
	}
	return m.wrap, nil
}

// A middleware is immutable.
type middleware struct {
	*options
	lim    *ratelimit.Limiter
	key    KeyFunc
	writer fieldWriter
}

// wrap puts the middleware before next.
func (m *middleware) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if m.skip != nil && m.skip(r) {
			next.ServeHTTP(w, r)
			return
		}
		key, err := m.key(r)
		if action, reason := m.judge(key, err); reason != nil {
			if action == Pass {
				next.ServeHTTP(w, r)
			} else {
				m.onRefused(w, r, reason)
			}
			return
		}
		units := uint64(1)
		if m.cost != nil {
			units = m.cost(r)
		}
		d := m.lim.Check(key, units)
		if !d.DryRun() {
			m.writer.write(w.Header(), d, func(n uint64) time.Duration { return m.lim.WaitFor(key, n) })
		}
		if !d.Allowed() {
			m.onLimited(w, r, d)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), decisionKey{}, d)))
	})
}

// judge returns why a request cannot be counted under its key, nil if it can, and
// what to do with it then.
func (m *middleware) judge(key string, err error) (action Action, reason error) {
	switch {
	case err != nil:
		return m.keyErrors, err
	case key == "":
		return m.emptyKeys, ErrEmptyKey
	default:
		return Pass, nil
	}
}

// decisionKey is the key of a request's decision in its context.
type decisionKey struct{}

// Decision returns the decision by which a request reached its handler: of several
// middlewares that of the innermost. ok is false if none asked a limiter: the
// request was skipped, or passed without a key.
func Decision(ctx context.Context) (d ratelimit.Decision, ok bool) {
	d, ok = ctx.Value(decisionKey{}).(ratelimit.Decision)
	return d, ok
}
