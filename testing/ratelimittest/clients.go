package ratelimittest

// This file is clients that obey what they are told.

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"time"

	"github.com/hanzoai/limiters/ratelimit"
)

// Clients are polite: one that is limited waits as long as it is told, and then asks
// for the same again. Each has a key of its own and makes one request at a time. The
// same clients make the same sequence of requests every time.
type Clients struct {
	// Keys are the clients' keys.
	Keys []string
	// Pause is how long a client waits after a request that passed, on average.
	Pause time.Duration
	// Units is the most that a request asks for: any number from 1. 0 is 1.
	Units uint64
	// WholeSeconds has every second client wait whole seconds, rounded up, as it
	// would after reading Retry-After; the others wait as long as they were told,
	// to the nanosecond. false: all do that.
	WholeSeconds bool
	// Seed decides pauses, units, and the nodes that requests reach.
	Seed uint64
}

// Manners says how polite clients fared.
type Manners struct {
	Requests     uint64
	Limited      uint64 // of the requests
	Retries      uint64 // requests after the wait that a client was told
	RefusedAgain uint64 // of the retries
	// Decisions are the requests, as [Recorder] saw them.
	Decisions *Recorder
}

// A client is polite. Of the run that moves it.
type client struct {
	key   string
	whole bool
	at    time.Duration // of the next request, since the start
	units uint64
	told  bool // it waited as long as it was told
	index int
}

// Run lets d pass on the fleet's clock while the clients make their requests, each to
// any node. Nothing else should advance the clock meanwhile.
func (c Clients) Run(f *Fleet, d time.Duration) Manners {
	random := rand.New(rand.NewPCG(c.Seed, 1))
	pause := func() time.Duration {
		return time.Duration(min(random.ExpFloat64()*float64(c.Pause), float64(d)))
	}
	units := func() uint64 { return 1 + random.Uint64N(max(c.Units, 1)) }
	_, window := f.Limit("")
	m := Manners{Decisions: NewRecorder(window)}
	var waiting clientQueue
	for i, key := range c.Keys {
		waiting = append(waiting, &client{key: key, whole: c.WholeSeconds && i%2 == 1, at: pause(), units: units(), index: i})
	}
	heap.Init(&waiting)
	elapsed := time.Duration(0)
	for len(waiting) > 0 && waiting[0].at < d {
		next := waiting[0]
		f.Advance(next.at - elapsed)
		elapsed = next.at
		decision := f.Node(random.IntN(f.Len())).Check(next.key, next.units)
		m.take(next, decision, elapsed)
		if next.told = !decision.Allowed(); next.told {
			next.at += next.wait(decision.RetryAfter(), d)
		} else {
			next.at, next.units = next.at+pause(), units()
		}
		heap.Fix(&waiting, 0)
	}
	f.Advance(d - elapsed)
	m.Decisions.until(d)
	return m
}

// take takes a decision down.
func (m *Manners) take(c *client, d ratelimit.Decision, at time.Duration) {
	m.Requests++
	if c.told {
		m.Retries++
	}
	if !d.Allowed() {
		m.Limited++
		if c.told {
			m.RefusedAgain++
		}
	}
	m.Decisions.Record(at, c.key, d.Threshold(), c.units, d.Allowed())
}

// wait is how long the client waits after it was told: never less, and not at all
// again within the time that is left if no wait helps.
func (c *client) wait(told, left time.Duration) time.Duration {
	if told > left {
		return left
	}
	if c.whole {
		return time.Duration(math.Ceil(told.Seconds())) * time.Second
	}
	return told
}

// A clientQueue is a heap (container/heap) whose first client asks next.
type clientQueue []*client

func (q clientQueue) Len() int { return len(q) }

func (q clientQueue) Less(i, j int) bool {
	if q[i].at != q[j].at {
		return q[i].at < q[j].at
	}
	return q[i].index < q[j].index
}

func (q clientQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *clientQueue) Push(x any)   { *q = append(*q, x.(*client)) }

func (q *clientQueue) Pop() any {
	last := len(*q) - 1
	c := (*q)[last]
	*q = (*q)[:last]
	return c
}
