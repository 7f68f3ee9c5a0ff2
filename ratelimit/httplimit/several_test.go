package httplimit

// This file tests several limits of one request.

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"github.com/hanzoai/limiters/internal/clock"
	"github.com/hanzoai/limiters/ratelimit"
)

// limiterOn is newLimiter on a clock that several limiters share, inclusive and by fixed windows.
func limiterOn(t *testing.T, c *clock.Fake, threshold uint64, window time.Duration, change func(*ratelimit.Config)) *ratelimit.Limiter {
	t.Helper()
	cfg := ratelimit.DefaultConfig()
	cfg.GlobalThreshold, cfg.WindowInterval, cfg.Inclusive, cfg.Window = threshold, window, true, ratelimit.WindowFixed
	cfg.RedisURLs = []string{"memory://"}
	if change != nil {
		change(&cfg)
	}
	lim, err := ratelimit.New(cfg, ratelimit.WithClock(c), ratelimit.WithMetricsSet(metrics.NewSet()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lim.Close(context.Background()) })
	return lim
}

func limitAll(t *testing.T, limits []Limit, opts ...Option) http.Handler {
	t.Helper()
	limit, err := NewAll(limits, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return limit(ok)
}

func bodyOf(r *http.Response) string {
	body, _ := io.ReadAll(r.Body)
	return string(body)
}

func everybody(*http.Request) (string, error) { return "all", nil }

func TestSeveralLimitsEachWithAPolicy(t *testing.T) {
	t.Parallel()
	c := clock.NewFake(start)
	second, minute := limiterOn(t, c, 2, time.Second, nil), limiterOn(t, c, 3, time.Minute, nil)
	user := Header("X-User")
	h := limitAll(t, []Limit{{Limiter: second, Key: user, Policy: "burst"}, {Limiter: minute, Key: everybody, Policy: "all", Unit: "requests"}},
		WithFields(RateLimit|XRateLimit))
	equal(t, "allowed", fields(ask(h, "ann")), map[string][]string{
		fieldPolicy:    {`"burst";q=2;w=1`, `"all";q=3;qu="requests";w=60`},
		fieldRateLimit: {`"burst";r=1;t=1`, `"all";r=2;t=60`},
		fieldXLimit:    {"2"}, fieldXRemaining: {"1"}, fieldXReset: {"1"},
	})
	equal(t, "status of the second", ask(h, "ann").StatusCode, 200)
	r := ask(h, "ann")
	equal(t, "status of the third within a second", r.StatusCode, 429)
	equal(t, "the one that refuses speaks alone", fields(r), map[string][]string{
		fieldRetryAfter: {"1"}, fieldPolicy: {`"burst";q=2;w=1`}, fieldRateLimit: {`"burst";r=0;t=1`},
		fieldXLimit: {"2"}, fieldXRemaining: {"0"}, fieldXReset: {"1"},
	})
	if body := bodyOf(r); !strings.Contains(body, `"violated-policies":["burst"]`) {
		t.Errorf("body %s", body)
	}
	equal(t, "what the other limit counted", minute.Peek("all").Level(), 2.0)
	equal(t, "status of another user", ask(h, "bob").StatusCode, 200)
	r = ask(h, "ann") // neither has room: the longest wait counts
	equal(t, "both refuse", fields(r), map[string][]string{
		fieldRetryAfter: {"60"}, fieldPolicy: {`"burst";q=2;w=1`, `"all";q=3;qu="requests";w=60`},
		fieldRateLimit: {`"burst";r=0;t=1`, `"all";r=0;t=60`},
		fieldXLimit:    {"3"}, fieldXRemaining: {"0"}, fieldXReset: {"60"},
	})
	if body := bodyOf(r); !strings.Contains(body, `"violated-policies":["burst","all"]`) {
		t.Errorf("body %s", body)
	}
	c.Advance(time.Minute)
	equal(t, "status after the wait", ask(h, "ann").StatusCode, 200)
}

func TestSeveralLimitsHaveCostsOfTheirOwn(t *testing.T) {
	t.Parallel()
	c := clock.NewFake(start)
	requests, tokens := limiterOn(t, c, 10, time.Minute, nil), limiterOn(t, c, 100, time.Minute, nil)
	user := Header("X-User")
	costs := []Limit{
		{Limiter: requests, Key: user, Policy: "requests"},
		{Limiter: tokens, Key: user, Policy: "tokens", Cost: func(*http.Request) uint64 { return 40 }},
	}
	h := limitAll(t, costs, WithCost(func(*http.Request) uint64 { return 2 }))
	equal(t, "statuses", statuses(h, "ann", 3), []int{200, 200, 429})
	equal(t, "requests", requests.Peek("ann").Level(), 4.0)
	equal(t, "tokens", tokens.Peek("ann").Level(), 80.0)
	costs[1].Cost = func(*http.Request) uint64 { return 1 } // the caller's slice is the caller's
	equal(t, "status", ask(h, "ann").StatusCode, 429)

	costs[1].Cost = func(*http.Request) uint64 { return 101 } // no wait helps, though the other has one
	costs[0].Cost = func(*http.Request) uint64 { return 9 }
	r := ask(limitAll(t, costs), "ann")
	equal(t, "Retry-After where no wait helps", r.Header.Get("Retry-After"), "")
	equal(t, "status where no wait helps", r.StatusCode, 429)
}

func TestSeveralLimitsOneOfWhichAsksTheFleet(t *testing.T) {
	t.Parallel()
	c := clock.NewFake(start)
	local, fleet := limiterOn(t, c, 10, time.Minute, nil), limiterOn(t, c, 2, time.Hour, nil)
	h := limitAll(t, []Limit{{Limiter: local, Key: everybody, Policy: "local"}, {Limiter: fleet, Key: Header("X-User"), Policy: "fleet", Fleet: true}})
	equal(t, "statuses", statuses(h, "ann", 3), []int{200, 200, 429})
	equal(t, "what this node counted", local.Peek("all").Level(), 2.0)
	if s := fleet.Stats().Fleet; s.Allowed != 2 || s.Limited != 1 {
		t.Errorf("the fleet was asked %+v", s)
	}
	local.Record("all", 8)
	r := ask(h, "bob")
	equal(t, "a local limit refuses", r.Header["Ratelimit"], []string{`"local";r=0;t=60`})
	if s := fleet.Stats().Fleet; s.Allowed != 2 || s.Limited != 1 {
		t.Errorf("the fleet was asked for nothing: %+v", s)
	}
	alone := limitAll(t, []Limit{{Limiter: fleet, Key: Header("X-User"), Policy: "fleet", Fleet: true}})
	equal(t, "one limit alone", statuses(alone, "eve", 3), []int{200, 200, 429})
}

func TestSeveralLimitsOneOfThemInADryRun(t *testing.T) {
	t.Parallel()
	c := clock.NewFake(start)
	dry := limiterOn(t, c, 1, time.Hour, func(cfg *ratelimit.Config) { cfg.DryRun = true })
	enforced := limiterOn(t, c, 2, time.Minute, nil)
	user := Header("X-User")
	h := limitAll(t, []Limit{{Limiter: dry, Key: user, Policy: "dry"}, {Limiter: enforced, Key: user, Policy: "enforced"}})
	equal(t, "first", fields(ask(h, "ann")), map[string][]string{fieldPolicy: {`"enforced";q=2;w=60`}, fieldRateLimit: {`"enforced";r=1;t=60`}})
	equal(t, "statuses", statuses(h, "ann", 2), []int{200, 429})
	equal(t, "refused", fields(ask(h, "ann")), map[string][]string{
		fieldRetryAfter: {"60"}, fieldPolicy: {`"enforced";q=2;w=60`}, fieldRateLimit: {`"enforced";r=0;t=60`},
	})
}

func TestARouteInADryRunPassesAndIsSilent(t *testing.T) {
	t.Parallel()
	c := clock.NewFake(start)
	lim := limiterOn(t, c, 2, time.Minute, nil)
	limits := []Limit{{Limiter: lim, Key: Header("X-User"), Policy: "p"}}
	verdicts := ""
	limit, err := NewAll(limits, WithDryRun(), WithFields(RateLimit|XRateLimit))
	if err != nil {
		t.Fatal(err)
	}
	h := limit(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		for _, d := range AllDecisions(r.Context()) {
			verdicts += d.Verdict().String()[:1]
		}
	}))
	for range 4 {
		r := ask(h, "ann")
		equal(t, "status", r.StatusCode, 200)
		equal(t, "fields", fields(r), map[string][]string{})
	}
	equal(t, "verdicts", verdicts, "aall")
	equal(t, "status on another route", ask(limitAll(t, limits), "ann").StatusCode, 429)
}

func TestSeveralLimitsRefuseARequestWithoutOneOfItsKeys(t *testing.T) {
	t.Parallel()
	c := clock.NewFake(start)
	lim := limiterOn(t, c, 10, time.Minute, nil)
	limits := []Limit{{Limiter: lim, Key: everybody, Policy: "all"}, {Limiter: lim, Key: Header("X-User"), Policy: "user"}}
	equal(t, "status", ask(limitAll(t, limits), "").StatusCode, 400)
	equal(t, "status if that passes", ask(limitAll(t, limits, WithEmptyKeys(Pass)), "").StatusCode, 200)
	equal(t, "counted", lim.Stats().Counted, uint64(0))
}

func TestWithLimitedIsGivenTheLongestWait(t *testing.T) {
	t.Parallel()
	c := clock.NewFake(start)
	hour, minute := limiterOn(t, c, 0, time.Hour, nil), limiterOn(t, c, 1, time.Minute, nil)
	once := limiterOn(t, c, 1, 24*time.Hour, nil)
	user := Header("X-User")
	var got ratelimit.Decision
	h := limitAll(t, []Limit{{Limiter: once, Key: user, Policy: "day"}, {Limiter: minute, Key: user, Policy: "minute"}},
		WithLimited(func(w http.ResponseWriter, _ *http.Request, d ratelimit.Decision) {
			got = d
			w.WriteHeader(503)
		}))
	equal(t, "statuses", statuses(h, "ann", 2), []int{200, 503})
	equal(t, "wait", got.RetryAfter(), 24*time.Hour)
	blocked := limitAll(t, []Limit{{Limiter: minute, Key: user, Policy: "minute"}, {Limiter: hour, Key: user, Policy: "none"}})
	equal(t, "status where all is blocked", ask(blocked, "bob").StatusCode, 429)
}

func TestNewAllNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	lim, _ := newLimiter(t, nil)
	good := Limit{Limiter: lim, Key: everybody, Policy: "good"}
	for _, row := range []struct {
		limits []Limit
		opts   []Option
		want   string
	}{
		{nil, nil, "needs a limit"},
		{[]Limit{good, {Key: everybody, Policy: "bad"}}, nil, `limit 1 ("bad") needs a limiter`},
		{[]Limit{good, {Limiter: lim, Policy: "bad"}}, nil, `limit 1 ("bad") needs a limiter and a key function`},
		{[]Limit{good, good}, nil, `limit 1: the policy "good" is another limit's`},
		{[]Limit{{Limiter: lim, Key: everybody}}, nil, `limit 0: policy: name "" is empty`},
		{[]Limit{{Limiter: lim, Key: everybody, Policy: "a", Unit: "ü"}}, nil, `limit 0: policy: unit "ü"`},
		{[]Limit{good}, []Option{WithKeyErrors(9)}, "action 9"},
	} {
		limit, err := NewAll(row.limits, row.opts...)
		if limit != nil || err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("NewAll: error %v, want one with %q", err, row.want)
		}
	}
}

func TestAllDecisionsOfNothing(t *testing.T) {
	t.Parallel()
	if ds := AllDecisions(httptest.NewRequest("GET", "/", nil).Context()); len(ds) != 0 {
		t.Errorf("%v", ds)
	}
	if _, err := New(nil, nil); err == nil || errors.Is(err, ErrEmptyKey) {
		t.Errorf("New: %v", err)
	}
}
