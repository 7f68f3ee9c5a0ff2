package httplimit

// This file tells a client where it stands: the fields of
// draft-ietf-httpapi-ratelimit-headers-11 (May 2026), the older X-RateLimit-*, and
// Retry-After.

import (
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
	// q is the quota in units per window of w seconds, r what is available now.
	// t is the window, so that r / t never exceeds the policy's rate; in a limited
	// response it is what Retry-After says, and missing where that is missing.
	RateLimit Fields = 1 << iota
	// XRateLimit is X-RateLimit-Limit (the quota), X-RateLimit-Remaining (what is
	// available) and X-RateLimit-Reset (the seconds until all of it is).
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
	window string // in seconds, rounded up
}

func newFieldWriter(f Fields, policy, unit string, window time.Duration) fieldWriter {
	w := fieldWriter{fields: f, name: quoted(policy), window: strconv.FormatInt(seconds(window), 10)}
	if unit != "" {
		w.suffix = ";qu=" + quoted(unit)
	}
	w.suffix += ";w=" + w.window
	return w
}

// write sets the fields for a decision. RateLimit fields are lists: what outer
// middleware wrote stays, unless this decision is the one that refuses; it then
// speaks alone, for its Retry-After must not fall short of another's window.
func (f *fieldWriter) write(h http.Header, d ratelimit.Decision) {
	limited := d.Verdict() == ratelimit.VerdictLimited
	retry := ""
	if after := d.RetryAfter(); limited && after != ratelimit.Never {
		retry = strconv.FormatInt(seconds(after), 10) // at least 1: a limited request has to wait
		h[fieldRetryAfter] = []string{retry}
	}
	quota, available := integer(below(d.Threshold())), integer(below(d.Remaining()))
	if f.fields&RateLimit != 0 {
		policy := f.name + ";q=" + quota + f.suffix
		limit := f.name + ";r=" + available
		switch {
		case !limited:
			limit += ";t=" + f.window
		case retry != "":
			limit += ";t=" + retry
		}
		if limited {
			delete(h, fieldPolicy)
			delete(h, fieldRateLimit)
		}
		h[fieldPolicy] = append(h[fieldPolicy], policy)
		h[fieldRateLimit] = append(h[fieldRateLimit], limit)
	}
	if f.fields&XRateLimit != 0 {
		h[fieldXLimit] = []string{quota}
		h[fieldXRemaining] = []string{available}
		h[fieldXReset] = []string{strconv.FormatInt(seconds(d.Reset()), 10)}
	}
}

// below is what passes of n units: a level that reaches the threshold is limited.
func below(n uint64) uint64 { return n - min(n, 1) }

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
