package ratelimittest_test

// This file is README.md's example of a test.

import (
	"fmt"
	"time"

	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/testing/ratelimittest"
)

// "Half a minute later" and "Redis is down", without sleeping and without Redis.
func Example_timeTravel() {
	cfg := ratelimit.DefaultConfig()
	cfg.GlobalThreshold, cfg.Inclusive = 100, true // per minute

	clock := ratelimittest.NewClock()
	store := ratelimittest.NewStore(clock)                                           // in place of Redis
	lim := ratelimittest.NewLimiter(nil, clock, cfg, ratelimittest.WithStore(store)) // in a test: t, not nil
	burst := func() (passed int) {
		for range 200 {
			if lim.Allow("team_42") {
				passed++
			}
		}
		return passed
	}
	fmt.Println("at once:", burst())
	clock.Advance(30 * time.Second) // what becomes due runs in here; nothing sleeps
	fmt.Println("half a minute later:", burst())

	store.Fail(ratelimittest.Unreachable)
	clock.Advance(2 * time.Minute)
	fmt.Println("Redis down:", burst(), "pass,", lim.Stats().Undelivered, "wait")
	store.Heal()
	clock.Advance(time.Second)
	fmt.Println("Redis up:", lim.Stats().Undelivered, "wait")
	// Output:
	// at once: 100
	// half a minute later: 49
	// Redis down: 100 pass, 100 wait
	// Redis up: 0 wait
}
