// This file is the fleet of the fault suite: limiters in one process, the servers
// that hold their counts, a proxy before each, and steady traffic.

package integration

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/gomodule/redigo/redis"

	"github.com/hanzoai/limiters/internal/redisstore"
	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/ratelimit/store"
	"github.com/hanzoai/limiters/testing/integration/faultproxy"
	"github.com/hanzoai/limiters/testing/redistest"
)

// The time of the suite, on its clock, which a busy machine makes slower. What is counted is readable for a window at least, so that
// a fault of brief, and what it takes to be heard again, drops nothing.
const (
	window = 800 * time.Millisecond
	ticks  = 50 * time.Millisecond
	reply  = 150 * time.Millisecond // the timeouts
	brief  = 2 * reply
)

// keyPrefix begins every key of the suite; each scenario has servers of its own.
const keyPrefix = "faults"

// A fleet is what one scenario breaks.
type fleet struct {
	*testing.T
	rng     *rand.Rand // of the scenario's goroutine
	clock   *elastic
	time    *governor  // of clock
	servers []*backend // one of each partition
	keys    []string
	cfg     ratelimit.Config
	unknown bool                                  // as the scenario's
	open    func(partition int) *redisstore.Store // makes a node's store

	offset func(node int) time.Duration // of a node's clock; nil: none

	nodes  []*member
	leaver *member // one of nodes, closed during the first fault; nil if there is none
	left   bool    // the leaver was closed
}

// A backend is a server and the proxy before it.
type backend struct {
	*redistest.Server
	proxy *faultproxy.Proxy
	clock *elastic // of the fleet
	admin redis.Conn
	moved func(addr string) // tells pools where the server is now; nil without such
}

// A member is one node of the fleet and what its callers know.
type member struct {
	*ratelimit.Limiter
	fleet     *fleet
	name      string
	clock     *nodeClock
	witnesses []*witness
	stores    []*redisstore.Store

	counted map[string]uint64 // by key; units that a check recorded; of the traffic's goroutine
	granted map[string]uint64 // by key; by the fleet, to callers who waited; of the traffic's goroutine
	lends   lender            // of the traffic's goroutine
	halt    atomic.Bool
	running sync.WaitGroup
	closed  error // what Close returned
	gone    bool  // closed, or dead
	dead    bool  // never closed: its process ended
}

// newFleet starts what a scenario asks for. With no server at hand it skips.
func newFleet(t *testing.T, s *scenario, seed uint64) *fleet {
	f := &fleet{T: t, rng: rand.New(rand.NewPCG(seed, hashOf(s.name))), unknown: s.unknown}
	keys, nodes, partitions := s.keys, s.nodes, s.partitions
	if keys == 0 {
		keys = 50 + f.rng.IntN(400)
	}
	if nodes == 0 {
		nodes = 3 + f.rng.IntN(3)
	}
	if partitions == 0 {
		partitions = 1 + f.rng.IntN(3)
	}
	for i := range keys {
		f.keys = append(f.keys, fmt.Sprintf("team:%d", i))
	}
	for range partitions {
		f.servers = append(f.servers, newBackend(t, s.args...))
	}
	f.clock = newElastic(t, paceOf(t, f.servers[0]))
	f.time = newGovernor(t, f.clock)
	for _, b := range f.servers {
		b.clock = f.clock
	}
	f.cfg = ratelimit.DefaultConfig()
	f.cfg.GlobalThreshold = uint64(50 + f.rng.IntN(1000))
	f.cfg.WindowInterval, f.cfg.TickInterval = window, min(f.clock.real(ticks), window/4).Truncate(time.Millisecond)
	f.cfg.RedisKeyPrefix = keyPrefix
	f.cfg.GlobalCacheTTL = time.Hour // every counter outlives the scenario, to be compared at its end
	f.cfg.TierScanIntervalTicks = 4
	f.cfg.CountLimited = f.rng.IntN(4) == 0
	f.open = func(partition int) *redisstore.Store {
		return openStoreURL(t, "redis://"+f.servers[partition].proxy.Addr(), f.timeouts())
	}
	if s.change != nil {
		s.change(f)
	}
	for i := range nodes {
		f.start(fmt.Sprintf("node %d", i))
	}
	if !s.stays {
		f.leaver = f.start("the leaver")
	}
	return f
}

// timeouts are the nodes'.
func (f *fleet) timeouts() redisstore.Timeouts {
	return redisstore.Timeouts{Connect: f.clock.real(reply), Reply: f.clock.real(reply)}
}

// paceOf is how much slower than real time a scenario runs here and now: a round
// trip through the proxy must be short beside the timeouts.
func paceOf(t *testing.T, b *backend) float64 {
	conn, err := redis.Dial("tcp", b.proxy.Addr(), redis.DialReadTimeout(patience))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	took := make([]time.Duration, 40)
	for i := range took {
		began := time.Now()
		_, _ = conn.Do("PING") // a refusal is an answer too
		took[i] = time.Since(began)
		time.Sleep(beat)
	}
	slices.Sort(took)
	return min(10, max(1, 10*took[len(took)*9/10].Seconds()/reply.Seconds()))
}

// newBackend starts a server of the scenario's own, and a proxy before it.
func newBackend(t *testing.T, args ...string) *backend {
	t.Helper()
	s, err := redistest.TryStart(t, redistest.Only(redistest.Process), redistest.WithArgs(args...))
	switch {
	case errors.Is(err, redistest.ErrNone) && requireRedis():
		t.Fatalf("the fault suite needs redis-server or valkey-server on PATH: %v", err)
	case errors.Is(err, redistest.ErrNone):
		skip(t, "the fault suite needs redis-server or valkey-server on PATH")
	case err != nil:
		t.Fatal(err)
	}
	p, err := faultproxy.Listen(s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return &backend{Server: s, proxy: p, admin: s.Conn()}
}

// do sends a command of the test's own, past the proxy.
func (b *backend) do(t testing.TB, command string, args ...any) any {
	t.Helper()
	answer, err := b.admin.Do(command, args...)
	if err != nil {
		t.Fatalf("%s %v: %v", command, args, err)
	}
	return answer
}

// start adds a node and its traffic. Every other one has a table too small for the
// keys it meets.
func (f *fleet) start(name string) *member {
	f.Helper()
	return f.startOn(name, 0)
}

// startOn is start with the partitions from number first on. A node that leaves any out
// has a large table always.
func (f *fleet) startOn(name string, first int) *member {
	f.Helper()
	m := &member{
		fleet: f, name: name, clock: &nodeClock{elastic: f.clock}, counted: map[string]uint64{}, granted: map[string]uint64{},
		lends: lender{asked: map[string]uint64{}},
	}
	if f.offset != nil {
		m.clock.step(f.offset(len(f.nodes)))
	}
	cfg := f.cfg
	if first == 0 && len(f.nodes)%2 == 0 {
		cfg.LocalCacheMaxEntries = max(1, len(f.keys)/4)
	}
	var partitions []ratelimit.Partition
	for i := first; i < len(f.servers); i++ {
		inner := f.open(i)
		w := newWitness(inner, f.clock.mono.Load)
		m.stores, m.witnesses = append(m.stores, inner), append(m.witnesses, w)
		partitions = append(partitions, ratelimit.Partition{Name: fmt.Sprintf("p%d", i), Store: w})
	}
	l, err := ratelimit.New(cfg, ratelimit.WithClock(m.clock), ratelimit.WithPartitions(partitions...),
		ratelimit.WithMetricsSet(metrics.NewSet()), ratelimit.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		f.Fatal(err)
	}
	m.Limiter = l
	f.nodes = append(f.nodes, m)
	f.time.watch(m, true)
	seed := [2]uint64{f.rng.Uint64(), f.rng.Uint64()}
	m.running.Go(func() { m.traffic(rand.New(rand.NewPCG(seed[0], seed[1]))) })
	f.Cleanup(func() {
		f.time.watch(m, false)
		m.stop()
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		_ = m.Close(ctx) // an earlier Close's result, if the scenario came to its end
	})
	return m
}

// traffic checks keys until the node stops, a few of them often.
func (m *member) traffic(rng *rand.Rand) {
	law := rand.NewZipf(rng, 1.2, 8, uint64(len(m.fleet.keys)-1))
	for !m.halt.Load() {
		for range 1 + rng.IntN(16) {
			switch key := m.fleet.keys[law.Uint64()]; rng.IntN(30) {
			case 0:
				m.ask(key, 1+rng.Uint64N(5), rng)
			case 1, 2, 3, 4, 5, 6, 7, 8, 9, 10:
				m.spend(key, rng)
			default:
				m.offer(key, 1+rng.Uint64N(5))
			}
		}
		m.fleet.clock.sleep(time.Duration(3+rng.IntN(6)) * time.Millisecond)
	}
}

// offer checks units of a key and notes whether they were recorded.
func (m *member) offer(key string, units uint64) {
	d := m.Check(key, units)
	units = min(units, store.MaxUnits) // as which it counts
	if d.Verdict() == ratelimit.VerdictAllowed || m.fleet.cfg.CountLimited {
		m.counted[key] += units
	}
}

// stop ends the node's traffic.
func (m *member) stop() {
	m.halt.Store(true)
	m.running.Wait()
}

// endIn closes the node within ctx's time and checks what Close reports, to the
// unit.
func (m *member) endIn(limit time.Duration) {
	m.fleet.Helper()
	m.fleet.time.watch(m, false)
	m.stop()
	before := m.Stats()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	began := time.Now()
	m.closed = m.Close(ctx)
	took := time.Since(began)
	m.gone = true
	if took > limit+closeSlack {
		m.fleet.Errorf("%s: Close with %v took %v", m.name, limit, took)
	}
	var said ratelimit.CloseError
	if wrapped := new(ratelimit.CloseError); errors.As(m.closed, &wrapped) {
		said = *wrapped
	} else if m.closed != nil {
		m.fleet.Errorf("%s: Close: %v", m.name, m.closed)
	}
	after := m.Stats()
	if got := after.Dropped.Closed; got != said.Undelivered {
		m.fleet.Errorf("%s: Close reported %d units undelivered and dropped %d", m.name, said.Undelivered, got)
	}
	// Where batches lose their sequence key or outlast their epochs, some may be given
	// up while Close drains, before it gives up the rest.
	if got := after.Dropped.Unknown - before.Dropped.Unknown; got < said.Unknown || got > said.Unknown && !m.fleet.unknown {
		m.fleet.Errorf("%s: Close reported %d units of unknown fate and dropped %d", m.name, said.Unknown, got)
	}
	if got := after.Returned; got.Clamped+got.Unknown-before.Returned.Clamped-before.Returned.Unknown < said.Unreturned {
		m.fleet.Errorf("%s: Close reported %d units not given back; before %+v, after %+v", m.name, said.Unreturned, before.Returned, got)
	}
	if after.Undelivered != 0 || after.Counted-after.Returned.Taken != after.Delivered+after.Dropped.Total() {
		m.fleet.Errorf("%s: after Close: %+v", m.name, after)
	}
}

// closeSlack is what a busy machine may add to the deadline of a Close.
const closeSlack = 2 * time.Second

// die ends the node as the end of its process does: nothing more is sent, nothing
// is closed.
func (m *member) die() {
	m.fleet.time.watch(m, false)
	for _, w := range m.witnesses {
		w.die()
	}
	m.stop()
	m.gone, m.dead = true, true
}

// pause stops all that the node does, where it is, and returns what lets it go on.
func (m *member) pause() (resume func()) {
	m.fleet.time.watch(m, false)
	m.stop()
	for _, w := range m.witnesses {
		w.gate.Lock()
	}
	return func() {
		for _, w := range m.witnesses {
			w.gate.Unlock()
		}
		m.fleet.time.watch(m, true)
		m.resume()
	}
}

// resume starts the node's traffic again.
func (m *member) resume() {
	m.halt.Store(false)
	seed := m.fleet.rng.Uint64()
	m.running.Go(func() { m.traffic(rand.New(rand.NewPCG(seed, 0))) })
}

// aside does something in place of the node's traffic.
func (m *member) aside(do func()) {
	m.stop()
	do()
	m.resume()
}

// present are the nodes that are neither closed nor dead.
func (f *fleet) present() (nodes []*member) {
	for _, m := range f.nodes {
		if !m.gone {
			nodes = append(nodes, m)
		}
	}
	return nodes
}

// any returns one of the servers.
func (f *fleet) any() *backend { return f.servers[f.rng.IntN(len(f.servers))] }

// run lets the traffic go on for about that many windows.
func (f *fleet) run(windows float64) {
	f.clock.pass(time.Duration(windows * (0.5 + f.rng.Float64()) * float64(window)))
}

// during injects a fault, lets it last for d and heals it. During the first fault
// the leaver is closed, with a deadline that may be too short.
func (f *fleet) during(d time.Duration, inject, heal func()) {
	f.Helper()
	f.time.fault(true)
	defer f.time.fault(false)
	inject()
	if f.leaver == nil || f.left {
		f.clock.sleep(d)
		heal()
		return
	}
	f.left = true
	part := time.Duration(f.rng.Int64N(int64(d)))
	limit := []time.Duration{20, 100, 300}[f.rng.IntN(3)] * time.Millisecond
	f.clock.sleep(part)
	closing := make(chan struct{})
	go func() { // ends with Close, which is bounded
		defer close(closing)
		f.leaver.endIn(limit)
	}()
	f.clock.sleep(d - part)
	heal()
	<-closing // soon: it is bounded
}

// calm waits until every node has delivered everything.
func (f *fleet) calm() {
	f.Helper()
	for _, m := range f.present() {
		m.stop()
	}
	for _, b := range f.servers {
		b.proxy.Handle(nil)
	}
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		left := uint64(0)
		for _, m := range f.present() {
			s := m.Stats()
			left += s.Undelivered + s.Returned.Waiting
		}
		if left == 0 {
			return
		}
		if time.Now().After(end) {
			for _, m := range f.present() {
				f.Errorf("%s does not come to rest: %+v", m.name, m.Stats())
			}
			return
		}
	}
}
