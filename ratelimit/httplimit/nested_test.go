package httplimit

// This file tests middleware around middleware.

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/hanzoai/limiters/ratelimit"
)

// Of several limits on one route each tells where the client stands with it; the
// one that refuses speaks alone.
func TestNestedMiddleware(t *testing.T) {
	t.Parallel()
	outer, c := newLimiter(t, func(cfg *ratelimit.Config) { cfg.GlobalThreshold = 10; cfg.WindowInterval = time.Hour })
	inner, d := newLimiter(t, func(cfg *ratelimit.Config) { cfg.GlobalThreshold = 2 })
	c.Advance(1)
	d.Advance(1)
	all := WithFields(RateLimit | XRateLimit)
	h := newMiddleware(t, outer, WithPolicy("hourly", ""), all)(newMiddleware(t, inner, WithPolicy("burst", ""), all)(ok))
	equal(t, "allowed", fields(ask(h, "ann")), map[string][]string{
		fieldPolicy:    {`"hourly";q=9;w=3600`, `"burst";q=1;w=60`},
		fieldRateLimit: {`"hourly";r=8;t=` + whole(outer.WaitFor("ann", 9)), `"burst";r=0;t=` + whole(inner.WaitFor("ann", 1))},
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

// X-RateLimit-* have room for one limit: the one that the client meets first, wherever
// its middleware stands.
func TestOfNestedMiddlewareTheTightestLimitIsShown(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		thresholds []uint64 // outermost first; windows of as many minutes as the place
		requests   int
		want       string // limit, remaining
	}{
		{[]uint64{10, 20}, 1, "9 8"},
		{[]uint64{20, 10}, 1, "9 8"},
		{[]uint64{30, 10, 20}, 3, "9 6"},
		{[]uint64{10, 10}, 2, "9 7"},
		{[]uint64{100, 10, 3}, 2, "2 0"},
		{[]uint64{3, 10, 100}, 2, "2 0"},
		{[]uint64{3, 10, 100}, 3, "2 0"}, // the outermost refuses
		{[]uint64{100, 10, 3}, 3, "2 0"}, // the innermost does
	} {
		var h http.Handler = ok
		for i := len(row.thresholds) - 1; i >= 0; i-- {
			lim, _ := newLimiter(t, func(cfg *ratelimit.Config) {
				cfg.GlobalThreshold, cfg.WindowInterval = row.thresholds[i], time.Duration(i+1)*time.Minute
			})
			h = newMiddleware(t, lim, WithFields(XRateLimit))(h)
		}
		var r *http.Response
		for range row.requests {
			r = ask(h, "ann")
		}
		got := r.Header.Get("X-RateLimit-Limit") + " " + r.Header.Get("X-RateLimit-Remaining")
		equal(t, fmt.Sprint(row.thresholds, " after ", row.requests), got, row.want)
	}
}

// Of limits with as much left the one that takes longer to reset is shown.
func TestOfEqualLimitsTheSlowerIsShown(t *testing.T) {
	t.Parallel()
	for _, windows := range [][]time.Duration{{time.Minute, time.Hour}, {time.Hour, time.Minute}} {
		var h http.Handler = ok
		for _, window := range windows {
			lim, _ := newLimiter(t, func(cfg *ratelimit.Config) { cfg.WindowInterval = window })
			h = newMiddleware(t, lim, WithFields(XRateLimit))(h)
		}
		equal(t, fmt.Sprint(windows), ask(h, "ann").Header.Get("X-RateLimit-Reset"), "7200")
	}
}

// What a handler before the middleware wrote is no limit of ours, unless it is a number.
func TestFieldsThatAreNoNumbersAreReplaced(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ remaining, reset, want string }{
		{"many", "60", "2"},
		{"", "", "2"},
		{"-1", "60", "2"},
		{"2", "later", "2"},
		{"1", "60", "1"},
	} {
		lim, _ := newLimiter(t, nil)
		inner := newMiddleware(t, lim, WithFields(XRateLimit))(ok)
		r := ask(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-RateLimit-Remaining", row.remaining)
			w.Header().Set("X-RateLimit-Reset", row.reset)
			inner.ServeHTTP(w, r)
		}), "ann")
		equal(t, fmt.Sprint(row), r.Header.Get("X-RateLimit-Remaining"), row.want)
	}
}
