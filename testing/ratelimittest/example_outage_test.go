package ratelimittest_test

// This file is a user's story: Redis is down for ten minutes.

import (
	"fmt"
	"time"

	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/testing/ratelimittest"
)

// Redis is down for ten minutes. The limiter goes on deciding, by what this node
// counts itself; when Redis is back, what was counted is delivered.
func Example_outage() {
	cfg := ratelimit.DefaultConfig()
	cfg.GlobalThreshold = 100 // per minute
	clock := ratelimittest.NewClock()
	store := ratelimittest.NewStore(clock)
	lim := ratelimittest.NewLimiter(nil, clock, cfg, ratelimittest.WithStore(store))

	burst := func(when string) {
		passed := 0
		for range 200 {
			if lim.Allow("team_42") {
				passed++
			}
		}
		fmt.Printf("%s: %d of 200 pass\n", when, passed)
	}

	burst("Redis is up")
	clock.Advance(time.Second) // a tick: the units reach the store

	store.Fail(ratelimittest.Unreachable)
	clock.Advance(10 * time.Minute)
	burst("Redis is down")
	burst("at once again")
	clock.Advance(time.Second)
	fmt.Println("waiting:", lim.Stats().Undelivered, "units; up:", lim.Stats().Partitions[0].Up)

	store.Heal()
	clock.Advance(time.Second)
	fmt.Println("waiting:", lim.Stats().Undelivered, "units; up:", lim.Stats().Partitions[0].Up)
	fmt.Println("decided on:", lim.Peek("team_42").Basis())
	// Output:
	// Redis is up: 99 of 200 pass
	// Redis is down: 99 of 200 pass
	// at once again: 0 of 200 pass
	// waiting: 99 units; up: false
	// waiting: 0 units; up: true
	// decided on: fleet
}
