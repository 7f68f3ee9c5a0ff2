package httplimit

import (
	"strconv"
	"testing"

	"github.com/hanzoai/limiters/ratelimit"
)

func TestFields(t *testing.T) {
	t.Parallel()
	lim, c := newLimiter(t, nil)
	ietf := newMiddleware(t, lim)(ok)
	older := newMiddleware(t, lim, WithFields(XRateLimit))(ok)
	both := newMiddleware(t, lim, WithFields(RateLimit|XRateLimit), WithPolicy(`a "b" \c`, "content-bytes"))(ok)
	none := newMiddleware(t, lim, WithFields(0))(ok)
	equal(t, "first", fields(ask(ietf, "ann")), map[string][]string{
		fieldPolicy: {`"default";q=3;w=60`}, fieldRateLimit: {`"default";r=2;t=` + whole(lim.WaitFor("ann", 3))},
	})
	equal(t, "second", fields(ask(older, "ann")), map[string][]string{
		fieldXLimit: {"3"}, fieldXRemaining: {"1"}, fieldXReset: {"120"},
	})
	c.Advance(1) // Reset is a fraction of a second short of two windows
	equal(t, "third", fields(ask(both, "ann")), map[string][]string{
		fieldPolicy:    {`"a \"b\" \\c";q=3;qu="content-bytes";w=60`},
		fieldRateLimit: {`"a \"b\" \\c";r=0;t=` + whole(lim.WaitFor("ann", 1))},
		fieldXLimit:    {"3"}, fieldXRemaining: {"0"}, fieldXReset: {"120"},
	})
	limited := fields(ask(none, "ann"))
	if len(limited) != 1 || limited[fieldRetryAfter] == nil {
		t.Errorf("limited, without fields: %v, want Retry-After alone", limited)
	}
	retry := limited[fieldRetryAfter][0]
	equal(t, "limited", fields(ask(ietf, "ann")), map[string][]string{
		fieldRetryAfter: {retry}, fieldPolicy: {`"default";q=3;w=60`}, fieldRateLimit: {`"default";r=0;t=` + retry},
	})
}

// A client that uses exactly what it was told is available passes, and one more is
// limited.
func TestAvailableIsWhatPasses(t *testing.T) {
	t.Parallel()
	for _, threshold := range []uint64{1, 2, 3, 10} {
		lim, _ := newLimiter(t, func(cfg *ratelimit.Config) {
			cfg.GlobalThreshold = threshold
			cfg.StrictFirstContact = true
		})
		h := newMiddleware(t, lim, WithFields(XRateLimit))(ok)
		for left := int64(threshold) - 2; left >= 0; left-- {
			r := ask(h, "ann")
			equal(t, "status", r.StatusCode, 200)
			equal(t, "remaining", r.Header.Get("X-RateLimit-Remaining"), strconv.FormatInt(left, 10))
		}
		equal(t, "status of one more", ask(h, "ann").StatusCode, 429)
	}
}
