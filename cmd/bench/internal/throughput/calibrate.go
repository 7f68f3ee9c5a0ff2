package throughput

// This file finds out how fast this machine checks, for a threshold that fits.

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/hanzoai/limiters/cmd/bench/internal/backend"
	"github.com/hanzoai/limiters/ratelimit"
)

// calibrationTime is how long the load is tried before the run: less than a tick
// of most configurations, so that it leaves nothing anywhere.
const calibrationTime = 400 * time.Millisecond

// syncsLeave is the share of that speed that a run is expected to keep while it
// also syncs. An embedded server takes its part of the cores.
func syncsLeave(b backend.Backend) float64 {
	if b.Kind() == "embedded" {
		return 0.55
	}
	return 0.75
}

// calibrate returns how many checks a second a run of the same nodes and workers
// can be expected to make on the backend, from a short one on counts in memory.
func calibrate(o *options, config ratelimit.Config, b backend.Backend, law popularity, names []string) (float64, error) {
	config.GlobalThreshold = 1 << 50
	nodes, err := newFleet(config, o.nodes, backend.NewMemory(1))
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
	return syncsLeave(b) * rate, nil
}
