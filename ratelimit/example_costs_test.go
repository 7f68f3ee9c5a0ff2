package ratelimit_test

// This file holds the Go of docs/costs.md, so that it compiles and does what it says.

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/ratelimit/httplimit"
	"github.com/hanzoai/limiters/testing/ratelimittest"
)

// A Model answers prompts, and says afterwards what that cost.
type Model func(prompt string, most uint64) (text string, tokens uint64, err error)

// completions is an API that charges each tenant for the tokens of its answers.
func completions(lim *ratelimit.Limiter, model Model) http.Handler {
	const most = 4000 // tokens that an answer may have
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		res := lim.Reserve(r.Header.Get("X-Tenant"), most)
		defer res.Cancel() // gives all back, unless Commit came first
		if d := res.Decision(); !d.Allowed() {
			httplimit.SetRetryAfter(w.Header(), d)
			http.Error(w, "no tokens left", http.StatusTooManyRequests)
			return
		}
		text, tokens, err := model(r.FormValue("prompt"), most)
		if err != nil {
			http.Error(w, "the model failed", http.StatusBadGateway)
			return
		}
		res.Commit(tokens) // gives most − tokens back
		fmt.Fprint(w, text)
	})
}

// Tokens are charged after the answer: 10,000 a minute for each tenant.
func ExampleLimiter_Reserve() {
	cfg := ratelimit.DefaultConfig()
	cfg.GlobalThreshold, cfg.Inclusive, cfg.Window = 10_000, true, ratelimit.WindowSliding
	lim := ratelimittest.NewLimiter(nil, ratelimittest.NewClock(), cfg)

	costs := map[string]uint64{"short": 50, "long": 3900}
	handler := completions(lim, func(prompt string, _ uint64) (string, uint64, error) {
		tokens, ok := costs[prompt]
		if !ok {
			return "", 0, errors.New("overloaded")
		}
		return "answer", tokens, nil
	})
	for _, prompt := range []string{"long", "broken", "short", "long", "short"} {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/?prompt="+prompt, nil)
		r.Header.Set("X-Tenant", "ann")
		handler.ServeHTTP(w, r)
		fmt.Println(prompt, w.Code, lim.Peek("ann").Level(), "tokens")
	}
	// Output:
	// long 200 3900 tokens
	// broken 502 3900 tokens
	// short 200 3950 tokens
	// long 200 7850 tokens
	// short 429 7850 tokens
}

// logIn lets each user fail five times an hour, on all servers together.
func logIn(lim *ratelimit.Limiter, verify func(user, password string) bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user := r.FormValue("user")
		d, err := lim.CheckFleet(r.Context(), user, 1) // an attempt costs one unit
		if err != nil {
			log.Print(err) // d is what this server knows by itself
		}
		if !d.Allowed() {
			httplimit.SetRetryAfter(w.Header(), d)
			http.Error(w, "too many attempts", http.StatusTooManyRequests)
			return
		}
		if !verify(user, r.FormValue("password")) {
			lim.Record(user, 4) // and a failed one four more
			http.Error(w, "wrong password", http.StatusUnauthorized)
			return
		}
		fmt.Fprint(w, "welcome")
	})
}

// Log-ins are asked about in the fleet's counters: a user who tries all servers in turn has
// five failures an hour, not five on each.
func ExampleLimiter_CheckFleet() {
	cfg := ratelimit.DefaultConfig()
	cfg.GlobalThreshold, cfg.Inclusive = 25, true
	cfg.Window, cfg.WindowInterval = ratelimit.WindowFixed, time.Hour
	clock := ratelimittest.NewClock()
	redis := ratelimittest.NewStore(clock)
	var servers []http.Handler
	for range 4 {
		lim := ratelimittest.NewLimiter(nil, clock, cfg, ratelimittest.WithStore(redis))
		servers = append(servers, logIn(lim, func(_, password string) bool { return password == "right" }))
	}
	for i, password := range []string{"a", "b", "right", "c", "d", "e", "right"} {
		w, r := httptest.NewRecorder(), httptest.NewRequest("POST", "/?user=ann&password="+password, nil)
		servers[i%4].ServeHTTP(w, r)
		fmt.Println("server", i%4, "password", password, w.Code)
		clock.Advance(2 * time.Second)
	}
	// Output:
	// server 0 password a 401
	// server 1 password b 401
	// server 2 password right 200
	// server 3 password c 401
	// server 0 password d 401
	// server 1 password e 401
	// server 2 password right 429
}

// An importer that must not lose anything is slowed down instead of refused.
func ExampleLimiter_Wait() {
	cfg := ratelimit.DefaultConfig()
	cfg.GlobalThreshold, cfg.Inclusive, cfg.Window = 100, true, ratelimit.WindowFixed
	clock := ratelimittest.NewClock()
	lim := ratelimittest.NewLimiter(nil, clock, cfg)

	began := clock.Time()
	ctx, cancel := clock.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	clock.RunWaits(lim, func() {
		for batch := range 5 {
			err := lim.Wait(ctx, "imports", 50)
			fmt.Println("batch", batch, "after", clock.Time().Sub(began))
			if errors.Is(err, context.DeadlineExceeded) {
				fmt.Println("which is too early: it will not pass in time")
			}
		}
	})
	// Output:
	// batch 0 after 0s
	// batch 1 after 0s
	// batch 2 after 1m0s
	// batch 3 after 1m0s
	// batch 4 after 1m0s
	// which is too early: it will not pass in time
}
