package httplimit_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/ratelimit/httplimit"
	"github.com/hanzoai/limiters/testing/ratelimittest"
)

// newLimiter returns a limiter of three requests per minute on a clock that stands
// still, so that the examples always print the same.
func newLimiter() *ratelimit.Limiter {
	cfg := ratelimit.DefaultConfig()
	cfg.GlobalThreshold, cfg.Inclusive = 3, true // three pass, and clients are told three
	cfg.RedisURLs = []string{"memory://"}
	lim, err := ratelimit.New(cfg, ratelimit.WithClock(ratelimittest.NewClock()))
	if err != nil {
		log.Fatal(err)
	}
	return lim
}

func hello(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }

// call sends one request to a handler and prints the answer.
func call(h http.Handler, field, value string) {
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set(field, value)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	fmt.Println(w.Code, w.Header().Values("RateLimit"), w.Header().Values("Retry-After"))
}

// Each API key may make three requests a minute.
func ExampleNew() {
	lim := newLimiter()
	defer lim.Close(context.Background())

	limit, err := httplimit.New(lim, httplimit.Header("X-Api-Key"))
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /", hello)
	handler := limit(mux)

	for range 4 {
		call(handler, "X-Api-Key", "k1")
	}
	// Output:
	// 200 ["default";r=2;t=120] []
	// 200 ["default";r=1;t=90] []
	// 200 ["default";r=0;t=80] []
	// 429 ["default";r=0;t=80] [80]
}

// Behind a load balancer in 10.0.0.0/8, each client address may make three requests
// a minute, whatever it writes into X-Forwarded-For itself.
func ExampleClientIP() {
	lim := newLimiter()
	defer lim.Close(context.Background())

	key, err := httplimit.ClientIP(httplimit.Proxies{Trusted: []string{"10.0.0.0/8"}})
	if err != nil {
		log.Fatal(err)
	}
	limit, err := httplimit.New(lim, httplimit.Prefixed("ip:", key))
	if err != nil {
		log.Fatal(err)
	}
	handler := limit(http.HandlerFunc(hello))

	for _, sent := range []string{"", "1.1.1.1, ", "2.2.2.2, ", "3.3.3.3, "} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = "10.1.2.3:4711"
		r.Header.Set("X-Forwarded-For", sent+"203.0.113.7") // what the balancer saw comes last
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		fmt.Println(w.Code)
	}
	// Output:
	// 200
	// 200
	// 200
	// 429
}

// A request for many items costs as much as many requests; health checks are free;
// and clients that are not ready for the draft's fields get the older ones.
func ExampleWithCost() {
	lim := newLimiter()
	defer lim.Close(context.Background())

	limit, err := httplimit.New(lim, httplimit.Header("X-Api-Key"),
		httplimit.WithCost(func(r *http.Request) uint64 {
			if r.URL.Query().Has("all") {
				return 3
			}
			return 1
		}),
		httplimit.WithSkip(func(r *http.Request) bool { return r.URL.Path == "/healthz" }),
		httplimit.WithFields(httplimit.XRateLimit),
	)
	if err != nil {
		log.Fatal(err)
	}
	handler := limit(http.HandlerFunc(hello))

	for _, target := range []string{"/?all", "/healthz", "/"} {
		r := httptest.NewRequest("GET", target, nil)
		r.Header.Set("X-Api-Key", "k1")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		fmt.Printf("%d %q\n", w.Code, w.Header().Get("X-RateLimit-Remaining"))
	}
	// Output:
	// 200 "0"
	// 200 ""
	// 429 "0"
}

// A handler that would rather serve less than nothing runs the limiter dry, and
// looks at the decision itself.
func ExampleDecision() {
	cfg := ratelimit.DefaultConfig()
	cfg.GlobalThreshold, cfg.Inclusive = 1, true
	cfg.DryRun = true
	cfg.RedisURLs = []string{"memory://"}
	lim, err := ratelimit.New(cfg, ratelimit.WithClock(ratelimittest.NewClock()))
	if err != nil {
		log.Fatal(err)
	}
	defer lim.Close(context.Background())

	limit, err := httplimit.New(lim, httplimit.Header("X-Api-Key"))
	if err != nil {
		log.Fatal(err)
	}
	handler := limit(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if d, ok := httplimit.Decision(r.Context()); ok && d.Verdict() == ratelimit.VerdictLimited {
			fmt.Println("the short answer")
			return
		}
		fmt.Println("the whole answer")
	}))

	call(handler, "X-Api-Key", "k1")
	call(handler, "X-Api-Key", "k1")
	// Output:
	// the whole answer
	// 200 [] []
	// the short answer
	// 200 [] []
}

// Any function of the request can say whose it is.
func ExampleKeyFunc() {
	lim := newLimiter()
	defer lim.Close(context.Background())

	var byRoute httplimit.KeyFunc = func(r *http.Request) (string, error) {
		user, _, ok := r.BasicAuth()
		if !ok {
			return "", nil // refused with 400, unless WithEmptyKeys says otherwise
		}
		return user + " " + r.Pattern, nil
	}
	limit, err := httplimit.New(lim, byRoute, httplimit.WithRefused(
		func(w http.ResponseWriter, _ *http.Request, _ error) {
			w.Header().Set("WWW-Authenticate", "Basic")
			w.WriteHeader(http.StatusUnauthorized)
		}))
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /reports/{id}", limit(http.HandlerFunc(hello)))

	for _, user := range []string{"ann", ""} {
		r := httptest.NewRequest("GET", "/reports/7", nil)
		if user != "" {
			r.SetBasicAuth(user, "secret")
		}
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		fmt.Println(w.Code)
	}
	fmt.Println(lim.IsCustomKey("ann GET /reports/{id}"), lim.Peek("ann GET /reports/{id}").Level())
	// Output:
	// 200
	// 401
	// false 1
}
