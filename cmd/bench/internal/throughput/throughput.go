// Package throughput is the bench's throughput run: several limiters ("nodes") in one
// process, on real servers or on one that it embeds, under a load with a power law's
// popularity. It prints a summary and accounts for every unit.
//
// The files in the order of a run: throughput, flags, settings, calibrate, mix, traffic,
// fleet, worker, latency, progress, readback, conserve, result, report.
package throughput

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/hanzoai/limiters/cmd/bench/internal/backend"
	"github.com/hanzoai/limiters/cmd/bench/internal/command"
	"github.com/hanzoai/limiters/ratelimit"
)

// Run is the command: it checks keys at full speed, closes the nodes, and
// accounts for every unit. An end of ctx ends the load early, not the accounting.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parseOptions(args, stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return command.OK
	case err != nil:
		fmt.Fprintf(stderr, "bench: %v\n(bench -h lists the flags)\n", err)
		return command.Usage
	}
	text := stdout // what people read
	if o.json == "-" {
		text = stderr
	}
	config, err := settings(o)
	if err != nil {
		fmt.Fprintf(stderr, "bench: configuration:\n%v\n", err)
		return command.Usage
	}
	if o.env {
		writeSettings(text, config)
	}
	b, err := backend.New(&config)
	if err != nil {
		fmt.Fprintf(stderr, "bench: %v\n", err)
		return command.Failed
	}
	defer b.Close()

	r, err := measure(ctx, o, config, b, stderr)
	if err != nil {
		fmt.Fprintf(stderr, "bench: %v\n", err)
		return command.Failed
	}
	r.writeSummary(text)
	if o.json != "" {
		if err := r.writeJSON(o.json, stdout); err != nil {
			fmt.Fprintf(stderr, "bench: %v\n", err)
			return command.Failed
		}
	}
	if !r.Conserved {
		return command.Failed
	}
	return command.OK
}

// measure makes the run on a backend.
func measure(ctx context.Context, o *options, config ratelimit.Config, b backend.Backend, stderr io.Writer) (*result, error) {
	law, names := newPopularity(o.keys, o.zipf), backend.KeyNames(o.keys)
	config = config.Resolved()
	r := &result{
		Backend: b.Kind(), Partitions: b.Partitions(), Nodes: o.nodes, Workers: o.workers, Cores: runtime.GOMAXPROCS(0),
		Keys: o.keys, Zipf: o.zipf, Seed: o.seed, Prefix: config.RedisKeyPrefix, Window: config.WindowInterval, Tick: config.TickInterval,
	}
	if !o.env && o.threshold == 0 {
		rate, err := calibrate(o, config, b, law, names)
		if err != nil {
			return nil, err
		}
		now := time.Now()
		span := weighingSpan(now, now.Add(o.duration), config.WindowInterval)
		config.GlobalThreshold, r.ThresholdDerived = thresholdFor(law, rate*span.Seconds()), true
	}
	r.Threshold = config.GlobalThreshold

	nodes, err := newFleet(config, o.nodes, b)
	if err != nil {
		return nil, err
	}
	workers := newWorkers(nodes, o, config, law, names)
	begin := time.Now()
	entitySeconds := load(ctx, workers, o.duration, newProgress(stderr, o.duration), nodes)
	end := time.Now()
	r.Interrupted = ctx.Err() != nil
	r.Entities, r.NodeTiers = nodes.entities()

	// An interrupt is no reason to leave units behind.
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.closing)
	defer cancel()
	if err := nodes.close(closing); err != nil {
		r.CloseError = err.Error()
	}
	r.Close = time.Since(end)

	counted := make([]uint64, o.keys)
	r.addLoad(workers, counted, end.Sub(begin))
	byNodes, loss, cost := nodes.totals()
	ticks := uint64(end.Sub(begin)/config.TickInterval) + 1
	r.Syncs = uint64(o.nodes*b.Partitions()) * ticks
	r.Scripts, r.RoundTrips, r.Retries, r.Writes, r.Reads = cost.scripts, cost.roundTrips, cost.retries, cost.writes, cost.reads
	r.ReadsOfAll = uint64(2 * entitySeconds / config.SyncInterval.Seconds())
	r.BytesSent, r.BytesReceived = b.Bytes()

	first, last := epochsTouched(begin, end, config.WindowInterval)
	found, err := readBack(b, config.RedisKeyPrefix, names, first, last, end, config.WindowInterval)
	if err != nil {
		return nil, err
	}
	r.Counters, r.Tiers = found.counters, tiersOf(found.levels, config.GlobalThreshold)
	r.addAudit(newAudit(names, counted, found.units, byNodes, loss))
	if o.clean {
		return r, b.Clean(config.RedisKeyPrefix)
	}
	return r, nil
}

// newWorkers returns the workers, dealt out to the nodes in turn.
func newWorkers(nodes fleet, o *options, config ratelimit.Config, law popularity, names []string) []*worker {
	count := int(min(maxSlices, o.duration/config.TickInterval+1))
	size := max(1, o.slice/o.workers)
	workers := make([]*worker, o.workers)
	var group sync.WaitGroup
	for i := range workers {
		group.Go(func() {
			t := newTraffic(law, names, o.seed, i, count, size)
			workers[i] = newWorker(nodes[i%len(nodes)], t, config.TickInterval, config.CountLimited)
		})
	}
	group.Wait()
	return workers
}

// load runs the workers for a duration, or until ctx ends, and shows progress. It
// returns the integral of the number of entities on the nodes over time.
func load(ctx context.Context, workers []*worker, duration time.Duration, p progress, nodes fleet) (entitySeconds float64) {
	var stop atomic.Bool
	var group sync.WaitGroup
	begin := time.Now()
	for _, w := range workers {
		group.Go(func() { w.run(&stop) })
	}
	timer, steps, samples := time.NewTimer(duration), time.NewTicker(p.step()), time.NewTicker(250*time.Millisecond)
	defer timer.Stop()
	defer steps.Stop()
	defer samples.Stop()
	sampled := begin
	for running := true; running; {
		select {
		case <-ctx.Done():
			running = false
		case <-timer.C:
			running = false
		case <-steps.C:
			p.show(time.Since(begin), checksOf(workers))
		case now := <-samples.C:
			entities, _ := nodes.entities()
			entitySeconds += float64(entities) * now.Sub(sampled).Seconds()
			sampled = now
		}
	}
	stop.Store(true)
	group.Wait()
	p.end()
	return entitySeconds
}

// checksOf is how many checks the workers have made.
func checksOf(workers []*worker) uint64 {
	total := uint64(0)
	for _, w := range workers {
		total += w.checks.Load()
	}
	return total
}

// addLoad fills in what the workers saw, and adds the units that they saw recorded
// to the counts of the keys.
func (r *result) addLoad(workers []*worker, counted []uint64, elapsed time.Duration) {
	latencies := make([]*hdrhistogram.Histogram, len(workers))
	allowed := uint64(0)
	for i, w := range workers {
		w.traffic.addCounted(counted)
		latencies[i] = w.latencies
		allowed += w.allowed
	}
	r.addChecks(checksOf(workers), allowed, elapsed)
	r.Latency = mergeLatencies(latencies, clockReading())
	r.P99 = r.Latency.P99
}
