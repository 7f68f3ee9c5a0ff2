package httplimit

import (
	"math"
	"testing"
	"time"

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
		fieldPolicy: {`"default";q=3;w=60`}, fieldRateLimit: {`"default";r=2;t=60`},
	})
	equal(t, "second", fields(ask(older, "ann")), map[string][]string{
		fieldXLimit: {"3"}, fieldXRemaining: {"1"}, fieldXReset: {"120"},
	})
	c.Advance(1) // the wait is a fraction of a second short of two windows
	equal(t, "third", fields(ask(both, "ann")), map[string][]string{
		fieldPolicy:    {`"a \"b\" \\c";q=3;qu="content-bytes";w=60`},
		fieldRateLimit: {`"a \"b\" \\c";r=0;t=60`},
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
			equal(t, "remaining", r.Header.Get("X-RateLimit-Remaining"), integer(uint64(left)))
		}
		equal(t, "status of one more", ask(h, "ann").StatusCode, 429)
	}
}

// Of several limits on one route each tells where the client stands with it; the
// one that refuses speaks alone.
func TestNestedMiddleware(t *testing.T) {
	t.Parallel()
	outer, _ := newLimiter(t, func(cfg *ratelimit.Config) { cfg.GlobalThreshold = 10; cfg.WindowInterval = time.Hour })
	inner, _ := newLimiter(t, func(cfg *ratelimit.Config) { cfg.GlobalThreshold = 2 })
	all := WithFields(RateLimit | XRateLimit)
	h := newMiddleware(t, outer, WithPolicy("hourly", ""), all)(newMiddleware(t, inner, WithPolicy("burst", ""), all)(ok))
	equal(t, "allowed", fields(ask(h, "ann")), map[string][]string{
		fieldPolicy:    {`"hourly";q=9;w=3600`, `"burst";q=1;w=60`},
		fieldRateLimit: {`"hourly";r=8;t=3600`, `"burst";r=0;t=60`},
		fieldXLimit:    {"1"}, fieldXRemaining: {"0"}, fieldXReset: {"120"},
	})
	r := ask(h, "ann")
	retry := r.Header.Get("Retry-After")
	equal(t, "status", r.StatusCode, 429)
	equal(t, "limited", fields(r), map[string][]string{
		fieldRetryAfter: {retry}, fieldPolicy: {`"burst";q=1;w=60`}, fieldRateLimit: {`"burst";r=0;t=` + retry},
		fieldXLimit: {"1"}, fieldXRemaining: {"0"}, fieldXReset: {"120"},
	})
}

func TestNumbersOfFields(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		d    time.Duration
		want int64
	}{
		{0, 0}, {1, 1}, {time.Second - 1, 1}, {time.Second, 1}, {time.Second + 1, 2}, {time.Hour, 3600}, {math.MaxInt64, 9223372037},
	} {
		equal(t, row.d.String(), seconds(row.d), row.want)
	}
	for _, row := range []struct {
		n    uint64
		want string
	}{
		{0, "0"}, {1, "1"}, {maxInteger, "999999999999999"}, {maxInteger + 1, "999999999999999"}, {math.MaxUint64, "999999999999999"},
	} {
		equal(t, row.want, integer(row.n), row.want)
	}
	equal(t, "below", []uint64{below(0), below(1), below(math.MaxUint64)}, []uint64{0, 0, math.MaxUint64 - 1})
	for _, text := range []string{"\x1f", "\x7f", "é", "\n"} {
		if printable(text) {
			t.Errorf("printable(%q)", text)
		}
	}
	if !printable(" ~") {
		t.Error("the ends of printable ASCII are not printable")
	}
}

// A sub-second window cannot be said in whole seconds; 0 would be no window at all.
func TestShortWindowIsOneSecond(t *testing.T) {
	t.Parallel()
	lim, _ := newLimiter(t, func(cfg *ratelimit.Config) { cfg.WindowInterval = 100 * time.Millisecond })
	equal(t, "policy", ask(newMiddleware(t, lim)(ok), "ann").Header.Get("RateLimit-Policy"), `"default";q=3;w=1`)
}
