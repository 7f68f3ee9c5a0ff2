// This file checks how long the suite's keys live.

package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/testing/redistest"
)

// A counter lives for two windows and five seconds, or up to a tenth longer, so
// that not all of an epoch's expire at once.
func lives(window time.Duration) (least, most time.Duration) {
	least = 2*window + 5*time.Second
	return least, least + least/10
}

// Every key has a TTL from the first moment on, and a counter's outlives the last
// read that needs it.
func TestSuiteEveryKeyExpires(t *testing.T) {
	t.Parallel()
	s := newSuite(t, redistest.Frozen())
	n := s.node(nil)
	for round := range 3 { // both windows, and writes to counters that are there
		began := time.Now()
		for i := range 200 {
			n.Check(fmt.Sprint("team_", i), 2)
		}
		s.clock.Advance(time.Second)
		least, most := lives(suiteWindow)
		epoch := s.epoch(suiteWindow)
		var ttls []time.Duration
		for i := range 200 {
			key := s.key(fmt.Sprint("team_", i), epoch)
			ttl := s.ttl(0, key)
			// Redis counts whole milliseconds, from a reading of its clock that it made a little earlier.
			if passed := time.Since(began) + 50*time.Millisecond; round != 1 && (ttl > most || ttl+passed < least) {
				t.Errorf("%s lives for %v, want %v to %v", key, ttl, least, most)
			}
			ttls = append(ttls, ttl.Round(100*time.Millisecond))
		}
		slices.Sort(ttls)
		if got := len(slices.Compact(ttls)); got < 30 {
			t.Errorf("200 counters expire at %d different times", got)
		}
		for _, key := range s.keys(0) {
			if strings.HasSuffix(key, ":seq") || strings.HasSuffix(key, ":window") {
				if ttl := s.ttl(0, key); ttl > time.Hour || ttl < time.Hour-time.Minute {
					t.Errorf("%s lives for %v, want an hour", key, ttl)
				}
			}
		}
		if round == 1 {
			s.clock.Advance(suiteWindow - 2*time.Second)
		}
	}
}

// Counters are there for as long as a read may ask for them, and then gone. A
// server that has real time gets short windows.
func TestSuiteCountersExpire(t *testing.T) {
	t.Parallel()
	s := newSuite(t, redistest.Frozen())
	window := suiteWindow
	if s.servers[0].Backend() != redistest.Embedded {
		window = 128 * time.Millisecond
	}
	least, most := lives(window)
	n := s.node(func(c *ratelimit.Config) { c.WindowInterval = window })
	const entities = 50
	var keys []string
	for i := range entities {
		n.Check(fmt.Sprint("team_", i), 1)
		keys = append(keys, s.key(fmt.Sprint("team_", i), s.epoch(window)))
	}
	held := func() (sum int64) {
		for _, total := range s.totals(0, keys) {
			sum += total
		}
		return sum
	}
	began := time.Now()
	n.sync()
	if server := s.servers[0]; server.Advance(least - time.Millisecond) {
		if got := held(); got != entities {
			t.Errorf("%d of %d counters after %v", got, entities, least-time.Millisecond)
		}
		server.Advance(most - least + 2*time.Millisecond)
		if got := held(); got != 0 {
			t.Errorf("%d of %d counters after %v", got, entities, most)
		}
		return
	}
	eventually(t, "counters expire", func() bool {
		got := held()
		if passed := time.Since(began); got < entities && passed < least {
			t.Fatalf("%d of %d counters after %v, want all for %v", got, entities, passed, least)
		}
		return got == 0
	})
}
