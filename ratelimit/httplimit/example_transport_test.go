package httplimit_test

// This file holds the client of docs/costs.md, so that it compiles and does what it says.

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/ratelimit/httplimit"
	"github.com/hanzoai/limiters/testing/ratelimittest"
)

// newClient returns a client of an API that lets our whole fleet make so many requests a
// minute.
func newClient(lim *ratelimit.Limiter) *http.Client {
	return &http.Client{
		Transport: &httplimit.Transport{
			Limiter: lim,
			Cost: func(r *http.Request) uint64 {
				if r.Method == http.MethodGet {
					return 1
				}
				return 5 // the API counts writes five times
			},
		},
		Timeout: 5 * time.Minute, // which counts the wait
	}
}

// A client waits for somebody else's API instead of being refused by it.
func ExampleTransport() {
	cfg := ratelimit.DefaultConfig()
	cfg.GlobalThreshold, cfg.Inclusive = 10, true // what the API allows
	cfg.Window = ratelimit.WindowFixed            // as the API counts
	clock := ratelimittest.NewClock()
	lim := ratelimittest.NewLimiter(nil, clock, cfg)

	began := clock.Time()
	api := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		fmt.Println(r.Method, "after", clock.Time().Sub(began))
	}))
	defer api.Close()

	client := newClient(lim)
	clock.RunWaits(lim, func() {
		for range 3 {
			for _, method := range []string{http.MethodGet, http.MethodPost} {
				r, err := http.NewRequest(method, api.URL, nil)
				if err != nil {
					log.Fatal(err)
				}
				resp, err := client.Do(r)
				if err != nil {
					log.Fatal(err)
				}
				resp.Body.Close()
			}
		}
	})
	// Output:
	// GET after 0s
	// POST after 0s
	// GET after 0s
	// POST after 1m0s
	// GET after 1m0s
	// POST after 2m0s
}
