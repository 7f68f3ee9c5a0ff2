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
	f.cfg.TierScanIntervalTicks = ratelimit.DefaultConfig().TierScanIntervalTicks
}

// deadPartition lets one of three partitions hang or be gone, with many entities
// queued for it. The others' ticks are as many and as fast as before.
func deadPartition(hangs bool) func(*fleet) {
	return func(f *fleet) {
		node := f.nodes[1] // its table is large
		f.run(0.7)
		healthy := node.pace(f, []int{1, 2}, 2*window)

		dead := f.servers[0]
		f.time.fault(true)
		f.during(brief, func() {
			if hangs {
				dead.proxy.Handle(func(faultproxy.Request) faultproxy.Action { return faultproxy.Hang })
			} else {
				dead.proxy.Down()
			}
		}, func() {})
		node.stop()
		node.flood(f, 0, waiting)
		resume := node.pause()
		resume()
		beside := node.pace(f, []int{1, 2}, 2*window)
		if queued := node.Stats().Partitions[0].Queued; queued < waiting-f.cfg.MaxKeysPerScript { // the others are in flight
			f.Errorf("%d entities are queued for the dead partition, want %d", queued, waiting)
		}
		f.Logf("two healthy partitions in %v: %v; beside a dead one: %v", 2*window, healthy, beside)
		if beside.replies < healthy.replies/2 {
			f.Errorf("%d batches were answered beside a dead partition, %d before", beside.replies, healthy.replies)
		}
		if beside.median > 3*healthy.median+f.clock.real(5*time.Millisecond) {
			f.Errorf("an answer took %v beside a dead partition, %v before", beside.median, healthy.median)
		}

		dead.proxy.Handle(nil)
		up(f.T, dead)
		f.time.fault(false)
		f.run(0.7)
	}
}

// A pace is how many batches were answered, and how long the answers took.
type pace struct {
	replies uint64
	median  time.Duration
}

func (p pace) String() string { return fmt.Sprintf("%d answers, each in %v", p.replies, p.median) }

// pace measures some of the node's partitions for d.
func (m *member) pace(f *fleet, partitions []int, d time.Duration) (p pace) {
	before := m.Stats()
	for _, i := range partitions {
		m.witnesses[i].timed(true)
	}
	f.clock.sleep(d)
	after := m.Stats()
	var took []time.Duration
	for _, i := range partitions {
		took = append(took, m.witnesses[i].timed(false)...)
		p.replies += after.Partitions[i].Scripts - before.Partitions[i].Scripts
	}
	if len(took) > 0 {
		slices.Sort(took)
		p.median = took[len(took)/2]
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
