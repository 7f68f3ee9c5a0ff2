package httplimit

// This file tells a client where it stands: the fields of
// draft-ietf-httpapi-ratelimit-headers-11 (May 2026), the older X-RateLimit-*, and
// Retry-After.

import (
	"math/bits"
	"net/http"
	"strconv"
	"strings"
	"time"

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

// maxInteger is the greatest integer that a structured field can hold (RFC 9651).
const maxInteger = 999_999_999_999_999

// A fieldWriter is immutable.
type fieldWriter struct {
	fields Fields
	name   string // the policy's, as a structured field's string
	suffix string // of RateLimit-Policy, after the quota
	window time.Duration
	policy int64  // the window that is announced, in seconds
	spare  uint64 // how many units of a threshold never pass: 1, or 0 if it is inclusive
}

func newFieldWriter(f Fields, policy, unit string, cfg ratelimit.Config) fieldWriter {
	w := fieldWriter{fields: f, name: quoted(policy), window: cfg.WindowInterval, policy: seconds(cfg.WindowInterval)}
	if !cfg.Inclusive {
		w.spare = 1
	}
	if unit != "" {
		w.suffix = ";qu=" + quoted(unit)
	}
	w.suffix += ";w=" + strconv.FormatInt(w.policy, 10)
	return w
}

// write sets the fields for a decision; waitFor says when other requests of the same key
// would pass. RateLimit fields are lists: what outer middleware wrote stays, unless this
// decision is the one that refuses; it then speaks alone, for its Retry-After must not
// fall short of another's t.
func (f *fieldWriter) write(h http.Header, d ratelimit.Decision, waitFor func(n uint64) time.Duration) {
	limited := d.Verdict() == ratelimit.VerdictLimited
	SetRetryAfter(h, d)
	if f.fields == 0 {
		return
	}
	quota := f.passes(d.Threshold())
	available, more := f.standing(d, waitFor)
	if f.fields&RateLimit != 0 {
		if limited {
			delete(h, fieldPolicy)
			delete(h, fieldRateLimit)
		}
		limit := f.name + ";r=" + integer(available)
		if more != ratelimit.Never {
			limit += ";t=" + strconv.FormatInt(seconds(more), 10)
		}
		h[fieldPolicy] = append(h[fieldPolicy], f.name+";q="+integer(f.perPolicy(quota))+f.suffix)
		h[fieldRateLimit] = append(h[fieldRateLimit], limit)
	}
	if f.fields&XRateLimit != 0 {
		if reset := seconds(d.Reset()); limited || tighter(h, available, reset) {
			h[fieldXLimit] = []string{integer(quota)}
			h[fieldXRemaining] = []string{integer(available)}
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
		h[fieldRetryAfter] = []string{strconv.FormatInt(max(1, seconds(wait)), 10)}
	}
}

// passes is how many of n units below a threshold can pass.
func (f *fieldWriter) passes(n uint64) uint64 { return n - min(n, f.spare) }

// standing is how many units would pass now in one request, and the wait after which
// more would: not after a limited request itself would. Where bursts are bounded it is
// what fits into one, though an empty bucket lets a greater request pass.
func (f *fieldWriter) standing(d ratelimit.Decision, waitFor func(n uint64) time.Duration) (available uint64, more time.Duration) {
	available = f.passes(d.Remaining())
	more = waitFor(available + 1)
	if more == 0 && f.spare > 0 { // one unit too many was taken off: the level is not whole
		available++
		more = waitFor(available + 1)
	}
	if more == 0 {
		return available, ratelimit.Never
	}
	if d.Verdict() == ratelimit.VerdictLimited {
		more = min(more, d.RetryAfter())
	}
	return available, more
}

// perPolicy is a quota per window, as one per announced window, rounded down.
func (f *fieldWriter) perPolicy(quota uint64) uint64 {
	announced := time.Duration(f.policy) * time.Second // at most a second longer than the window
	high, low := bits.Mul64(min(quota, maxInteger), uint64(announced))
	per, _ := bits.Div64(high, low, uint64(f.window))
	return per
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

// integer returns n as a structured field's integer, the greatest there is if n is
// greater still.
func integer(n uint64) string { return strconv.FormatUint(min(n, maxInteger), 10) }

// seconds returns d in seconds, rounded up: a client that comes back a fraction of a
// second early is limited again.
func seconds(d time.Duration) int64 {
	s := int64(d / time.Second)
	if d%time.Second > 0 {
		s++
	}
	return s
}

// printable reports whether a structured field's string can hold s.
func printable(s string) bool {
	return strings.IndexFunc(s, func(c rune) bool { return c < ' ' || c > '~' }) < 0
}

// quoted returns s as a structured field's string. It requires printable(s).
func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
