package httplimit

// This file is the way of a request through the middleware.

import (
	"context"
	"errors"
	"net/http"

	"github.com/hanzoai/limiters/internal/group"
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
	return middlewareOf([]Limit{{Limiter: lim, Key: key, Policy: o.policy, Unit: o.unit}}, o), nil
}

func middlewareOf(limits []Limit, o *options) func(http.Handler) http.Handler {
	m := &middleware{options: o, limits: limits}
	for i := range limits {
		l := &m.limits[i]
		if l.Cost == nil {
			l.Cost = o.cost
		}
		m.writers = append(m.writers, newFieldWriter(o.fields, l.Policy, l.Unit, l.Limiter.Config()))
		m.bodies = append(m.bodies, limitedBody(l.Policy))
	}
	return m.wrap
}

// A middleware is immutable.
type middleware struct {
	*options
	limits  []Limit
	writers []fieldWriter // of the limits
	bodies  [][]byte      // of the limits, when each refuses alone
}

// wrap puts the middleware before next.
func (m *middleware) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if m.skip != nil && m.skip(r) {
			next.ServeHTTP(w, r)
			return
		}
		items := make([]group.Item, 0, 8)
		for i := range m.limits {
			l := &m.limits[i]
			key, err := l.Key(r)
			if action, reason := m.judge(key, err); reason != nil && action == Refuse {
				if err == nil {
					reason = emptyKey(l.Key, r)
				}
				m.onRefused(w, r, reason)
				return
			} else if reason != nil {
				next.ServeHTTP(w, r)
				return
			}
			units := uint64(1)
			if l.Cost != nil {
				units = l.Cost(r)
			}
			items = append(items, group.Item{Item: ratelimit.Item{Key: key, Units: units, Limiter: l.Limiter}, Fleet: l.Fleet})
		}
		ds := m.decide(r.Context(), items)
		if !m.dryRun {
			m.announce(w.Header(), items, ds)
			if !ds.Allowed() {
				m.refuse(w, r, ds)
				return
			}
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), decisionKey{}, ds)))
	})
}

// decide answers the items. One that this node decides alone is spared what a group costs.
func (m *middleware) decide(ctx context.Context, items []group.Item) ratelimit.Decisions {
	if len(items) == 1 && !items[0].Fleet {
		return ratelimit.Decisions{items[0].Limiter.Check(items[0].Key, items[0].Units)}
	}
	return group.Decide(ctx, items)
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

// decisionKey is the key of a request's decisions in its context.
type decisionKey struct{}

// Decision returns the decision by which a request reached its handler: of several
// middlewares that of the innermost, of several limits that of which least is available. ok
// is false if none asked a limiter: the request was skipped, or passed without a key.
func Decision(ctx context.Context) (d ratelimit.Decision, ok bool) {
	for _, other := range AllDecisions(ctx) {
		if !ok || other.Remaining() < d.Remaining() {
			d, ok = other, true
		}
	}
	return d, ok
}

// AllDecisions returns the decisions by which a request reached its handler: of several
// middlewares those of the innermost, one for each of its limits, in their order. They are
// the caller's to read, not to change; none if no limiter was asked.
func AllDecisions(ctx context.Context) ratelimit.Decisions {
	ds, _ := ctx.Value(decisionKey{}).(ratelimit.Decisions)
	return ds
}
