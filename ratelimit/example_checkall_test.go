package ratelimit_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/testing/ratelimittest"
)

// A request counts against its user, the user's tenant and all tenants together, or
// against none of them.
func ExampleLimiter_CheckAll() {
	cfg := ratelimit.DefaultConfig()
	cfg.GlobalThreshold = 5
	cfg.CustomKeys = ratelimit.Overrides{"tenant:acme": 50, "all": 1000}
	cfg.RedisURLs = []string{"memory://"}
	lim, err := ratelimit.New(cfg, ratelimit.WithClock(ratelimittest.NewClock()))
	if err != nil {
		log.Fatal(err)
	}
	defer lim.Close(context.Background())

	for range 5 {
		ds := lim.CheckAll([]ratelimit.Item{{Key: "user:ann", Units: 1}, {Key: "tenant:acme", Units: 1}, {Key: "all", Units: 1}})
		if !ds.Allowed() {
			fmt.Println("refused:", ds[0].Verdict(), ds[1].Verdict(), ds[2].Verdict())
			fmt.Println("retry after", ds.RetryAfter())
		}
	}
	fmt.Println("the tenant's level:", lim.Peek("tenant:acme").Level())
	// Output:
	// refused: limited allowed allowed
	// retry after 1m0s
	// the tenant's level: 4
}

// Two windows of one user: five requests a second, and eight an hour.
func ExampleLimiter_CheckAll_windows() {
	clock := ratelimittest.NewClock()
	limiter := func(threshold uint64, window time.Duration) *ratelimit.Limiter {
		cfg := ratelimit.DefaultConfig()
		cfg.Window, cfg.WindowInterval = ratelimit.WindowSliding, window
		cfg.GlobalThreshold, cfg.Inclusive = threshold, true
		cfg.RedisKeyPrefix = "example:" + window.String() // limiters of different windows need prefixes of their own
		cfg.RedisURLs = []string{"memory://"}
		lim, err := ratelimit.New(cfg, ratelimit.WithClock(clock))
		if err != nil {
			log.Fatal(err)
		}
		return lim
	}
	second, hour := limiter(5, time.Second), limiter(8, time.Hour)
	defer second.Close(context.Background())
	defer hour.Close(context.Background())

	for range 3 {
		passed := 0
		for range 10 {
			if second.CheckAll([]ratelimit.Item{{Key: "ann", Units: 1}, {Key: "ann", Units: 1, Limiter: hour}}).Allowed() {
				passed++
			}
		}
		fmt.Println(passed, "pass")
		clock.Advance(2 * time.Second)
	}
	// Output:
	// 5 pass
	// 3 pass
	// 0 pass
}

// The entities closest to their thresholds, for people who look after a service.
func ExampleLimiter_TopByPressure() {
	cfg := ratelimit.DefaultConfig()
	cfg.GlobalThreshold = 100
	cfg.RedisURLs = []string{"memory://"}
	lim, err := ratelimit.New(cfg, ratelimit.WithClock(ratelimittest.NewClock()))
	if err != nil {
		log.Fatal(err)
	}
	defer lim.Close(context.Background())

	lim.Check("ann", 20)
	lim.Check("bob", 90)
	lim.Check("eve", 60)
	top, _ := lim.TopByPressure(2)
	for _, e := range top {
		fmt.Printf("%s %.0f%% %v\n", e.Key, 100*e.Pressure, e.Tier)
	}
	// Output:
	// bob 90% hot
	// eve 60% normal
}
