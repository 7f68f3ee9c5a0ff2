package plans

// This file is what the tests share: a file on a fake clock, and requests.

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/VictoriaMetrics/metrics"
	"go.uber.org/goleak"

	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/testing/ratelimittest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A fixture is plans of a file that the test writes.
type fixture struct {
	*Plans
	t     *testing.T
	path  string
	clock *ratelimittest.Clock
	log   *strings.Builder
}

// open opens plans of a text, on a fake clock and with counters in memory.
func open(t *testing.T, text string, opts ...Option) *fixture {
	t.Helper()
	f := &fixture{t: t, path: filepath.Join(t.TempDir(), "plans.yaml"), clock: ratelimittest.NewClock(), log: &strings.Builder{}}
	f.write(text)
	cfg := ratelimit.DefaultConfig()
	cfg.RedisURLs = []string{"memory://"}
	opts = append([]Option{
		WithClock(f.clock), WithMetricsSet(metrics.NewSet()),
		WithLogger(slog.New(slog.NewTextHandler(f.log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == "file" {
				return slog.Attr{}
			}
			return a
		}}))),
	}, opts...)
	p, err := Open(f.path, cfg, opts...)
	if err != nil {
		t.Fatal(err)
	}
	f.Plans = p
	t.Cleanup(func() { p.Close(context.Background()) })
	return f
}

func (f *fixture) write(text string) {
	f.t.Helper()
	if err := os.WriteFile(f.path+".new", []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
	if err := os.Rename(f.path+".new", f.path); err != nil {
		f.t.Fatal(err)
	}
}

// reload writes a text and refreshes.
func (f *fixture) reload(text string) {
	f.t.Helper()
	f.write(text)
	if err := f.Refresh(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
}

// ask sends a request such as "GET /v1/x" as a key and returns the response.
func (f *fixture) ask(request, key string) *http.Response {
	method, target, _ := strings.Cut(request, " ")
	r := httptest.NewRequest(method, target, nil)
	if key != "" {
		r.Header.Set("X-Key", key)
	}
	w := httptest.NewRecorder()
	f.Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("ok")) })).ServeHTTP(w, r)
	return w.Result()
}

// passes asks n times and returns how many pass; others must have the status.
func (f *fixture) passes(request, key string, n, status int) (passed int) {
	f.t.Helper()
	for range n {
		switch got := f.ask(request, key).StatusCode; got {
		case http.StatusOK:
			passed++
		case status:
		default:
			f.t.Errorf("%s of %s: status %d, want 200 or %d", request, key, got, status)
		}
	}
	return passed
}

// file is a text with two limits, two plans and three routes.
const file = `
limits:
  burst: {threshold: 5, window: 1s, kind: fixed}
  hourly: {threshold: 8, window: 1h, kind: fixed, unit: tokens}
  all: {threshold: 1000, key: everybody}
plans:
  pro: {burst: 50, hourly: 100}
keys:
  ann: pro
routes:
  - {pattern: GET /v1/, key: "header:X-Key", limits: [burst, hourly, all]}
  - {pattern: POST /v1/export, key: "header:X-Key", cost: 4, limits: [hourly]}
  - {pattern: /health, limits: []}
`
