// Package quota says where a client stands with a limit, in the words of
// draft-ietf-httpapi-ratelimit-headers-11: for the fields of HTTP responses and the metadata
// of gRPC.
package quota

import (
	"math/bits"
	"strconv"
	"strings"
	"time"

	"github.com/hanzoai/limiters/ratelimit"
)

// maxInteger is the greatest integer that a structured field can hold (RFC 9651).
const maxInteger = 999_999_999_999_999

// A Policy is a limit as clients know it. It is immutable.
type Policy struct {
	name   string // as a structured field's string
	suffix string // of RateLimit-Policy, after the quota
	window time.Duration
	whole  int64  // the window that is announced, in seconds
	spare  uint64 // how many units of a threshold never pass: 1, or 0 if it is inclusive
}

// New returns the policy of a limiter with this configuration. Name and unit are printable; a
// unit that is empty is not announced.
func New(name, unit string, cfg ratelimit.Config) Policy {
	p := Policy{name: quoted(name), window: cfg.WindowInterval, whole: Seconds(cfg.WindowInterval)}
	if !cfg.Inclusive {
		p.spare = 1
	}
	if unit != "" {
		p.suffix = ";qu=" + quoted(unit)
	}
	p.suffix += ";w=" + strconv.FormatInt(p.whole, 10)
	return p
}

// Item is the policy's item of RateLimit-Policy, for a threshold.
func (p *Policy) Item(threshold uint64) string {
	return p.name + ";q=" + Integer(p.perPolicy(p.Passes(threshold))) + p.suffix
}

// Standing is the policy's item of RateLimit: how many units are available, and when more are,
// [ratelimit.Never] if no wait makes more available.
func (p *Policy) Standing(available uint64, more time.Duration) string {
	item := p.name + ";r=" + Integer(available)
	if more != ratelimit.Never {
		item += ";t=" + strconv.FormatInt(Seconds(more), 10)
	}
	return item
}

// Passes is how many of n units below a threshold can pass.
func (p *Policy) Passes(n uint64) uint64 { return n - min(n, p.spare) }

// Available is how many units would pass now in one request, and the wait after which
// more would: not after a limited request itself would. Where bursts are bounded it is
// what fits into one, though an empty bucket lets a greater request pass.
func (p *Policy) Available(d ratelimit.Decision, waitFor func(n uint64) time.Duration) (available uint64, more time.Duration) {
	available = p.Passes(d.Remaining())
	more = waitFor(available + 1)
	if more == 0 && p.spare > 0 { // one unit too many was taken off: the level is not whole
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
func (p *Policy) perPolicy(quota uint64) uint64 {
	announced := time.Duration(p.whole) * time.Second // at most a second longer than the window
	high, low := bits.Mul64(min(quota, maxInteger), uint64(announced))
	per, _ := bits.Div64(high, low, uint64(p.window))
	return per
}

// Integer returns n as a structured field's integer, the greatest there is if n is
// greater still.
func Integer(n uint64) string { return strconv.FormatUint(min(n, maxInteger), 10) }

// Seconds returns d in seconds, rounded up: a client that comes back a fraction of a
// second early is limited again.
func Seconds(d time.Duration) int64 {
	s := int64(d / time.Second)
	if d%time.Second > 0 {
		s++
	}
	return s
}

// Printable reports whether a structured field's string can hold s.
func Printable(s string) bool {
	return strings.IndexFunc(s, func(c rune) bool { return c < ' ' || c > '~' }) < 0
}

// quoted returns s as a structured field's string. It requires Printable(s).
func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
