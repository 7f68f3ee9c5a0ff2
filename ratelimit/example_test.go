package ratelimit_test

// This file shows how to use the package. Its clock stands still, so that the
// output is the same every time; a service leaves WithClock out.

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"time"

	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/ratelimit/httplimit"
	"github.com/hanzoai/limiters/testing/ratelimittest"
)

func ExampleNew() {
	cfg := ratelimit.DefaultConfig()
	cfg.GlobalThreshold = 3               // units per window, for each key, of the whole fleet
	cfg.RedisURLs = []string{"memory://"} // for one process; or redis://host:6379, one or more
	lim, err := ratelimit.New(cfg, ratelimit.WithClock(ratelimittest.NewClock()))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer lim.Close(context.Background())

	for range 4 {
		d := lim.Check("team_42", 1)
		fmt.Println(d.Verdict(), d.Remaining(), d.RetryAfter().Round(time.Second))
	}
	// Output:
	// allowed 2 0s
	// allowed 1 0s
	// limited 0 1m0s
	// limited 0 1m0s
}

// A configuration that is wrong is refused with all that is wrong with it.
func ExampleNew_invalid() {
	cfg := ratelimit.DefaultConfig()
	cfg.WindowInterval = time.Millisecond
	_, err := ratelimit.New(cfg)
	for line := range strings.Lines(err.Error()) {
		fmt.Println(strings.Contains(line, "GLOBAL_RATE_LIMIT_"), strings.Fields(line)[1])
	}
	// Output:
	// true WindowInterval
	// true RedisURLs
}

// An HTTP handler that says when to come back.
func ExampleDecision_RetryAfter() {
	cfg := ratelimit.DefaultConfig()
	cfg.GlobalThreshold = 2
	cfg.RedisURLs = []string{"memory://"}
	lim, err := ratelimit.New(cfg, ratelimit.WithClock(ratelimittest.NewClock()))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer lim.Close(context.Background())

	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d := lim.Check(r.URL.Path, 1)
		if d.Allowed() {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		httplimit.SetRetryAfter(w.Header(), d)
		w.WriteHeader(http.StatusTooManyRequests)
	})

	for range 2 {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequest("GET", "/", nil))
		fmt.Printf("%d %q\n", answer.Code, answer.Header().Get("Retry-After"))
	}
	// Output:
	// 204 ""
	// 429 "60"
}

// Overrides give single keys a threshold of their own, from the start or at any
// time later.
func ExampleLimiter_SetOverrides() {
	cfg := ratelimit.DefaultConfig()
	cfg.CustomKeys = ratelimit.Overrides{"gold": 1000}
	cfg.RedisURLs = []string{"memory://"}
	lim, err := ratelimit.New(cfg, ratelimit.WithClock(ratelimittest.NewClock()))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer lim.Close(context.Background())

	fmt.Println(lim.Peek("gold").Threshold(), lim.IsCustomKey("silver"))
	lim.SetOverrides(map[string]uint64{"gold": 2000, "silver": 500, "banned": 0})
	fmt.Println(lim.Peek("gold").Threshold(), lim.IsCustomKey("silver"), lim.Allow("banned"))
	// Output:
	// 1000 false
	// 2000 true false
}

// A resolver answers for whole classes of keys.
func ExampleWithResolver() {
	byPlan := func(key string) (threshold uint64, ok bool) {
		plan, _, found := strings.Cut(key, ":")
		threshold, ok = map[string]uint64{"free": 100, "paid": 10_000}[plan]
		return threshold, found && ok
	}
	cfg := ratelimit.DefaultConfig()
	cfg.RedisURLs = []string{"memory://"}
	lim, err := ratelimit.New(cfg, ratelimit.WithResolver(byPlan), ratelimit.WithClock(ratelimittest.NewClock()))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer lim.Close(context.Background())

	for _, key := range []string{"free:alice", "paid:bob", "carol"} {
		d := lim.Check(key, 1)
		fmt.Println(key, d.Threshold(), d.Custom())
	}
	fmt.Println(lim.CheckCustom("carol", 1).Verdict())
	// Output:
	// free:alice 100 true
	// paid:bob 10000 true
	// carol 1000000 false
	// not_applicable
}

// Peek looks and counts nothing.
func ExampleLimiter_Peek() {
	clock := ratelimittest.NewClock()
	cfg := ratelimit.DefaultConfig()
	cfg.GlobalThreshold, cfg.SyncByUnits = 120, false // synced by the tick alone, every second
	cfg.RedisURLs = []string{"memory://"}
	lim, err := ratelimit.New(cfg, ratelimit.WithClock(clock))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer lim.Close(context.Background())

	lim.Check("team_42", 60)
	for range 3 {
		d := lim.Peek("team_42")
		fmt.Println(d.Basis(), d.Level(), d.Remaining(), d.Reset())
		clock.Advance(11 * time.Second)
	}
	// Output:
	// local 60 60 2m0s
	// fleet 40 80 20s
	// fleet 18 102 31.000000001s
}

// A service usually takes its configuration from its environment.
func ExampleConfigFromEnv() {
	for name, value := range map[string]string{
		"GLOBAL_RATE_LIMIT_REDIS_URLS":           "redis://:secret@redis-1:6379/0",
		"GLOBAL_RATE_LIMIT_THRESHOLD":            "5000",
		"GLOBAL_RATE_LIMIT_WINDOW_INTERVAL_SECS": "30",
		"GLOBAL_RATE_LIMIT_OVERRIDES_CSV":        "team_42=10000,team_7=0",
	} {
		os.Setenv(name, value)
		defer os.Unsetenv(name)
	}
	cfg, err := ratelimit.ConfigFromEnv()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(cfg.GlobalThreshold, cfg.WindowInterval, cfg.CustomKeys["team_42"])
	fmt.Println(cfg.Resolved().SyncInterval)
	// Output:
	// 5000 30s 10000
	// 7.5s
}
