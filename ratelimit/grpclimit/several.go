package grpclimit

// This file is about several limits of one call: all are counted, or none.

import (
	"context"
	"errors"
	"fmt"

	"github.com/hanzoai/limiters/internal/quota"
	"github.com/hanzoai/limiters/ratelimit"
)

// A Limit is one of several that a call has to pass.
type Limit struct {
	Limiter *ratelimit.Limiter
	Key     KeyFunc // under what the call counts
	// Policy names the limit in the trailer ratelimit-policy and in the status of a limited call,
	// and Unit what it counts; both are printable ASCII. Policies of one interceptor have
	// different names. No unit means requests.
	Policy, Unit string
	// Cost is what a call counts as; nil: as [WithCost] says, else 1.
	Cost func(ctx context.Context, call Call) uint64
	// Fleet has the limit decided by the fleet's counters at this moment, for a round trip to
	// Redis, as [ratelimit.Limiter.CheckFleet] does. Where Redis cannot be asked this node decides.
	Fleet bool
}

// NewAll is [New] for several limits: the user's, the tenant's and everybody's, or two windows of
// one user. A call passes if all let it pass, and counts with all or none of them, as
// [ratelimit.Limiter.CheckAll] does; the fleet is asked last, and what it granted is given back
// if another of its limits refuses. A call without one of its keys counts with none.
//
// Those that refuse speak alone, RetryInfo being the longest of their waits; [WithLimited] is
// given the decision with that wait. A limiter in a dry run decides nothing and says nothing. The
// error names the limit that is wrong.
func NewAll(limits []Limit, opts ...Option) (*Interceptor, error) {
	if len(limits) == 0 {
		return nil, errors.New("grpclimit: NewAll needs a limit")
	}
	var errs []error
	names := map[string]bool{}
	for i, l := range limits {
		switch {
		case l.Limiter == nil || l.Key == nil:
			errs = append(errs, fmt.Errorf("grpclimit: limit %d (%q) needs a limiter and a key function", i, l.Policy))
		case names[l.Policy]:
			errs = append(errs, fmt.Errorf("grpclimit: limit %d: the policy %q is another limit's, too", i, l.Policy))
		case l.Policy == "" || !quota.Printable(l.Policy):
			errs = append(errs, fmt.Errorf("grpclimit: limit %d: the policy's name %q is empty or not printable ASCII", i, l.Policy))
		case !quota.Printable(l.Unit):
			errs = append(errs, fmt.Errorf("grpclimit: limit %d: the unit %q is not printable ASCII", i, l.Unit))
		}
		names[l.Policy] = true
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return interceptorOf(append([]Limit(nil), limits...), opts)
}

// interceptorOf returns an interceptor that asks about limits, which are valid and its own.
func interceptorOf(limits []Limit, opts []Option) (*Interceptor, error) {
	o := &options{}
	for _, opt := range opts {
		opt(o)
	}
	for _, a := range []Action{o.keyErrors, o.emptyKeys} {
		if a != Pass && a != Refuse {
			return nil, fmt.Errorf("grpclimit: action %d is neither Pass nor Refuse", a)
		}
	}
	i := &Interceptor{options: o, limits: limits}
	for at := range limits {
		l := &limits[at]
		if l.Cost == nil {
			l.Cost = o.cost
		}
		i.policies = append(i.policies, quota.New(l.Policy, l.Unit, l.Limiter.Config()))
	}
	return i, nil
}
