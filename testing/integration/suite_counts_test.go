// This file checks what the suite's limiters leave in Redis, to the unit, and by
// how many commands.

package integration

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/testing/redistest"
)

// One node writes, in two windows; another reads what the fleet counted.
func TestSuiteBothEpochs(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	writer := s.node(nil)
	epoch := s.epoch(suiteWindow)
	writer.Check("team", 7)
	s.clock.Advance(time.Second)
	s.expectTotal("team", epoch, 7)
	writer.Check("team", 13)
	s.clock.Advance(time.Second)
	s.expectTotal("team", epoch, 20)

	// Counted in the last moment of the window, sent in the next one.
	s.clock.Advance(suiteWindow - 2*time.Second - time.Millisecond)
	writer.Check("team", 4)
	s.clock.Advance(time.Millisecond)
	s.expectTotal("team", epoch, 24)
	s.expectTotal("team", epoch+1, 0)
	s.clock.Advance(time.Second)
	writer.Check("team", 5)
	writer.CheckAt("team", 2, suiteStart.Add(suiteWindow-time.Second))
	s.clock.Advance(15 * time.Second)
	s.expectTotal("team", epoch, 26)
	s.expectTotal("team", epoch+1, 5)

	reader := s.node(nil)
	if d := reader.Check("team", 3); d.Basis() != ratelimit.BasisFirstContact {
		t.Errorf("the first check decides by %v", d.Basis())
	}
	reader.sync() // a quarter into the window: 26 × ¾ + 5 + 3
	reader.expectLevel("team", 27.5)
	s.expectTotal("team", epoch+1, 8)

	// Two windows on, nothing of it counts.
	s.clock.Advance(suiteWindow)
	writer.Check("team", 1)
	s.clock.Advance(suiteWindow - 16*time.Second)
	reader.Check("team", 1)
	reader.sync()
	reader.expectLevel("team", 2)
	s.expectTotal("team", epoch+2, 1)
	s.expectTotal("team", epoch+3, 1)
}

// Limiters as in production: their loops deliver and learn without being asked to.
func TestSuiteBackgroundLoop(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	change := func(c *ratelimit.Config) { c.WindowInterval, c.TickInterval = 24*time.Hour, 10*time.Millisecond }
	a, b := s.looping(change), s.looping(change)
	if d := a.Check("team", 99); !d.Allowed() {
		t.Fatal("99 of 100 units are limited")
	}
	eventually(t, "a loop delivers", func() bool { return a.Stats().Delivered == 99 })
	if got := s.sum(0, "team"); got != 99 {
		t.Errorf("Redis holds %d units, want 99", got)
	}
	if !b.Allow("team") { // it knows nothing yet
		t.Error("first contact was limited")
	}
	eventually(t, "a loop reads what the other delivered", func() bool { return b.Peek("team").Basis() == ratelimit.BasisFleet })
	if b.Allow("team") {
		t.Error("with 100 of 100 units counted by the fleet one more was allowed")
	}
}

// Checks of one entity from many goroutines, on two nodes, with syncs in between.
func TestSuiteConcurrentChecks(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	const goroutines, checks, threshold = 8, 500, 900
	change := func(c *ratelimit.Config) {
		c.GlobalThreshold, c.CustomKeys = 1<<40, ratelimit.Overrides{"scarce": threshold}
	}
	nodes := []*suiteNode{s.node(change), s.node(change)}
	var group sync.WaitGroup
	var admitted atomic.Int64
	for i := range goroutines {
		n := nodes[i%2]
		group.Go(func() {
			for j := range checks {
				n.Check("plenty", uint64(1+j%3))
				if n == nodes[0] && n.Allow("scarce") {
					admitted.Add(1)
				}
				if j%100 == 10*i {
					_ = n.Sync(context.Background()) // another goroutine's would do as well
				}
			}
		})
	}
	group.Wait()
	nodes[0].sync()
	nodes[1].sync()
	if got := admitted.Load(); got != threshold-1 {
		t.Errorf("one node admitted %d units of %d, want one less", got, threshold)
	}
	var want int64
	for j := range checks {
		want += goroutines * int64(1+j%3)
	}
	s.expectTotal("scarce", s.epoch(suiteWindow), threshold-1)
	s.expectTotal("plenty", s.epoch(suiteWindow), want)
}

// What is counted while a batch is on its way is neither lost nor counted twice:
// the reply settles what the batch carried, and nothing else.
func TestSuiteChecksDuringASync(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	p := newProxy(t, s.urls[0])
	n := s.node(func(c *ratelimit.Config) { c.RedisURLs = []string{p.url} })
	epoch := s.epoch(suiteWindow)
	p.intercept(func(command string) {
		if command == "evalsha" {
			n.Check("team", 5)
		}
	})
	n.Check("team", 7)
	for tick := int64(1); tick <= 4; tick++ {
		n.sync()
		s.expectTotal("team", epoch, 7+5*(tick-1))
		n.expectLevel("team", float64(7+5*tick))
	}
	p.intercept(nil)
	n.sync()
	s.expectTotal("team", epoch, 27)
	n.expectLevel("team", 27)
}

// Any number of entities in one tick: each counter exact, and one EVALSHA for every
// 500 of them.
func TestSuiteManyEntitiesInOneTick(t *testing.T) {
	t.Parallel()
	for _, entities := range []int{1, 100, 500, 501, 5000} {
		t.Run(fmt.Sprint(entities), func(t *testing.T) {
			t.Parallel()
			s := newSuite(t)
			p := newProxy(t, s.urls[0])
			n := s.node(func(c *ratelimit.Config) { c.RedisURLs = []string{p.url} })
			for round := 1; round <= 2; round++ {
				keys, want := make([]string, entities), int64(0)
				for i := range entities {
					units := 1 + i%7
					n.Check(fmt.Sprint("team_", i), uint64(units))
					keys[i] = s.key(fmt.Sprint("team_", i), s.epoch(suiteWindow))
					want += int64(round * units)
				}
				p.take()
				s.clock.Advance(time.Second)
				scripts := 0
				for _, command := range p.take() {
					if command == "evalsha" {
						scripts++
					} else if round > 1 {
						t.Errorf("a %s besides", command)
					}
				}
				if ceil := (entities + 499) / 500; scripts != ceil {
					t.Errorf("%d scripts in tick %d, want %d", scripts, round, ceil)
				}
				var sum int64
				for i, total := range s.totals(0, keys) {
					if sum += total; total != int64(round*(1+i%7)) {
						t.Errorf("%s holds %d in round %d", keys[i], total, round)
					}
				}
				if sum != want {
					t.Errorf("%d units in Redis, want %d", sum, want)
				}
			}
			if stats := n.Stats(); stats.Queued != 0 || stats.Deferred != 0 || stats.Undelivered != 0 {
				t.Errorf("left over: %+v", stats)
			}
		})
	}
}

// What MONITOR shows of two nodes: having connected, a node sends one EVALSHA in
// each tick in which it has something to say, a question after ten seconds of silence, and nothing else.
func TestSuiteMonitor(t *testing.T) {
	t.Parallel()
	s := newOwnSuite(t, redistest.Real())
	watch := s.dial(s.urls[0])
	defer func() { _ = watch.Close() }()
	if _, err := watch.Do("MONITOR"); err != nil {
		t.Fatal(err)
	}
	a, b := s.node(nil), s.node(nil)
	a.Check("x", 1)
	b.Check("x", 1)
	s.clock.Advance(time.Second) // both say something
	a.Check("x", 1)
	s.clock.Advance(time.Second)      // a does
	s.clock.Advance(10 * time.Second) // both ask
	b.Check("x", 1)
	b.Check("y", 1)
	s.clock.Advance(time.Second) // b does
	s.do(0, "ECHO", "the end")
	commands := map[string]string{}
	var order []string
	for last := ""; last != "echo"; {
		line, err := redis.String(watch.Receive())
		if err != nil {
			t.Fatal(err)
		}
		var client string
		if client, last = monitored(line); client == "lua" || last == "echo" {
			continue
		}
		if commands[client] == "" {
			order = append(order, client)
		}
		commands[client] += last + " "
	}
	if len(order) != 2 {
		t.Fatalf("%d clients: %q", len(order), commands)
	}
	for i, want := range []string{"script evalsha evalsha evalsha ", "script evalsha evalsha evalsha "} {
		if got := commands[order[i]]; got != want {
			t.Errorf("node %d sent %q, want %q", i, got, want)
		}
	}
	// The same by the server's own books.
	if got := evalshaCalls(t, s.conns[0]); got != 6 {
		t.Errorf("the server executed %d EVALSHA, want 6", got)
	}
}
