package ratelimit_test

// This file holds the Go of README.md, so that it compiles and does what it says.

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/ratelimit/httplimit"
)

// newHandler is the README's first screen.
func newHandler(lim *ratelimit.Limiter, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d := lim.Check(r.Header.Get("X-Team"), 1) // no I/O: a look-up in memory
		if !d.Allowed() {
			httplimit.SetRetryAfter(w.Header(), d) // when the same request would pass
			http.Error(w, "slow down", http.StatusTooManyRequests)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// A handler that refuses what is over the limit, and says when to come back.
func Example() {
	cfg := ratelimit.DefaultConfig()
	cfg.GlobalThreshold = 1000            // units per window and entity, of the whole fleet
	cfg.Inclusive = true                  // 1,000 pass, not 999
	cfg.Window = ratelimit.WindowSliding  // or leaky, the default, or fixed
	cfg.WindowInterval = time.Minute      // as by default
	cfg.RedisURLs = []string{"memory://"} // in production "redis://host:6379", one or more
	lim, err := ratelimit.New(cfg)
	if err != nil {
		panic(err)
	}
	defer lim.Close(context.Background())
	lim.Check("team_43", 5000) // a first contact passes, whatever it asks for

	handler := newHandler(lim, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {}))
	for _, team := range []string{"team_42", "team_42", "team_43"} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("X-Team", team)
		handler.ServeHTTP(w, r)
		fmt.Println(team, w.Code)
	}
	// Output:
	// team_42 200
	// team_42 200
	// team_43 429
}
