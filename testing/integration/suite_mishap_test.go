// This file has the suite's servers forget, hold nonsense, refuse and go away.

package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/testing/redistest"
)

// Redis forgets the script between ticks: the same attempt brings it again.
func TestSuiteScriptFlush(t *testing.T) {
	t.Parallel()
	s := newOwnSuite(t)
	n := s.node(nil)
	for tick := int64(1); tick <= 3; tick++ {
		n.Check("team", 7)
		s.clock.Advance(time.Second)
		s.expectTotal("team", s.epoch(suiteWindow), 7*tick)
		s.do(0, "SCRIPT", "FLUSH")
	}
	if p := n.Stats().Partitions[0]; p.RoundTrips != 3 || p.Scripts != 3 || p.Retries != 0 || n.log.count("down") != 0 {
		t.Errorf("%+v, want three answers to three attempts", p)
	}
}

// Counters that hold no count cost themselves alone; once they are removed, they
// count again.
func TestSuitePoisonedKeys(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	n := s.node(nil)
	epoch := s.epoch(suiteWindow)
	poison := map[string]string{"list": "", "text": "x", "empty": `""`, "negative": "-5", "fraction": "1.5"}
	s.spoil(poison, epoch)
	for i := range 20 {
		n.Check(fmt.Sprint("good_", i), 5)
	}
	for entity := range poison {
		n.Check(entity, 3)
	}
	s.clock.Advance(time.Second)
	for i := range 20 {
		s.expectTotal(fmt.Sprint("good_", i), epoch, 5)
	}
	st := n.Stats()
	if want := uint64(3 * len(poison)); st.Dropped != (ratelimit.Dropped{Poisoned: want}) || st.Delivered != 100 || st.Undelivered != 0 {
		t.Errorf("%d delivered, %d undelivered, dropped %+v; want 100, 0, and %d poisoned", st.Delivered, st.Undelivered, st.Dropped, want)
	}
	if got := n.log.count("counters hold no valid count"); got != 1 {
		t.Errorf("said %d times that counters are poisoned", got)
	}
	for entity := range poison {
		// What this node counted limits it all the same.
		if d := n.Peek(entity); d.Level() != 3 {
			t.Errorf("%s: level %v, want 3", entity, d.Level())
		}
		s.do(0, "DEL", s.key(entity, epoch))
		n.Check(entity, 2)
	}
	s.clock.Advance(time.Second)
	for entity := range poison {
		s.expectTotal(entity, epoch, 2)
	}
	if got := n.Stats().Delivered; got != 100+2*uint64(len(poison)) {
		t.Errorf("%d units delivered after all", got)
	}
}

// spoil puts texts into the counters of an epoch, and a list where there is none.
func (s *suite) spoil(texts map[string]string, epoch int64) {
	for entity, text := range texts {
		key := s.key(entity, epoch)
		if text == "" {
			s.do(0, "RPUSH", key, "x")
			s.do(0, "PEXPIRE", key, 600_000)
		} else {
			s.do(0, "SET", key, text, "PX", 600_000)
		}
	}
}

// A counter out of range is full, not poisoned: it limits, whatever is in it, and takes
// units as long as the server can add them.
func TestSuiteSaturatedKeys(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	n := s.node(nil)
	epoch := s.epoch(suiteWindow)
	s.spoil(map[string]string{
		"edge": "9007199254740991", "2^53": "9007199254740992", "2^62": "4611686018427387904", "int64": "9223372036854775807",
	}, epoch)
	for _, entity := range []string{"edge", "2^53", "2^62", "int64"} {
		n.Check(entity, 7)
	}
	s.clock.Advance(time.Second)
	for _, entity := range []string{"edge", "2^53", "2^62", "int64"} {
		if d := n.Check(entity, 1); d.Allowed() || d.Level() < 1<<53-1 {
			t.Errorf("%s: %v at level %v, want limited at 2^53 or so", entity, d.Verdict(), d.Level())
		}
	}
	st := n.Stats()
	if st.Delivered != 21 || st.Undelivered != 0 || st.Dropped != (ratelimit.Dropped{Overflow: 7}) {
		t.Errorf("%d delivered, %d undelivered, dropped %+v; want 21, 0, and what the server cannot add as overflow", st.Delivered, st.Undelivered, st.Dropped)
	}
	for entity, want := range map[string]string{
		"edge": "9007199254740998", "2^53": "9007199254740999", "2^62": "4611686018427387911", "int64": "9223372036854775807",
	} {
		if got := fmt.Sprintf("%s", s.do(0, "GET", s.key(entity, epoch))); got != want {
			t.Errorf("%s holds %s, want %s", entity, got, want)
		}
	}
}

// Two deployments with different windows under one prefix: the second one says so,
// once, and counts it.
func TestSuiteAnotherWindow(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	first := s.node(nil)
	first.Check("team", 1)
	s.clock.Advance(time.Second)
	second := s.node(func(c *ratelimit.Config) { c.WindowInterval = suiteWindow / 2 })
	for range 5 {
		first.Check("team", 1)
		second.Check("team", 1)
		s.clock.Advance(time.Second)
	}
	const line = "another window is in use"
	if got := second.metric("window_mismatch_total"); got != 5 || second.log.count(line) != 1 {
		t.Errorf("the second one: %v replies with another window, said %d times; want 5 and once", got, second.log.count(line))
	}
	if got := first.metric("window_mismatch_total"); got != 0 || first.log.count(line) != 0 {
		t.Errorf("the first one: %v, %d", got, first.log.count(line))
	}
	s.expectTotal("team", s.epoch(suiteWindow), 6)
	s.expectTotal("team", s.epoch(suiteWindow/2), 5)

	// The key is put right: it says that too.
	s.do(0, "SET", s.prefix+":window", (suiteWindow / 2).Milliseconds(), "PX", 60_000)
	second.Check("team", 1)
	s.clock.Advance(time.Second)
	if got := second.log.count("the fleet's window is this limiter's again"); got != 1 {
		t.Errorf("said %d times that all is well", got)
	}
}

// A user with the rights that the script needs, and none else.
func TestSuiteLeastRights(t *testing.T) {
	t.Parallel()
	s := newOwnSuite(t, redistest.Real())
	s.do(0, "ACL", "SETUSER", "limiter", "on", ">pw", "resetchannels", "~"+s.prefix+":*",
		"+evalsha", "+eval", "+script|load", "+get", "+set", "+incrby", "+pexpire", "+mget", "+exists", "+time")
	change := func(c *ratelimit.Config) { c.RedisURLs = []string{urlAs(s.servers[0], "limiter")} }
	a, b := s.node(change), s.node(change)
	for _, n := range []*suiteNode{a, b} {
		n.Check("team", 30)
	}
	s.clock.Advance(time.Second)
	s.expectTotal("team", s.epoch(suiteWindow), 60)
	b.expectLevel("team", 60)
	for _, n := range []*suiteNode{a, b} {
		if st := n.Stats(); st.Delivered != 30 || st.Partitions[0].ClockSkew == 0 || n.log.count("level=WARN") != 0 {
			t.Errorf("%+v", st)
		}
	}
}

// A limiter starts without Redis, decides, and delivers when there is one.
func TestSuiteUnreachableAtTheStart(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	p := newProxy(t, s.urls[0])
	p.shut()
	n := s.node(func(c *ratelimit.Config) { c.RedisURLs = []string{p.url} })
	epoch := s.epoch(suiteWindow)
	for range 10 {
		if got := n.allowed("team", 20); got != 20 && n.Stats().Counted != 99 {
			t.Errorf("%d of 20 admitted, %d counted", got, n.Stats().Counted)
		}
		s.clock.Advance(time.Second)
	}
	if st := n.Stats(); st.Counted != 99 || st.Undelivered != 99 || st.Partitions[0].Up || n.log.count("partition is down") != 1 {
		t.Errorf("without Redis: %+v, said %d times", st, n.log.count("partition is down"))
	}
	p.open()
	s.clock.Advance(time.Second)
	s.expectTotal("team", epoch, 99)
	if st := n.Stats(); st.Delivered != 99 || !st.Partitions[0].Up || n.log.count("partition is up again") != 1 {
		t.Errorf("with Redis: %+v", st)
	}
}

// A server is killed and starts again. What it persisted goes on; what it forgot
// the fleet starts anew, and no unit counts twice.
func TestSuiteRestart(t *testing.T) {
	t.Parallel()
	for name, options := range map[string][]redistest.Option{
		"forgets":   nil,
		"remembers": {redistest.WithArgs("--appendonly", "yes", "--appendfsync", "always")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newOwnSuite(t, options...)
			server := s.servers[0]
			n := s.node(nil)
			epoch := s.epoch(suiteWindow)
			n.Check("team", 5)
			s.clock.Advance(time.Second)
			server.Kill()
			n.Check("team", 3)
			// A connection that is seen to be dead is not used. One that is not seen
			// yet takes the batch with it: then it was perhaps applied.
			s.clock.Advance(time.Second)
			n.Check("team", 4) // waits for that to be known
			s.clock.Advance(3 * time.Second)
			if st := n.Stats(); st.Undelivered != 7 || st.Partitions[0].InFlight != 3 || st.Partitions[0].Up {
				t.Errorf("while it is down: %+v", st)
			}
			server.Restart()
			s.connect()
			want, unknown := int64(12), uint64(0)
			if name == "forgets" {
				if want = 7; n.Stats().Partitions[0].Retries > 0 {
					want, unknown = 4, 3
				}
				s.do(0, "FLUSHALL") // the embedded server forgets nothing by itself
			}
			s.clock.Advance(2 * time.Second)
			s.expectTotal("team", epoch, want)
			if st := n.Stats(); st.Delivered != 12-unknown || st.Dropped != (ratelimit.Dropped{Unknown: unknown}) || st.Undelivered != 0 {
				t.Errorf("after the restart: %+v, want %d unknown", st, unknown)
			}
		})
	}
}

// One of several servers is dead: its share of the keys waits, the others' does
// not notice.
func TestSuiteOneDeadPartition(t *testing.T) {
	t.Parallel()
	s := newSuiteOf(t, 2)
	p := newProxy(t, s.urls[1])
	n := s.node(func(c *ratelimit.Config) {
		c.RedisURLs = []string{"alive=" + s.urls[0], "dead=" + p.url}
	})
	p.shut()
	const entities = 100
	for i := range entities {
		n.Check(fmt.Sprint("team_", i), 1)
	}
	s.clock.Advance(3 * time.Second)
	count := func(server int) (counters int) {
		for _, key := range s.keys(server) {
			if strings.HasPrefix(key, s.prefix+":team_") {
				counters++
			}
		}
		return counters
	}
	alive := count(0)
	if st := n.Stats(); alive < entities/4 || alive > entities*3/4 || st.Delivered != uint64(alive) ||
		!st.Partitions[0].Up || st.Partitions[1].Up || count(1) != 0 {
		t.Errorf("%d counters on the server that lives: %+v", alive, st)
	}
	p.open()
	s.clock.Advance(time.Second)
	if st := n.Stats(); st.Delivered != entities || count(0) != alive || count(1) != entities-alive {
		t.Errorf("%d and %d counters, %+v", count(0), count(1), st)
	}
}
