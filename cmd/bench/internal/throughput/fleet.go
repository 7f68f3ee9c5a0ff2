package throughput

// This file is the nodes: limiters that share the fleet's counts.

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/VictoriaMetrics/metrics"

	"github.com/hanzoai/limiters/cmd/bench/internal/backend"
	"github.com/hanzoai/limiters/ratelimit"
)

// A fleet is the limiters of one run, each as if in a process of its own.
type fleet []*ratelimit.Limiter

// newFleet starts n nodes on a backend.
func newFleet(config ratelimit.Config, n int, b backend.Backend) (fleet, error) {
	var nodes fleet
	for i := range n {
		options, err := b.Options(config)
		if err == nil {
			// A set of its own keeps a node's metrics apart from the others'.
			options = append(options, ratelimit.WithMetricsSet(metrics.NewSet()))
			var node *ratelimit.Limiter
			if node, err = ratelimit.New(config, options...); err == nil {
				nodes = append(nodes, node)
				continue
			}
		}
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		_ = nodes.close(ended)
		return nil, fmt.Errorf("node %d: %w", i, err)
	}
	return nodes, nil
}

// close closes all nodes at once and returns what they say.
func (f fleet) close(ctx context.Context) error {
	errs := make([]error, len(f))
	var group sync.WaitGroup
	for i, node := range f {
		group.Go(func() { errs[i] = node.Close(ctx) })
	}
	group.Wait()
	return errors.Join(errs...)
}

// entities is how many entities the nodes remember, all together, and how many of
// them their last scans found in each tier.
func (f fleet) entities() (total int, tiers [4]int) {
	for _, node := range f {
		s := node.Stats()
		total += s.Entities
		for i, n := range s.Tiers {
			tiers[i] += n
		}
	}
	return total, tiers
}

// A costReport is what the nodes' syncs took, over all partitions.
type costReport struct {
	scripts, roundTrips, retries, writes, reads uint64
}

// totals sums the nodes' statistics up: the units that they counted, those that
// they lost, and what the syncs cost.
func (f fleet) totals() (counted uint64, loss lossReport, cost costReport) {
	for _, node := range f {
		s := node.Stats()
		counted += s.Counted
		loss.Undelivered += s.Undelivered
		loss.Unknown += s.Dropped.Unknown
		loss.Dropped += s.Dropped.Stale + s.Dropped.Poisoned + s.Dropped.Overflow + s.Dropped.Closed
		for _, p := range s.Partitions {
			cost.scripts += p.Scripts
			cost.roundTrips += p.RoundTrips
			cost.retries += p.Retries
			cost.writes += p.Writes
			cost.reads += p.Reads
		}
	}
	return counted, loss, cost
}
