package ratelimittest_test

// This file is a user's story: a handler that refuses, and its test.

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"time"

	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/ratelimit/httplimit"
	"github.com/hanzoai/limiters/testing/ratelimittest"
)

// handler is a service under test. A request costs a team 10 units; above its limit
// it is refused, and told when to return.
func handler(lim *ratelimit.Limiter) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		d := lim.Check(r.Header.Get("Team"), 10)
		if !d.Allowed() {
			httplimit.SetRetryAfter(w.Header(), d)
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}
}

// A handler refuses and says when to return. The test waits exactly that long,
// without sleeping.
func Example_handler() {
	cfg := ratelimit.DefaultConfig()
	cfg.GlobalThreshold = 65 // per minute
	clock := ratelimittest.NewClock()
	lim := ratelimittest.NewLimiter(nil, clock, cfg) // in a test: NewLimiter(t, …)

	get := func() *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.Header.Set("Team", "team_42")
		w := httptest.NewRecorder()
		handler(lim)(w, r)
		return w
	}
	passed := 0
	for get().Code == http.StatusOK {
		passed++
	}
	fmt.Println("at once:", passed)

	clock.Advance(time.Second) // a tick: the store knows now
	refused := get()
	wait, _ := strconv.Atoi(refused.Header().Get("Retry-After"))
	fmt.Println(refused.Code, "come back in", wait, "s")

	clock.Advance(time.Duration(wait) * time.Second)
	fmt.Println("in time:", get().Code)
	// Output:
	// at once: 6
	// 429 come back in 6 s
	// in time: 200
}
