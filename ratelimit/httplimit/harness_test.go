package httplimit

// This file is what the tests share: a limiter on a fake clock, and requests.

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/google/go-cmp/cmp"

	"github.com/hanzoai/limiters/internal/clock"
	"github.com/hanzoai/limiters/internal/quota"
	"github.com/hanzoai/limiters/ratelimit"
)

// start is when every test's clock starts: at the beginning of a window.
var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// newLimiter returns a limiter of 4 units (so that three single ones pass) per
// minute, and its clock. change may alter its configuration.
func newLimiter(t *testing.T, change func(*ratelimit.Config)) (*ratelimit.Limiter, *clock.Fake) {
	t.Helper()
	cfg := ratelimit.DefaultConfig()
	cfg.GlobalThreshold = 4
	cfg.RedisURLs = []string{"memory://"}
	if change != nil {
		change(&cfg)
	}
	c := clock.NewFake(start)
	lim, err := ratelimit.New(cfg, ratelimit.WithClock(c), ratelimit.WithMetricsSet(metrics.NewSet()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lim.Close(context.Background()) })
	return lim, c
}

// newMiddleware returns middleware that counts by the field X-User.
func newMiddleware(t *testing.T, lim *ratelimit.Limiter, opts ...Option) func(http.Handler) http.Handler {
	t.Helper()
	limit, err := New(lim, Header("X-User"), opts...)
	if err != nil {
		t.Fatal(err)
	}
	return limit
}

// ok is a handler that answers 200.
var ok = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("ok")) })

// ask sends h a request of a user and returns the response.
func ask(h http.Handler, user string) *http.Response {
	r := httptest.NewRequest("GET", "/", nil)
	if user != "" {
		r.Header.Set("X-User", user)
	}
	return send(h, r)
}

func send(h http.Handler, r *http.Request) *http.Response {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

// statuses asks n times and returns the statuses.
func statuses(h http.Handler, user string, n int) (got []int) {
	for range n {
		got = append(got, ask(h, user).StatusCode)
	}
	return got
}

// equal fails the test if got differs from want.
func equal[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// fields returns those fields of a response that are about the limit.
func fields(r *http.Response) map[string][]string {
	about := map[string][]string{}
	for _, name := range []string{
		fieldRetryAfter, fieldPolicy, fieldRateLimit, fieldXLimit, fieldXRemaining, fieldXReset,
	} {
		if v := r.Header.Values(name); len(v) > 0 {
			about[name] = v
		}
	}
	return about
}

// whole returns what a field says of a wait.
func whole(wait time.Duration) string { return strconv.FormatInt(quota.Seconds(wait), 10) }
