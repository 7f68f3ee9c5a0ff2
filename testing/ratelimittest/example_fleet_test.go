package ratelimittest_test

// This file is a user's story: a fleet that shares a budget.

import (
	"fmt"
	"time"

	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/testing/ratelimittest"
)

// Twenty nodes share an hourly budget for a day. One key is offered half as much
// again as it may have, at all nodes alike; the day takes milliseconds.
func Example_fleet() {
	cfg := ratelimit.DefaultConfig()
	cfg.GlobalThreshold = 1000 // per hour, on all nodes together
	cfg.WindowInterval, cfg.TickInterval = time.Hour, time.Minute
	cfg.LocalCacheMaxEntries = 64 // a small table makes ticks cheap
	fleet := ratelimittest.NewFleet(nil, 20, cfg)

	run := ratelimittest.Start(fleet, ratelimittest.Traffic{
		Load: ratelimittest.Steady(1500.0 / 3600), // requests per second
		Keys: []string{"team_42"},
		Step: 10 * time.Second,
	})
	run.Advance(24 * time.Hour)

	report := run.Report("team_42")
	fmt.Println("offered in a day:", report.Offered)
	fmt.Printf("admitted in an hour: %.2f thresholds\n", report.Mean/1000)
	fmt.Printf("in the worst hour: %.2f\n", float64(report.Worst)/1000)
	fmt.Println("limited while the fleet was under its limit:", report.FalseLimits)
	// Output:
	// offered in a day: 36000
	// admitted in an hour: 1.01 thresholds
	// in the worst hour: 1.12
	// limited while the fleet was under its limit: 0
}
