package httplimit

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hanzoai/limiters/ratelimit"
)

func TestLimitedRequestsDoNotReachTheHandler(t *testing.T) {
	t.Parallel()
	lim, c := newLimiter(t, nil)
	reached := 0
	h := newMiddleware(t, lim)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached++ }))
	equal(t, "statuses", statuses(h, "ann", 5), []int{200, 200, 200, 429, 429})
	equal(t, "requests that reached the handler", reached, 3)
	equal(t, "another user's status", ask(h, "bob").StatusCode, 200)
	c.Advance(2 * time.Minute)
	equal(t, "status two windows later", ask(h, "ann").StatusCode, 200)
}

func TestRetryAfterIsLongEnoughAndNotASecondTooLong(t *testing.T) {
	t.Parallel()
	lim, c := newLimiter(t, nil)
	h := newMiddleware(t, lim)(ok)
	r := ask(h, "ann")
	for range 4 { // the level leaks between requests: the fourth passes, the fifth does not
		c.Advance(1100 * time.Millisecond)
		r = ask(h, "ann")
	}
	wait, err := time.ParseDuration(r.Header.Get("Retry-After") + "s")
	if r.StatusCode != 429 || err != nil || wait < time.Second {
		t.Fatalf("status %d, Retry-After %q", r.StatusCode, r.Header.Get("Retry-After"))
	}
	exact := lim.Check("ann", 1).RetryAfter()
	if wait < exact || wait-exact >= time.Second {
		t.Errorf("Retry-After %v for a wait of %v", wait, exact)
	}
	c.Advance(wait)
	equal(t, "status after the wait", ask(h, "ann").StatusCode, 200)
}

// A wait of a fraction of a second, rounded down, would be a Retry-After of 0: come
// back at once.
func TestRetryAfterIsNeverZero(t *testing.T) {
	t.Parallel()
	lim, c := newLimiter(t, func(cfg *ratelimit.Config) {
		cfg.WindowInterval = 100 * time.Millisecond
	})
	h := newMiddleware(t, lim)(ok)
	for i := range 40 {
		if r := ask(h, "ann"); r.StatusCode == 429 && r.Header.Get("Retry-After") != "1" {
			t.Errorf("request %d: Retry-After %q, want 1", i, r.Header.Get("Retry-After"))
		}
		c.Advance(7 * time.Millisecond)
	}
	if lim.Stats().Limited == 0 {
		t.Error("nothing was limited")
	}
}

func TestACostThatNeverPassesHasNoRetryAfter(t *testing.T) {
	t.Parallel()
	lim, _ := newLimiter(t, func(cfg *ratelimit.Config) { cfg.StrictFirstContact = true })
	h := newMiddleware(t, lim, WithCost(func(*http.Request) uint64 { return 4 }))(ok)
	r := ask(h, "ann")
	equal(t, "status", r.StatusCode, 429)
	equal(t, "fields", fields(r), map[string][]string{
		fieldPolicy: {`"default";q=3;w=60`}, fieldRateLimit: {`"default";r=3`},
	})
}

func TestCost(t *testing.T) {
	t.Parallel()
	lim, _ := newLimiter(t, nil)
	cost := uint64(2)
	h := newMiddleware(t, lim, WithCost(func(*http.Request) uint64 { return cost }))(ok)
	equal(t, "status of 2 units", ask(h, "ann").StatusCode, 200)
	equal(t, "status of 2 more", ask(h, "ann").StatusCode, 429)
	cost = 0
	equal(t, "statuses of no units", statuses(h, "ann", 5), []int{200, 200, 200, 200, 200})
	cost = 1
	equal(t, "statuses of 1 unit", statuses(h, "ann", 2), []int{200, 429})
	cost = 0 // where one unit would not pass, none does
	equal(t, "statuses of no units at the limit", statuses(h, "ann", 2), []int{429, 429})
	equal(t, "units counted", lim.Stats().Counted, uint64(3))
}

func TestSkippedRequestsAreNeitherKeyedNorCounted(t *testing.T) {
	t.Parallel()
	lim, _ := newLimiter(t, nil)
	key := func(*http.Request) (string, error) {
		t.Error("the key of a skipped request was asked for")
		return "", nil
	}
	limit, err := New(lim, key, WithSkip(func(r *http.Request) bool { return r.URL.Path == "/health" }))
	if err != nil {
		t.Fatal(err)
	}
	r := send(limit(ok), httptest.NewRequest("GET", "/health", nil))
	equal(t, "status", r.StatusCode, 200)
	equal(t, "fields", fields(r), map[string][]string{})
	equal(t, "decisions", lim.Stats().Allowed, uint64(0))
}

func TestRequestsWithoutAKey(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, row := range []struct {
		name   string
		err    error
		opts   []Option
		status int
	}{
		{"empty key", nil, nil, 400},
		{"empty key, passed", nil, []Option{WithEmptyKeys(Pass)}, 200},
		{"empty key, errors passed", nil, []Option{WithKeyErrors(Pass)}, 400},
		{"error", broken, nil, 400},
		{"error, passed", broken, []Option{WithKeyErrors(Pass)}, 200},
		{"error, empty keys passed", broken, []Option{WithEmptyKeys(Pass)}, 400},
		{"passed, then refused", broken, []Option{WithKeyErrors(Pass), WithKeyErrors(Refuse)}, 400},
	} {
		lim, _ := newLimiter(t, nil)
		limit, err := New(lim, func(*http.Request) (string, error) { return "", row.err }, row.opts...)
		if err != nil {
			t.Fatal(err)
		}
		for range 10 {
			r := ask(limit(ok), "")
			equal(t, row.name+": status", r.StatusCode, row.status)
			equal(t, row.name+": fields", fields(r), map[string][]string{})
		}
		equal(t, row.name+": decisions", lim.Stats().Allowed+lim.Stats().Limited, uint64(0))
	}
}

func TestRefusalsDoNotShowTheReason(t *testing.T) {
	t.Parallel()
	lim, _ := newLimiter(t, nil)
	limit, err := New(lim, func(*http.Request) (string, error) { return "", errors.New("secret") })
	if err != nil {
		t.Fatal(err)
	}
	r := ask(limit(ok), "")
	body, _ := io.ReadAll(r.Body)
	equal(t, "body", string(body), `{"title":"Bad Request","status":400}`+"\n")
	equal(t, "content type", r.Header.Get("Content-Type"), "application/problem+json")
}

func TestLimitedBody(t *testing.T) {
	t.Parallel()
	lim, _ := newLimiter(t, func(cfg *ratelimit.Config) { cfg.GlobalThreshold = 0 })
	r := ask(newMiddleware(t, lim, WithPolicy("per user", "tokens"))(ok), "ann")
	body, _ := io.ReadAll(r.Body)
	equal(t, "body", string(body), `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded",`+
		`"title":"The quota is exceeded","status":429,"violated-policies":["per user"]}`+"\n")
	equal(t, "cache control", r.Header.Get("Cache-Control"), "no-store")
	equal(t, "fields", fields(r), map[string][]string{
		fieldPolicy: {`"per user";q=0;qu="tokens";w=60`}, fieldRateLimit: {`"per user";r=0`},
	})
}

func TestAnswersOfTheCallers(t *testing.T) {
	t.Parallel()
	lim, _ := newLimiter(t, func(cfg *ratelimit.Config) { cfg.GlobalThreshold = 0 })
	var reason error
	h := newMiddleware(t, lim,
		WithLimited(func(w http.ResponseWriter, _ *http.Request, d ratelimit.Decision) {
			if d.Allowed() || w.Header().Get("RateLimit") == "" {
				t.Errorf("called with %v and fields %v", d.Verdict(), w.Header())
			}
			w.WriteHeader(503)
		}),
		WithRefused(func(w http.ResponseWriter, _ *http.Request, err error) {
			reason = err
			w.WriteHeader(401)
		}),
	)(ok)
	equal(t, "status of a limited request", ask(h, "ann").StatusCode, 503)
	equal(t, "status of a request without a key", ask(h, "").StatusCode, 401)
	if !errors.Is(reason, ErrEmptyKey) {
		t.Errorf("reason %v, want ErrEmptyKey", reason)
	}
}

func TestDryRunPassesAndIsSilent(t *testing.T) {
	t.Parallel()
	lim, _ := newLimiter(t, func(cfg *ratelimit.Config) { cfg.DryRun = true })
	var verdicts []string
	h := newMiddleware(t, lim, WithFields(RateLimit|XRateLimit))(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		d, ok := Decision(r.Context())
		if !ok || !d.DryRun() {
			t.Errorf("the handler finds %v, %v", d, ok)
		}
		verdicts = append(verdicts, d.Verdict().String())
	}))
	for range 5 {
		r := ask(h, "ann")
		equal(t, "status", r.StatusCode, 200)
		equal(t, "fields", fields(r), map[string][]string{})
	}
	equal(t, "verdicts", strings.Join(verdicts, " "), "allowed allowed allowed limited limited")
	equal(t, "requests that would have been limited", lim.Stats().Limited, uint64(2))
	equal(t, "units counted", lim.Stats().Counted, uint64(3))
}

func TestDecisionOfTheInnermost(t *testing.T) {
	t.Parallel()
	outer, _ := newLimiter(t, func(cfg *ratelimit.Config) { cfg.GlobalThreshold = 10 })
	inner, _ := newLimiter(t, nil)
	asked := false
	handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		d, ok := Decision(r.Context())
		asked = ok && d.Threshold() == 4
	})
	ask(newMiddleware(t, outer)(newMiddleware(t, inner)(handler)), "ann")
	if !asked {
		t.Error("the handler did not find the inner decision")
	}
	if _, ok := Decision(t.Context()); ok {
		t.Error("a decision where no limiter was asked")
	}
}

func TestNewNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	lim, _ := newLimiter(t, nil)
	key := Header("X-User")
	for _, row := range []struct {
		lim  *ratelimit.Limiter
		key  KeyFunc
		opts []Option
		want string
	}{
		{nil, key, nil, "needs a limiter"},
		{lim, nil, nil, "needs a limiter and a key function"},
		{lim, key, []Option{WithPolicy("", "")}, `name ""`},
		{lim, key, []Option{WithPolicy("käse", "")}, `name "käse"`},
		{lim, key, []Option{WithPolicy("a", "b\n")}, `unit "b\n"`},
		{lim, key, []Option{WithFields(4)}, "4 is no combination"},
		{lim, key, []Option{WithKeyErrors(7)}, "action 7"},
		{lim, key, []Option{WithEmptyKeys(8)}, "action 8"},
	} {
		if limit, err := New(row.lim, row.key, row.opts...); limit != nil || err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("New: error %v, want one with %q", err, row.want)
		}
	}
}
