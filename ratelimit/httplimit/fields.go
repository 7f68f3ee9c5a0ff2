package httplimit

// This file tells a client where it stands: the fields of
// draft-ietf-httpapi-ratelimit-headers-11 (May 2026), the older X-RateLimit-*, and
// Retry-After.

import (
	"net/http"
	"strconv"
	"time"

	"github.com/hanzoai/limiters/internal/quota"
	"github.com/hanzoai/limiters/ratelimit"
)

// Fields says which fields a response carries. It is a set: values may be combined
// by |.
type Fields uint8

const (
	// RateLimit is what draft-ietf-httpapi-ratelimit-headers-11 defines:
	//
	//	RateLimit-Policy: "default";q=99;w=60
	//	RateLimit: "default";r=42;t=60
	//
	// q is the quota in units per w seconds, r what is available now: what a
	// request may cost and pass. t is how long no more than r is available, in
	// seconds rounded up: after it more is. It is missing where no wait makes more
	// available: the whole quota is, or there is none. t is never after Retry-After.
	//
	// w is the window. The draft knows whole seconds only, so a window that is not
	// of whole seconds is rounded up, and q grows with it.
	RateLimit Fields = 1 << iota
	// XRateLimit is X-RateLimit-Limit (the quota per window, of whatever length),
	// X-RateLimit-Remaining (what is available) and X-RateLimit-Reset (the seconds
	// until all of it is). Of nested middleware the limit is shown of which least
	// is available, and of equal ones that which takes longer to reset.
	XRateLimit
)

// The fields by their canonical names, so that setting them costs no conversion.
const (
	fieldRetryAfter = "Retry-After"
	fieldPolicy     = "Ratelimit-Policy"
	fieldRateLimit  = "Ratelimit"
	fieldXLimit     = "X-Ratelimit-Limit"
	fieldXRemaining = "X-Ratelimit-Remaining"
	fieldXReset     = "X-Ratelimit-Reset"
)

// A fieldWriter is immutable.
type fieldWriter struct {
	quota.Policy
	fields Fields
}

func newFieldWriter(f Fields, policy, unit string, cfg ratelimit.Config) fieldWriter {
	return fieldWriter{fields: f, Policy: quota.New(policy, unit, cfg)}
}

// silence takes back what outer middleware wrote: a limit that refuses speaks alone, for
// its Retry-After must not fall short of another's t.
func (m *middleware) silence(h http.Header) {
	if m.fields&RateLimit != 0 {
		delete(h, fieldPolicy)
		delete(h, fieldRateLimit)
	}
	if m.fields&XRateLimit != 0 {
		delete(h, fieldXLimit)
		delete(h, fieldXRemaining)
		delete(h, fieldXReset)
	}
}

// write adds the fields for a decision; waitFor says when other requests of the same key
// would pass. RateLimit fields are lists, to which it appends; of what has room for one limit
// the tightest stays, of Retry-After the longest.
func (f *fieldWriter) write(h http.Header, d ratelimit.Decision, waitFor func(n uint64) time.Duration) {
	if d.Verdict() == ratelimit.VerdictLimited {
		shown, err := strconv.ParseInt(h.Get(fieldRetryAfter), 10, 64)
		if err != nil || shown < max(1, quota.Seconds(d.RetryAfter())) {
			SetRetryAfter(h, d)
		}
	}
	if f.fields == 0 {
		return
	}
	available, more := f.Available(d, waitFor)
	if f.fields&RateLimit != 0 {
		h[fieldPolicy] = append(h[fieldPolicy], f.Item(d.Threshold()))
		h[fieldRateLimit] = append(h[fieldRateLimit], f.Standing(available, more))
	}
	if f.fields&XRateLimit != 0 {
		if reset := quota.Seconds(d.Reset()); tighter(h, available, reset) {
			h[fieldXLimit] = []string{quota.Integer(f.Passes(d.Threshold()))}
			h[fieldXRemaining] = []string{quota.Integer(available)}
			h[fieldXReset] = []string{strconv.FormatInt(reset, 10)}
		}
	}
}

// SetRetryAfter sets Retry-After to what a limited decision has the client wait, in
// whole seconds, rounded up. It does nothing if the decision is not limited, or if no
// wait helps. It is for handlers that call a limiter themselves; the middleware does it.
func SetRetryAfter(h http.Header, d ratelimit.Decision) {
	if d.Verdict() != ratelimit.VerdictLimited {
		return
	}
	if wait := d.RetryAfter(); wait != ratelimit.Never {
		h[fieldRetryAfter] = []string{strconv.FormatInt(max(1, quota.Seconds(wait)), 10)}
	}
}

// tighter reports whether a limit is tighter than the one that outer middleware wrote
// X-RateLimit-* for, if any did.
func tighter(h http.Header, available uint64, reset int64) bool {
	shown, err := strconv.ParseUint(h.Get(fieldXRemaining), 10, 64)
	if err != nil || available != shown {
		return err != nil || available < shown
	}
	shownReset, err := strconv.ParseInt(h.Get(fieldXReset), 10, 64)
	return err != nil || reset > shownReset
}
