package ratelimittest

// This file is the store of a test: the counts of a fleet in memory, and a way to
// them that fails on demand.

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/hanzoai/limiters/internal/clock"
	"github.com/hanzoai/limiters/internal/memstore"
	"github.com/hanzoai/limiters/ratelimit/store"
)

// replyTimeout is how long an attempt waits for a reply that its batch gives no more
// time: what a limiter waits by default.
const replyTimeout = 100 * time.Millisecond

// A Store is a store.Store in memory, or a [Store.Link] to one. Limiters that share
// one share a budget, as over a Redis. It is safe for concurrent use.
type Store struct {
	clock  *Clock          // immutable; nil: the system's
	inner  store.Store     // immutable; the counters, or the store this links to
	memory *memstore.Store // immutable; the counters

	mu       sync.Mutex
	failure  Failure       // guarded by mu
	failNext int           // guarded by mu; how many attempts fail; negative: all
	delay    time.Duration // guarded by mu
	trip     time.Duration // guarded by mu
	requests Requests      // guarded by mu

	asked map[string]*asked // guarded by mu; by counter key without epoch; nil for a link
}

// asked counts requests for the counters of one entity.
type asked struct{ writes, reads uint64 }

// Requests counts what a [Store] was asked.
type Requests struct {
	Attempts uint64 // batches sent, repeated ones each time
	Answered uint64 // attempts whose reply arrived
	Writes   uint64 // counters written, by answered attempts
	Reads    uint64 // counters read without a write, by answered attempts
}

// NewStore returns an empty store whose counters expire by the clock. nil is the
// system's clock, or a bubble's.
func NewStore(c *Clock) *Store {
	var now func() int64
	if c != nil {
		now = func() int64 { wall, _ := c.Now(); return wall }
	}
	m := memstore.New(now)
	return &Store{clock: c, inner: m, memory: m, asked: map[string]*asked{}}
}

// Link returns another way to the same counters: what fails on the link fails for
// those who use the link, what fails on s fails for all. Both count requests.
func (s *Store) Link() *Store {
	return &Store{clock: s.clock, inner: s, memory: s.memory}
}

// Fail makes every attempt fail from now on, until [Store.Heal].
func (s *Store) Fail(f Failure) { s.FailNext(-1, f) }

// FailNext makes the next n attempts fail, and those after them succeed. A negative
// n is all; 0 heals. It replaces what was asked before.
func (s *Store) FailNext(n int, f Failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failNext, s.failure = n, f
}

// Heal ends failures and delays.
func (s *Store) Heal() {
	s.FailNext(0, None)
	s.Delay(0)
}

// Delay holds every reply back for d. The batch takes effect when it is sent; the
// limiter learns of it d later, or not at all: it gives up waiting after 100 ms, or
// what the batch allows (store.Batch.Patience), and sends the batch again. On a [Clock] only ticks can wait; a reply
// to Limiter.Sync, CheckFleet or Close arrives at once. Ticks that wait and Sync belong on one
// goroutine.
func (s *Store) Delay(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delay = max(0, d)
	if s.clock != nil && d > 0 {
		s.clock.delays.Store(true)
	}
}

// RoundTrip has every attempt take d, as over a network: half of it passes before the
// batch takes effect, half after. It adds to [Store.Delay], with the same bounds, and
// Heal does not end it.
func (s *Store) RoundTrip(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trip = max(0, d)
	if s.clock != nil && d > 0 {
		s.clock.delays.Store(true)
	}
}

// Requests returns what the store was asked so far.
func (s *Store) Requests() Requests {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

// Total returns what a counter holds, -1 if that is no valid count, and whether the
// key exists. A counter's key is the configured prefix, the entity key and the
// epoch, with colons between.
func (s *Store) Total(key string) (total int64, ok bool) { return s.memory.Get(key) }

// Keys returns all keys that exist, sorted: counters, and what limiters keep beside
// them.
func (s *Store) Keys() []string { return s.memory.Keys() }

// Poison makes a key hold what is no count.
func (s *Store) Poison(key string) { s.memory.SetForeign(key) }

// Flush loses all that the store holds.
func (s *Store) Flush() { s.memory.FlushAll() }

// Apply implements store.Store.
func (s *Store) Apply(ctx context.Context, batch *store.Batch, reply *store.Reply) error {
	failure, there, back := s.begin()
	slow, patience := there+back > 0, max(replyTimeout, batch.Patience)
	if !failure.applied() {
		if failure == RequestLost {
			s.wait(ctx, patience, slow)
		}
		return failure.err()
	}
	there = min(there, patience)
	if !s.wait(ctx, there, slow) {
		return RequestLost.err()
	}
	if err := s.inner.Apply(ctx, batch, reply); err != nil {
		return err
	}
	if there+back >= patience && failure == None {
		failure = ReplyLost
	}
	if !s.wait(ctx, min(back, patience-there), slow) && failure == None {
		failure = ReplyLost
	}
	if failure != None {
		return failure.err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests.Answered++
	s.requests.Writes += uint64(len(batch.Writes))
	s.requests.Reads += uint64(len(batch.Reads))
	if s.asked == nil {
		return nil
	}
	for i := range batch.Writes {
		s.askedLocked(batch.Writes[i].Key).writes++
	}
	for _, key := range batch.Reads {
		s.askedLocked(key).reads++
	}
	return nil
}

// askedLocked returns the counts of the entity that a counter key belongs to.
func (s *Store) askedLocked(key string) *asked {
	key = key[:max(0, strings.LastIndexByte(key, ':'))]
	a := s.asked[key]
	if a == nil {
		a = &asked{}
		s.asked[strings.Clone(key)] = a // the batch's strings are its caller's
	}
	return a
}

// requestsOf returns how often the counters of an entity were written and read, by
// their key without its epoch.
func (s *Store) requestsOf(key string) (writes, reads uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.asked[key]; a != nil {
		return a.writes, a.reads
	}
	return 0, 0
}

// begin counts an attempt and says what becomes of it: how it fails, and how long it
// is under way there and back.
func (s *Store) begin() (failure Failure, there, back time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests.Attempts++
	there = s.trip / 2
	back = s.trip - there + s.delay
	if s.failNext == 0 {
		return None, there, back
	}
	if s.failNext > 0 {
		s.failNext--
	}
	return s.failure, there, back
}

// wait lets d pass, if the store is a slow one. It reports false if the attempt was
// ended meanwhile.
func (s *Store) wait(ctx context.Context, d time.Duration, slow bool) bool {
	switch {
	case !slow:
		return true
	case s.clock != nil && clock.IsAtOnce(ctx):
		return true // its caller is no tick
	case s.clock != nil:
		return s.clock.wait(d)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
