package statuspage

// This file is what the tests share: a limiter on a fake clock, and requests.

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"github.com/hanzoai/limiters/internal/clock"
	"github.com/hanzoai/limiters/internal/memstore"
	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/ratelimit/store"
)

// start is when every test's clock starts: at the beginning of a window.
var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// unreachable is a store that cannot be reached.
type unreachable struct{}

func (unreachable) Apply(context.Context, *store.Batch, *store.Reply) error {
	return &store.Error{Fate: store.NotSent, Step: store.StepConnect, Cause: store.CauseUnreachable, Err: errors.New("nothing listens")}
}

// newLimiter returns a limiter of 100 units per minute on one partition that works
// and one that cannot be reached.
func newLimiter(t *testing.T, change func(*ratelimit.Config)) (*ratelimit.Limiter, *clock.Fake) {
	t.Helper()
	cfg := ratelimit.DefaultConfig()
	cfg.GlobalThreshold = 100
	cfg.Scope = "test"
	if change != nil {
		change(&cfg)
	}
	c := clock.NewFake(start)
	lim, err := ratelimit.New(cfg,
		ratelimit.WithClock(c), ratelimit.WithMetricsSet(metrics.NewSet()), ratelimit.WithLogger(nil),
		ratelimit.WithPartitions(
			ratelimit.Partition{Name: "works", Store: memstore.New(func() int64 { wall, _ := c.Now(); return wall })},
			ratelimit.Partition{Name: "broken", Store: unreachable{}},
		),
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		lim.Close(ctx)
	})
	return lim, c
}

// newPage returns a page that is asked at the time of the clock.
func newPage(lim *ratelimit.Limiter, c *clock.Fake, opts ...Option) *page {
	p := New(lim, opts...).(*page)
	p.now = func() time.Time { wall, _ := c.Now(); return time.Unix(0, wall) }
	return p
}

// get asks h and returns the answer.
func get(h http.Handler, target, accept string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", target, nil)
	if accept != "" {
		r.Header.Set("Accept", accept)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// at is a page that is asked at a target, whatever the request says.
type at struct {
	page   http.Handler
	target string
}

func (a at) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	a.page.ServeHTTP(w, httptest.NewRequest("GET", a.target, nil))
}
