package onekey

// This file lives the minute and takes down what happens.

import (
	"fmt"
	"strconv"
	"time"

	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/testing/ratelimittest"
)

// A life is the minute under one kind of window.
type life struct {
	kind    ratelimit.WindowKind
	seconds []second
	curve   []moment
	passed  int
	asked   int
}

// A second is what happened in it, and how things stand at its end.
type second struct {
	at    int
	nodes [nodes]nodeSecond
	// before and now are the counters of the previous and the current epoch in Redis.
	before, now int64
	boundary    bool // an epoch began
	inWindow    int  // units admitted by both nodes in the last window
}

// A nodeSecond is one node's second.
type nodeSecond struct {
	asked, passed int
	first         bool // a first contact
	level         float64
	reached       float64       // the level that the last refused request would have brought
	retry         time.Duration // what it was told
	known         bool          // the node holds the key
	scripts       uint64
	sent          uint64 // units acknowledged by Redis in this second
	unsent        uint64 // units Redis does not know of
}

// A moment is what the picture shows of one time.
type moment struct {
	at       float64 // seconds
	levels   [nodes]float64
	inWindow int
}

// live lives the minute. The error says that the counts do not add up, which would be
// the library's fault.
func live(kind ratelimit.WindowKind) (life, error) {
	f := ratelimittest.NewFleetAt(nil, start, nodes, config(kind))
	defer f.Close()
	l := life{kind: kind}
	var passedAt []time.Duration // of each unit
	for at := range seconds {
		s := second{at: at}
		var before [nodes]ratelimit.Stats
		for i := range nodes {
			before[i] = f.Node(i).Stats()
		}
		epoch := epochOf(f.Clock().Time())
		for part := range perSecond {
			for i := range nodes {
				n := &s.nodes[i]
				for range due(askedAt(at)[i], part) {
					d := f.Node(i).Check(key, 1)
					n.take(d)
					if d.Allowed() {
						passedAt = append(passedAt, elapsed(f))
					}
				}
			}
			l.curve = append(l.curve, look(f, passedAt))
			f.Advance(time.Second / perSecond)
		}
		for i := range nodes {
			after := f.Node(i).Stats()
			n := &s.nodes[i]
			n.scripts = after.Partitions[0].Scripts - before[i].Partitions[0].Scripts
			n.sent, n.unsent = after.Delivered-before[i].Delivered, after.Undelivered
			n.level, n.known = levelOf(f.Node(i))
			l.asked += n.asked
			l.passed += n.passed
		}
		now := epochOf(f.Clock().Time())
		s.boundary = now != epoch
		s.before, s.now = held(f, now-1), held(f, now)
		s.inWindow = within(passedAt, elapsed(f))
		l.seconds = append(l.seconds, s)
		if err := s.addsUp(f); err != nil {
			return life{}, fmt.Errorf("%s, second %d: %w", kind, at, err)
		}
	}
	l.curve = append(l.curve, look(f, passedAt))
	return l, nil
}

// take takes a decision down.
func (n *nodeSecond) take(d ratelimit.Decision) {
	n.asked++
	n.first = n.first || d.Basis() == ratelimit.BasisFirstContact
	if d.Allowed() {
		n.passed++
		return
	}
	n.reached, n.retry = d.Level(), d.RetryAfter()
}

// due is how many of a second's requests fall into one of its parts, evenly.
func due(asked, part int) int { return asked*(part+1)/perSecond - asked*part/perSecond }

// elapsed is how long the story has gone on.
func elapsed(f *ratelimittest.Fleet) time.Duration { return f.Clock().Time().Sub(start) }

// epochOf is the epoch of a time, for windows of a minute.
func epochOf(t time.Time) int64 { return t.Unix() / 60 }

// held is what Redis holds of an epoch.
func held(f *ratelimittest.Fleet, epoch int64) int64 {
	total, _ := f.Store().Total(ratelimit.DefaultConfig().RedisKeyPrefix + ":" + key + ":" + strconv.FormatInt(epoch, 10))
	return total
}

// levelOf is the level by which a node would decide now, without a request.
func levelOf(n *ratelimittest.Node) (level float64, known bool) {
	top, _ := n.TopByPressure(1)
	if len(top) == 0 {
		return 0, n.Stats().Entities > 0
	}
	return top[0].Level, true
}

// look is a moment.
func look(f *ratelimittest.Fleet, passedAt []time.Duration) moment {
	m := moment{at: elapsed(f).Seconds(), inWindow: within(passedAt, elapsed(f))}
	for i := range nodes {
		m.levels[i], _ = levelOf(f.Node(i))
	}
	return m
}

// within is how many units passed in the window that ends now.
func within(passedAt []time.Duration, now time.Duration) (units int) {
	for _, at := range passedAt {
		if at > now-time.Minute {
			units++
		}
	}
	return units
}

// addsUp compares what the nodes counted with what Redis holds: each unit is in Redis
// once, or with its node.
func (s *second) addsUp(f *ratelimittest.Fleet) error {
	var counted, undelivered uint64
	for _, n := range f.Nodes() {
		st := n.Stats()
		counted += st.Counted
		undelivered += st.Undelivered + st.Dropped.Total()
	}
	if uint64(s.before+s.now)+undelivered != counted {
		return fmt.Errorf("%d units were counted, Redis holds %d + %d and the nodes %d", counted, s.before, s.now, undelivered)
	}
	return nil
}
