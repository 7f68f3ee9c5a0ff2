// This file holds the healthy partitions to what they do beside a dead one.

package integration

import (
	"fmt"
	"slices"
	"time"

	"github.com/hanzoai/limiters/internal/hashring"
	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/testing/integration/faultproxy"
)

var partitionScenarios = []scenario{
	{name: "partition-hung", run: deadPartition(true), change: usualScan, partitions: 3, nodes: 3, keys: 300, stale: true, unknown: true},
	{name: "partition-gone", run: deadPartition(false), change: usualScan, partitions: 3, nodes: 3, keys: 300, stale: true, unknown: true},
}

// waiting is how many entities are queued for the dead partition.
const waiting = 60_000

// usualScan has nodes walk their tables as often as in production: at the suite's
// own pace a table of so many entities is walked all the time.
func usualScan(f *fleet) {
	f.cfg.SyncByUnits = false // ticks are compared, and how many scripts units make depends on the load
	f.cfg.TierScanIntervalTicks = ratelimit.DefaultConfig().TierScanIntervalTicks
}

// deadPartition lets one of three partitions hang or be gone, with many entities
// queued for it. The others' ticks are as many and as fast as those of a node that
// has no such partition, at the same time.
func deadPartition(hangs bool) func(*fleet) {
	return func(f *fleet) {
		node, control := f.nodes[1], f.startOn("the control", 1) // their tables are large
		f.run(0.7)
		dead := f.servers[0]
		f.time.fault(true)
		began := f.clock.mono.Load()
		f.during(brief, func() {
			if hangs {
				dead.proxy.Handle(func(faultproxy.Request) faultproxy.Action { return faultproxy.Hang })
			} else {
				dead.proxy.Down()
			}
		}, func() {})
		resume := node.pause()
		node.flood(f, 0, waiting)
		resume()
		f.run(0.7)
		for _, m := range []*member{node, control} {
			m.begin(2)
		}
		f.clock.sleep(2 * window)
		beside, healthy := node.end(2), control.end(2)
		// One batch is in flight, and one is given up for every window at most: what it
		// carried waits no more.
		batches := 2 + int(time.Duration(f.clock.mono.Load()-began)/window)
		if queued := node.Stats().Partitions[0].Queued; queued < waiting-batches*f.cfg.MaxKeysPerScript {
			f.Errorf("%d entities are queued for the dead partition, want %d less those of %d batches", queued, waiting, batches)
		}
		f.Logf("two partitions in %v: %v; beside a dead one: %v", 2*window, healthy, beside)
		if beside.replies < healthy.replies/2 {
			f.Errorf("%d batches were answered beside a dead partition, %d without one", beside.replies, healthy.replies)
		}
		if beside.median > 3*healthy.median+f.clock.real(5*time.Millisecond) {
			f.Errorf("an answer took %v beside a dead partition, %v without one", beside.median, healthy.median)
		}

		dead.proxy.Handle(nil)
		up(f.T, dead)
		f.time.fault(false)
		f.run(0.7)
	}
}

// A pace is how many batches were answered, and how long the answers took.
type pace struct {
	replies int
	median  time.Duration
}

func (p pace) String() string { return fmt.Sprintf("%d answers, each in %v", p.replies, p.median) }

// begin begins to measure the node's last partitions.
func (m *member) begin(last int) {
	for _, w := range m.witnesses[len(m.witnesses)-last:] {
		w.timed(true)
	}
}

// end ends that.
func (m *member) end(last int) (p pace) {
	var took []time.Duration
	for _, w := range m.witnesses[len(m.witnesses)-last:] {
		took = append(took, w.timed(false)...)
	}
	if len(took) > 0 {
		slices.Sort(took)
		p = pace{len(took), took[len(took)/2]}
	}
	return p
}

// flood checks so many keys that belong to a partition, once each. The node's
// traffic must rest.
func (m *member) flood(f *fleet, partition, keys int) {
	names := make([]string, len(f.servers))
	for i := range names {
		names[i] = fmt.Sprintf("p%d", i)
	}
	ring, err := hashring.New(names)
	if err != nil {
		f.Fatal(err)
	}
	for i := 0; keys > 0; i++ {
		if key := fmt.Sprintf("team:flood:%d", i); ring.Owner(key) == partition {
			m.offer(key, 1)
			keys--
		}
	}
}
