// This file checks what several nodes admit together.

package integration

import (
	"fmt"
	"testing"
	"time"

	"github.com/hanzoai/limiters/internal/hashring"
	"github.com/hanzoai/limiters/ratelimit"
)

// Nodes take turns at one unit, and tell Redis after each. A node knows the total
// as of its last turn, so n of them admit n − 1 units more than one would: each of
// the others does at most one that this one does not know of yet.
func TestSuiteNodesShareABudget(t *testing.T) {
	t.Parallel()
	for _, nodes := range []int{1, 2, 10} {
		t.Run(fmt.Sprint(nodes), func(t *testing.T) {
			t.Parallel()
			s := newSuite(t)
			const threshold = 100
			fleet := make([]*suiteNode, nodes)
			for i := range fleet {
				fleet[i] = s.node(nil)
			}
			admitted := 0
			for turn := range 2 * threshold {
				n := fleet[turn%nodes]
				admitted += n.allowed("team", 1)
				n.sync()
			}
			if want := threshold - 1 + nodes - 1; admitted != want {
				t.Errorf("%d nodes admitted %d units of %d, want %d", nodes, admitted, threshold, want)
			}
			s.expectTotal("team", s.epoch(suiteWindow), int64(admitted))
			for i, n := range fleet {
				if n.Allow("team") {
					t.Errorf("node %d does not limit", i)
				}
			}

			// One that comes late passes its first contact, learns, and limits.
			late := s.node(nil)
			late.allowed("team", 1)
			late.sync()
			if d := late.Check("team", 1); d.Allowed() || d.Basis() != ratelimit.BasisFleet || d.Level() != float64(admitted+2) {
				t.Errorf("a late node: %+v, want limited at %d", d, admitted+2)
			}
		})
	}
}

// Ten nodes under a load of ten thresholds for three windows, ticking at the same
// times: from the first tick on each of them limits.
func TestSuiteTheSecondNodeLimitsToo(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	const nodes, threshold = 10, 640
	fleet := make([]*suiteNode, nodes)
	for i := range fleet {
		fleet[i] = s.node(func(c *ratelimit.Config) { c.GlobalThreshold = threshold })
	}
	admitted := map[int64]int{}
	for range 3 * 64 {
		for _, n := range fleet {
			admitted[s.epoch(suiteWindow)] += n.allowed("team", 10)
		}
		s.clock.Advance(time.Second)
	}
	for epoch, got := range admitted {
		s.expectTotal("team", epoch, int64(got))
	}
	// One tick of the load is 100 units. Nodes that knew nothing of each other would
	// admit 6,390 in the first window.
	first := s.epoch(suiteWindow) - 3
	if got := admitted[first]; got < threshold-1 || got > 2*threshold {
		t.Errorf("%d units admitted in the first window, want between %d and %d", got, threshold-1, 2*threshold)
	}
	for i, n := range fleet {
		if st := n.Stats(); st.Limited < st.Allowed {
			t.Errorf("node %d limited %d and allowed %d", i, st.Limited, st.Allowed)
		}
	}
}

// Every counter is on the server that owns its entity, and on no other, whatever
// the order in which a node is told the servers.
func TestSuitePartitions(t *testing.T) {
	t.Parallel()
	for _, partitions := range []int{1, 2, 5} {
		t.Run(fmt.Sprint(partitions), func(t *testing.T) {
			t.Parallel()
			s := newSuiteOf(t, partitions)
			a := s.node(nil)
			b := s.node(func(c *ratelimit.Config) {
				c.RedisURLs = append([]string{s.urls[partitions-1]}, s.urls[:partitions-1]...)
			})
			var names []string
			for _, p := range a.Stats().Partitions {
				names = append(names, p.Name)
			}
			ring, err := hashring.New(names)
			if err != nil {
				t.Fatal(err)
			}
			const entities = 300
			want := make([]map[string]int64, partitions)
			for i := range entities {
				entity := fmt.Sprint("team_", i)
				owner := ring.Owner(entity)
				if want[owner] == nil {
					want[owner] = map[string]int64{}
				}
				want[owner][s.key(entity, s.epoch(suiteWindow))] = int64(3 + i%5)
				a.Check(entity, 3)
				if i%5 > 0 {
					b.Check(entity, uint64(i%5))
				}
			}
			s.clock.Advance(time.Second)
			for server, counters := range want {
				keys := s.keys(server)
				if got := len(keys); got != len(counters)+3 { // two sequence keys and the window key
					t.Errorf("server %d holds %d keys for %d counters and two nodes", server, got, len(counters))
				}
				for key, units := range counters {
					if got := s.totals(server, []string{key})[0]; got != units {
						t.Errorf("%s holds %d on server %d, want %d", key, got, server, units)
					}
				}
			}
			for _, n := range []*suiteNode{a, b} {
				st := n.Stats()
				for _, p := range st.Partitions {
					if !p.Up || p.RoundTrips != 1 || p.Scripts != 1 {
						t.Errorf("partition %+v, want one script", p)
					}
				}
				if st.Undelivered != 0 || st.Dropped.Total() != 0 {
					t.Errorf("%+v", st)
				}
			}
			// Nodes agree about the owners: each knows what the other counted.
			b.Check("team_1", 1)
			s.clock.Advance(time.Second)
			b.expectLevel("team_1", 5)
		})
	}
}
