package ratelimit

// This file decides by a threshold that comes with the question.

import "context"

// CheckThreshold is [Limiter.Check] by the caller's threshold, in units per window, instead
// of that of the configuration, the overrides or the resolver: for callers who learn it with
// each request, from a token or a rule that they matched. 0 blocks every unit. The
// Decision is [Decision.Custom].
//
// Threshold and count are apart: calls with other thresholds, and those of Check, count in the
// same entity. Until its next check the entity is synced by the threshold asked last, so
// callers of one key should agree on it. It costs what Check costs, allocates nothing for a
// known key, and is safe for concurrent use, during and after Close too.
func (l *Limiter) CheckThreshold(key string, n, threshold uint64) (d Decision) {
	r := l.read()
	l.decide(&d, key, &request{units: units(n), epoch: r.epoch, resolved: true, threshold: threshold, custom: true}, &r)
	return d
}

// CheckFleetThreshold is [Limiter.CheckFleet] by the caller's threshold, as [Limiter.CheckThreshold]
// is Check. Calls of one key that share a script are decided by the threshold asked last.
func (l *Limiter) CheckFleetThreshold(ctx context.Context, key string, n, threshold uint64) (Decision, error) {
	d, _, err := l.askFleet(ctx, key, n, told{threshold: threshold, told: true})
	return d, err
}

// A told threshold comes with the question; the zero value is none.
type told struct {
	threshold uint64
	told      bool
}

// tell has the check be decided by the threshold, if there is one.
func (t told) tell(c *check) {
	if t.told {
		c.threshold, c.custom, c.resolved = t.threshold, true, true
	}
}
