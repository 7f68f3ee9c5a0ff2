package throughput

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/hanzoai/limiters/cmd/bench/internal/backend"
	"github.com/hanzoai/limiters/ratelimit"
)

// An admitter allows everything and notes what it was asked.
type admitter struct {
	asked []string
	stop  *atomic.Bool // set at the first question
}

func (a *admitter) Check(key string, n uint64) ratelimit.Decision {
	if n != 1 {
		panic("a check of other than one unit")
	}
	a.asked = append(a.asked, key)
	if a.stop != nil {
		a.stop.Store(true)
	}
	return ratelimit.Decision{}
}

func TestAPassChecksEverySlotOnceAndTimesSome(t *testing.T) {
	t.Parallel()
	node := &admitter{}
	traffic := newTraffic(newPopularity(50, 2), backend.KeyNames(50), 1, 0, 1, 2*sampleEvery+1)
	w := newWorker(node, traffic, time.Second, false)
	w.pass(traffic.slots)
	w.pass(traffic.slots)
	if want := 2 * len(traffic.slots); len(node.asked) != want || w.allowed != uint64(want) {
		t.Errorf("%d checks, %d allowed; want %d", len(node.asked), w.allowed, want)
	}
	for i, s := range traffic.slots {
		if s.key != node.asked[i] || s.counted != 2 {
			t.Fatalf("slot %d (%s): asked %s, counted %d; want 2", i, s.key, node.asked[i], s.counted)
		}
	}
	if got := w.latencies.TotalCount(); got != 2*3 {
		t.Errorf("%d samples, want 6", got)
	}
}

func TestAWorkerStopsAfterAWholePass(t *testing.T) {
	t.Parallel()
	var stop atomic.Bool
	node := &admitter{stop: &stop}
	w := newWorker(node, newTraffic(newPopularity(50, 2), backend.KeyNames(50), 1, 0, 2, 100), time.Hour, false)
	w.run(&stop)
	if w.checks.Load() != 100 || len(node.asked) != 100 {
		t.Errorf("%d checks counted, %d made; want 100", w.checks.Load(), len(node.asked))
	}
}

func TestLimitedUnitsCountOnlyIfTheLimiterRecordsThem(t *testing.T) {
	t.Parallel()
	for _, countLimited := range []bool{false, true} {
		config := ratelimit.DefaultConfig()
		config.GlobalThreshold, config.CountLimited = 0, countLimited // nothing is allowed
		config.RedisURLs = []string{"memory://"}
		nodes, err := newFleet(config, 1, backend.NewMemory(1))
		if err != nil {
			t.Fatal(err)
		}
		traffic := newTraffic(newPopularity(5, 2), backend.KeyNames(5), 1, 0, 1, 200)
		w := newWorker(nodes[0], traffic, time.Second, countLimited)
		w.pass(traffic.slots)
		if err := nodes.close(t.Context()); err != nil {
			t.Fatal(err)
		}
		counted := make([]uint64, 5)
		traffic.addCounted(counted)
		seen := uint64(0)
		for _, n := range counted {
			seen += n
		}
		byNode, _, _ := nodes.totals()
		want := uint64(0)
		if countLimited {
			want = 200
		}
		if w.allowed != 0 || seen != want || byNode != want {
			t.Errorf("count limited %v: %d allowed, worker counted %d, node %d; want 0, %d, %d", countLimited, w.allowed, seen, byNode, want, want)
		}
	}
}

// BenchmarkPassOverhead is what the bench itself adds to each check, the reading
// of the clock included.
func BenchmarkPassOverhead(b *testing.B) {
	traffic := newTraffic(newPopularity(10_000, defaultExponent), backend.KeyNames(10_000), 1, 0, 1, 4096)
	w := newWorker(nothing{}, traffic, time.Second, false)
	for b.Loop() {
		w.pass(traffic.slots)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/4096, "ns/check")
}

// nothing answers without deciding.
type nothing struct{}

func (nothing) Check(string, uint64) ratelimit.Decision { return ratelimit.Decision{} }
