package main

// This file finds out how fast this machine checks, for a threshold that fits.

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/hanzoai/limiters/ratelimit"
)

// calibrationTime is how long the load is tried before the run.
const calibrationTime = 400 * time.Millisecond

// calibrate returns how many checks a second the same nodes and workers make on
// counts in memory.
func calibrate(o *options, config ratelimit.Config, law popularity, names []string) (float64, error) {
	b := newMemory(1)
	defer b.close()
	config.GlobalThreshold = 1 << 50
	nodes, err := newFleet(config, o.nodes, b)
	if err != nil {
		return 0, fmt.Errorf("calibrating: %w", err)
	}
	workers := newWorkers(nodes, o, config, law, names)
	begin := time.Now()
	load(context.Background(), workers, calibrationTime, &lines{w: io.Discard}, nodes)
	rate := float64(checksOf(workers)) / time.Since(begin).Seconds()
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	// Its units were counted for nobody.
	_ = nodes.close(ended)
	return rate, nil
}
