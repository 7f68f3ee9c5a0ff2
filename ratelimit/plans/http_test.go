package plans

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hanzoai/limiters/ratelimit/httplimit"
)

func TestRoutesPlansAndLimits(t *testing.T) {
	t.Parallel()
	f := open(t, file)
	for i, row := range []struct {
		advance time.Duration
		request string
		key     string
		n, want int
	}{
		{0, "GET /v1/x", "bob", 9, 5},             // five a second
		{time.Second, "GET /v1/y/z", "bob", 9, 3}, // eight an hour
		{time.Second, "POST /v1/export", "bob", 1, 0},
		{0, "GET /v1/x", "ann", 99, 50},
		{time.Second, "GET /v1/x", "ann", 20, 20},
		{0, "POST /v1/export", "ann", 9, 7}, // at four each, of the thirty that are left
		{0, "GET /health", "", 99, 99},
		{0, "DELETE /v1/x", "eve", 99, 99}, // no route
		{time.Hour, "GET /v1/x", "bob", 9, 5},
	} {
		f.clock.Advance(row.advance)
		if got := f.passes(row.request, row.key, row.n, http.StatusTooManyRequests); got != row.want {
			t.Errorf("row %d: %d of %d pass, want %d", i, got, row.n, row.want)
		}
	}
	if got := f.ask("GET /v1/x", "").StatusCode; got != http.StatusBadRequest {
		t.Errorf("without a key: status %d, want 400", got)
	}
}

func TestAnswersNameTheLimit(t *testing.T) {
	t.Parallel()
	f := open(t, file, WithHTTP(httplimit.WithFields(httplimit.RateLimit|httplimit.XRateLimit)))
	r := f.ask("GET /v1/x", "bob")
	policies := strings.Join(r.Header["Ratelimit-Policy"], " ")
	if want := `"burst";q=5;w=1 "hourly";q=8;qu="tokens";w=3600 "all";q=1000;w=60`; policies != want {
		t.Errorf("policies %s, want %s", policies, want)
	}
	f.passes("GET /v1/x", "bob", 4, 0)
	r = f.ask("GET /v1/x", "bob")
	body, _ := io.ReadAll(r.Body)
	if r.StatusCode != 429 || r.Header.Get("Retry-After") != "1" || !strings.Contains(string(body), `"violated-policies":["burst"]`) {
		t.Errorf("status %d, Retry-After %q, body %s", r.StatusCode, r.Header.Get("Retry-After"), body)
	}
}

// A route is found as net/http would find it, whatever a client does to the path.
func TestPathsThatWouldBeRedirectedAreLimited(t *testing.T) {
	t.Parallel()
	f := open(t, `
limits: {l: {threshold: 3, kind: fixed}}
routes:
  - {pattern: /dir/, key: everybody, limits: [l]}
  - {pattern: "api.example/x/{id}", key: everybody, limits: [l]}
`)
	for _, request := range []string{"GET //dir//x", "GET /dir", "GET http://api.example/x/1", "GET /dir/a"} {
		r := f.ask(request, "")
		want := http.StatusOK
		if request == "GET /dir/a" {
			want = http.StatusTooManyRequests
		}
		if r.StatusCode != want {
			t.Errorf("%s: status %d, want %d", request, r.StatusCode, want)
		}
	}
}

func TestLists(t *testing.T) {
	t.Parallel()
	f := open(t, `
limits: {l: {threshold: 1, kind: fixed, window: 1h}}
routes:
  - {pattern: /v1/, key: "header:X-Key", limits: [l]}
  - {pattern: /open/, key: "header:X-Key", limits: []}
allow:
  - {key: probe}
  - {key: guest, until: 2026-01-01T00:10:00Z}
  - {key: both}
  - {key: other, by: ip}
block:
  - {key: thief, reason: stole}
  - {key: both}
  - {key: noisy, until: 2026-01-01T00:10:00Z}
  - {key: noisy, until: 2026-01-01T00:05:00Z}
`)
	if start := f.now(); !start.Equal(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)) {
		t.Fatalf("the clock starts at %v", start)
	}
	for i, row := range []struct {
		key   string
		want  int
		later int // after ten minutes
	}{
		{"probe", 200, 200}, {"guest", 200, 200}, {"thief", 403, 403}, {"both", 403, 403}, {"noisy", 403, 200}, {"other", 200, 429},
	} {
		if i == 0 {
			f.ask("GET /v1/", "guest")
		}
		r := f.ask("GET /v1/", row.key)
		if r.StatusCode != row.want {
			t.Errorf("%s: status %d, want %d", row.key, r.StatusCode, row.want)
		}
		retry := ""
		if row.key == "noisy" {
			retry = "600"
		}
		if got := r.Header.Get("Retry-After"); got != retry {
			t.Errorf("%s: Retry-After %q, want %q", row.key, got, retry)
		}
		if open := f.ask("GET /open/", row.key).StatusCode; (open == 403) != (row.want == 403) {
			t.Errorf("%s on a route without limits: status %d", row.key, open)
		}
	}
	f.clock.Advance(10 * time.Minute)
	for key, want := range map[string]int{"probe": 200, "thief": 403, "noisy": 200, "other": 429} {
		if got := f.ask("GET /v1/", key).StatusCode; got != want {
			t.Errorf("%s ten minutes later: status %d, want %d", key, got, want)
		}
	}
	if got := f.passes("GET /v1/", "guest", 3, 429); got != 1 {
		t.Errorf("a guest whose entry ended: %d pass, want 1", got)
	}
}

func TestDryRunOfALimitAndOfARoute(t *testing.T) {
	t.Parallel()
	f := open(t, `
limits:
  dry: {threshold: 1, window: 1h, kind: fixed, dry_run: true}
  real: {threshold: 3, window: 1h, kind: fixed}
routes:
  - {pattern: /a, key: everybody, limits: [dry, real]}
  - {pattern: /b, key: everybody, limits: [real], dry_run: true}
`)
	if got := f.passes("GET /a", "", 9, 429); got != 3 {
		t.Errorf("beside a limit in a dry run %d pass, want 3", got)
	}
	if got := f.passes("GET /b", "", 9, 0); got != 9 {
		t.Errorf("on a route in a dry run %d pass, want 9", got)
	}
	if r := f.ask("GET /b", ""); len(r.Header["Ratelimit"]) != 0 || r.Header.Get("Retry-After") != "" {
		t.Errorf("a route in a dry run says %v", r.Header)
	}
}

func TestALimitThatAsksTheFleet(t *testing.T) {
	t.Parallel()
	f := open(t, `
limits: {login: {threshold: 2, window: 1h, kind: fixed, ask: fleet}}
routes: [{pattern: POST /login, key: "header:X-Key", limits: [login]}]
`)
	if got := f.passes("POST /login", "ann", 5, 429); got != 2 {
		t.Errorf("%d pass, want 2", got)
	}
	if s := f.Limiter("login").Stats().Fleet; s.Allowed != 2 || s.Limited != 3 {
		t.Errorf("the fleet was asked %+v", s)
	}
}

func TestPlansOfKeys(t *testing.T) {
	t.Parallel()
	f := open(t, `
limits: {l: {threshold: 1, window: 1h, kind: fixed}}
plans: {free: {l: 2}, pro: {l: 5}, none: {}}
default_plan: free
keys: {inline: pro, bare: none}
routes: [{pattern: /, key: user, limits: [l]}]
`, WithKey("user", httplimit.Header("X-Key")), WithPlanOf(func(key string) (string, bool) {
		return strings.TrimPrefix(key, "plan-"), strings.HasPrefix(key, "plan-")
	}))
	f.Overrides("l").SetOverrides(map[string]uint64{"own": 7})
	for key, want := range map[string]int{"inline": 5, "bare": 1, "plan-pro": 5, "plan-gone": 2, "anybody": 2, "own": 7} {
		if got := f.passes("GET /x", key, 9, 429); got != want {
			t.Errorf("%s: %d pass, want %d", key, got, want)
		}
	}
	f.Overrides("l").SetOverrides(nil)
	f.clock.Advance(time.Hour)
	if got := f.passes("GET /x", "own", 9, 429); got != 2 {
		t.Errorf("without its override: %d pass, want 2", got)
	}
}

func TestAPanicOfAHandlerReleasesTheRules(t *testing.T) {
	t.Parallel()
	f := open(t, file)
	reached := 0
	broken := f.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		reached++
		panic("a handler")
	}))
	for _, path := range []string{"/v1/x", "/health", "/elsewhere"} {
		r := httptest.NewRequest("GET", path, nil)
		r.Header.Set("X-Key", "bob")
		func() {
			defer func() { _ = recover() }()
			broken.ServeHTTP(httptest.NewRecorder(), r)
		}()
	}
	if got := f.current.Load().users.Load(); got != 1 || reached != 3 {
		t.Errorf("%d users of the rules after %d panics, want 1 after 3: that they are in force", got, reached)
	}
}
