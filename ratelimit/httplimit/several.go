package httplimit

// This file is about several limits of one request: all are counted, or none; each is a
// policy of its own, and those that refuse speak.

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/hanzoai/limiters/internal/group"
	"github.com/hanzoai/limiters/internal/quota"
	"github.com/hanzoai/limiters/ratelimit"
)

// A Limit is one of several that a request has to pass.
type Limit struct {
	Limiter *ratelimit.Limiter
	Key     KeyFunc // under what the request counts
	// Policy names the limit in RateLimit fields and in the body of a 429, and Unit what it
	// counts, as [WithPolicy] says. Policies of one middleware have different names.
	Policy, Unit string
	// Cost is what a request counts as; nil: as [WithCost] says, else 1.
	Cost func(r *http.Request) uint64
	// Fleet has the limit decided by the fleet's counters at this moment, for a round trip to
	// Redis, as [ratelimit.Limiter.CheckFleet] does. Where Redis cannot be asked this node decides.
	Fleet bool
}

// NewAll is [New] for several limits: the user's, the tenant's and everybody's, or two windows of
// one user. A request passes if all let it pass, and counts with all or none of them, as
// [ratelimit.Limiter.CheckAll] does; the fleet is asked last, and what it granted is given back
// if another of its limits refuses. A request without one of its keys counts with none.
//
// Every limit writes an item of its own into the RateLimit fields. Those that refuse speak
// alone, Retry-After being the longest of their waits; [WithLimited] is given the decision with
// that wait. A limiter in a dry run decides nothing and says nothing. [WithPolicy] is for New:
// here each limit has a name. The error names the limit that is wrong.
func NewAll(limits []Limit, opts ...Option) (func(http.Handler) http.Handler, error) {
	o, err := collect(opts)
	if err != nil {
		return nil, err
	}
	if len(limits) == 0 {
		return nil, errors.New("httplimit: NewAll needs a limit")
	}
	var errs []error
	names := map[string]bool{}
	for i, l := range limits {
		switch {
		case l.Limiter == nil || l.Key == nil:
			errs = append(errs, fmt.Errorf("httplimit: limit %d (%q) needs a limiter and a key function", i, l.Policy))
		case names[l.Policy]:
			errs = append(errs, fmt.Errorf("httplimit: limit %d: the policy %q is another limit's, too", i, l.Policy))
		default:
			if err := checkPolicy(l.Policy, l.Unit); err != nil {
				errs = append(errs, fmt.Errorf("httplimit: limit %d: %w", i, err))
			}
		}
		names[l.Policy] = true
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return middlewareOf(slices.Clone(limits), o), nil
}

// checkPolicy names what is wrong with a policy.
func checkPolicy(name, unit string) error {
	if name == "" || !quota.Printable(name) {
		return fmt.Errorf("policy: name %q is empty or not printable ASCII", name)
	}
	if !quota.Printable(unit) {
		return fmt.Errorf("policy: unit %q is not printable ASCII", unit)
	}
	return nil
}

// announce writes the fields of all limits, or of those alone that refuse.
func (m *middleware) announce(h http.Header, items []group.Item, ds ratelimit.Decisions) {
	refused := !ds.Allowed()
	if refused {
		m.silence(h)
		delete(h, fieldRetryAfter)
	}
	for i := range ds {
		if d := &ds[i]; !d.DryRun() && (!refused || !d.Allowed()) {
			m.writers[i].write(h, *d, func(n uint64) time.Duration { return m.limits[i].Limiter.WaitFor(items[i].Key, n) })
		}
	}
	if wait := ds.RetryAfter(); refused && wait == ratelimit.Never {
		delete(h, fieldRetryAfter)
	}
}

// refuse answers a request that a limit refuses.
func (m *middleware) refuse(w http.ResponseWriter, r *http.Request, ds ratelimit.Decisions) {
	var violated []string
	longest, body := -1, []byte(nil)
	for i := range ds {
		if ds[i].Allowed() {
			continue
		}
		violated, body = append(violated, m.limits[i].Policy), m.bodies[i]
		if longest < 0 || ds[i].RetryAfter() > ds[longest].RetryAfter() {
			longest = i
		}
	}
	if m.onLimited != nil {
		m.onLimited(w, r, ds[longest])
		return
	}
	if len(violated) > 1 {
		body = limitedBody(violated...)
	}
	answer(w, http.StatusTooManyRequests, body)
}
