// This file is the fault suite: a fleet on real servers keeps its promises while
// everything around it breaks. docs/failures.md is its result.
//
// A scenario runs a fleet under steady traffic for some windows, breaks something
// at moments that the seed chooses, heals it, and then accounts for every unit, by
// key and by epoch.

package integration

import (
	"flag"
	"fmt"
	"hash/fnv"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	faultsSeed = flag.Uint64("faults.seed", 1, "seed of the fault suite")
	faultsSoak = flag.Duration("faults.soak", 5*time.Second, "how long the fault suite's soak lasts")
	faultsOnly = flag.String("faults.only", "", "run the scenarios whose names match this pattern alone")
)

// faultsAtOnce is how many scenarios run beside each other, per processor: they
// mostly wait.
const faultsAtOnce = 2

// A scenario is one fault, or one family of them.
type scenario struct {
	name string
	run  func(f *fleet)

	args                    []string // of redis-server
	nodes, partitions, keys int      // 0: as the seed chooses
	change                  func(f *fleet)
	stays                   bool // no node is closed during the fault

	// What the fault may cost. Without these not a unit is dropped but by a node
	// that is closed or dies.
	stale    bool // it outlasts the epochs that can be read, or a clock does
	unknown  bool // it removes the sequence key, or a batch is given up in flight
	poisons  bool // counters are made to hold no count
	destroys bool // it destroys what Redis holds: what was acknowledged later must be there
}

// scenarios returns all of them. The long ones come first.
func scenarios() []scenario {
	return slices.Concat(
		soakScenarios, partitionScenarios, nodeScenarios, processScenarios, failoverScenarios, refusalScenarios,
		dataScenarios, wireScenarios, connectionScenarios,
	)
}

// TestFaults runs every scenario, and prints what was lost and doubled.
func TestFaults(t *testing.T) {
	t.Parallel()
	only := regexp.MustCompile(*faultsOnly)
	todo := make(chan scenario)
	var sum struct {
		sync.Mutex
		tally
	}
	var workers sync.WaitGroup
	for range faultsAtOnce * runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for s := range todo {
				t.Run(s.name, func(t *testing.T) {
					var result tally // of a scenario that came to its end
					defer func() {
						sum.Lock()
						defer sum.Unlock()
						sum.add(result)
					}()
					began := time.Now()
					f := newFleet(t, &s, *faultsSeed)
					s.run(f)
					result = f.finish(&s)
					t.Logf("seed %d: %d nodes, %d partitions, %d keys, %v at pace %.1f: %d units counted, %d in Redis, %s",
						*faultsSeed, len(f.nodes), len(f.servers), len(f.keys), time.Since(began).Round(time.Millisecond), f.clock.pace,
						result.counted, result.stayed, result.tally())
				})
			}
		})
	}
	for _, s := range scenarios() {
		if only.MatchString(s.name) {
			todo <- s
		}
	}
	close(todo)
	workers.Wait()
	fmt.Printf("faults: seed=%d %s\n", *faultsSeed, sum.tally)
}

// tally leaves out the number of scenarios, which is 1.
func (t tally) tally() string {
	_, rest, _ := strings.Cut(t.String(), " ")
	return rest
}

// TestFaultsAreDocumented holds docs/failures.md to the suite: it names every
// scenario with the file that it is in, and no other.
func TestFaultsAreDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/failures.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]string{}
	for _, link := range regexp.MustCompile("\\[`([a-z0-9-]+)`\\]\\(\\.\\./testing/integration/(faults_[a-z]+_test\\.go)\\)").FindAllStringSubmatch(string(page), -1) {
		documented[link[1]] = link[2]
	}
	for _, s := range scenarios() {
		file := documented[s.name]
		delete(documented, s.name)
		if file == "" {
			t.Errorf("docs/failures.md does not link %s", s.name)
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(source), fmt.Sprintf("name: %q", s.name)) {
			t.Errorf("docs/failures.md says that %s is in %s; it is not (%v)", s.name, file, err)
		}
	}
	for name := range documented {
		t.Errorf("docs/failures.md links %s, which is no scenario", name)
	}
}

// requireRedis says whether a test may not skip for want of a server.
func requireRedis() bool { return os.Getenv("REQUIRE_REDIS") == "1" }

// hashOf makes a scenario's name a part of its seed.
func hashOf(name string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return h.Sum64()
}
