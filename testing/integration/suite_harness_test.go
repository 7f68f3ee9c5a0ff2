// This file is the harness of the suite: limiters of one fleet, made by the public
// API, on real addresses and one fake clock. The same tests run on every backend.

package integration

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/gomodule/redigo/redis"

	"github.com/hanzoai/limiters/internal/clock"
	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/testing/redistest"
)

// suiteWindow is the window of the suite's limiters. Weights and leaks of a power
// of two are exact in binary, so that levels can be compared by ==.
const suiteWindow = 64 * time.Second

// suiteStart is when the suite's clocks start: at the beginning of a window.
var suiteStart = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// A suite is what a fleet shares: servers, a key prefix, and a clock that the test
// advances. Redis' own time is the real one, unless the server is frozen.
type suite struct {
	t       *testing.T
	clock   *clock.Fake
	servers []*redistest.Server
	urls    []string
	conns   []redis.Conn // of the test's own, one per URL
	prefix  string
}

// newSuite starts a server. When the test ends, no key of the suite's may be one
// that never expires; then they are removed.
func newSuite(t *testing.T, options ...redistest.Option) *suite {
	t.Helper()
	return newSuiteOn(t, redistest.Start(t, options...))
}

// newOwnSuite starts a server that belongs to this test alone: it can be killed,
// and its own counts of commands are this test's. It skips the test if only a
// server that is lent is at hand.
func newOwnSuite(t *testing.T, options ...redistest.Option) *suite {
	t.Helper()
	return newSuiteOn(t, ownServer(t, options...))
}

// newSuiteOf is newSuite with several servers, or with several databases of one
// that is lent.
func newSuiteOf(t *testing.T, n int) *suite {
	t.Helper()
	servers := make([]*redistest.Server, n)
	for i := range servers {
		servers[i] = redistest.Start(t)
	}
	return newSuiteOn(t, servers...)
}

func newSuiteOn(t *testing.T, servers ...*redistest.Server) *suite {
	t.Helper()
	s := &suite{t: t, clock: clock.NewFake(suiteStart), servers: servers, prefix: servers[0].Prefix()}
	for i, server := range servers {
		address := server.URL()
		if len(servers) > 1 && server.Backend() == redistest.Address {
			address = database(t, address, i)
		}
		s.urls = append(s.urls, address)
	}
	t.Cleanup(s.tidy)
	s.connect()
	return s
}

// database is an address with this database.
func database(t *testing.T, address string, i int) string {
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + strconv.Itoa(i)
	return u.String()
}

// connect makes the test's own connections, again after a server was killed.
func (s *suite) connect() {
	s.t.Helper()
	s.disconnect()
	for _, address := range s.urls {
		s.conns = append(s.conns, s.dial(address))
	}
}

func (s *suite) disconnect() {
	for _, conn := range s.conns {
		_ = conn.Close()
	}
	s.conns = nil
}

// dial returns a connection that the caller closes.
func (s *suite) dial(address string) redis.Conn {
	s.t.Helper()
	conn, err := redis.DialURL(address,
		redis.DialConnectTimeout(10*time.Second), redis.DialReadTimeout(10*time.Second), redis.DialWriteTimeout(10*time.Second))
	if err != nil {
		s.t.Fatal(err)
	}
	return conn
}

// tidy checks that every key of the suite's has a TTL, and removes it.
func (s *suite) tidy() {
	defer s.disconnect()
	for i, conn := range s.conns {
		for _, key := range s.keys(i) {
			if ttl := s.ttl(i, key); ttl < 0 && ttl != gone {
				s.t.Errorf("%s lives for ever", key)
			}
			if _, err := conn.Do("DEL", key); err != nil {
				s.t.Error(err)
			}
		}
	}
}

// keys returns the suite's keys on a server, sorted.
func (s *suite) keys(server int) []string {
	s.t.Helper()
	var all []string
	for cursor := "0"; ; {
		reply, err := redis.Values(s.conns[server].Do("SCAN", cursor, "MATCH", s.prefix+":*", "COUNT", 1000))
		if err != nil {
			s.t.Fatal(err)
		}
		var keys []string
		if _, err := redis.Scan(reply, &cursor, &keys); err != nil {
			s.t.Fatal(err)
		}
		all = append(all, keys...)
		if cursor == "0" {
			slices.Sort(all)
			return slices.Compact(all)
		}
	}
}

// gone is the time to live of a key that does not exist.
const gone = -2 * time.Millisecond

// ttl is a key's time to live, gone if there is no such key, below 0 if it has none.
func (s *suite) ttl(server int, key string) time.Duration {
	s.t.Helper()
	ms, err := redis.Int64(s.conns[server].Do("PTTL", key))
	if err != nil {
		s.t.Fatal(err)
	}
	return time.Duration(ms) * time.Millisecond
}

// epoch is the clock's, for this window.
func (s *suite) epoch(window time.Duration) int64 {
	wall, _ := s.clock.Now()
	return wall / int64(window)
}

// key is the name of an entity's counter.
func (s *suite) key(entity string, epoch int64) string {
	return fmt.Sprintf("%s:%s:%d", s.prefix, entity, epoch)
}

// total returns a counter, 0 if there is none.
func (s *suite) total(entity string, epoch int64) int64 {
	s.t.Helper()
	return s.totals(0, []string{s.key(entity, epoch)})[0]
}

// totals returns counters of a server by their keys, 0 for those that are not there.
func (s *suite) totals(server int, keys []string) []int64 {
	s.t.Helper()
	totals, err := redis.Int64s(s.conns[server].Do("MGET", redis.Args{}.AddFlat(keys)...))
	if err != nil {
		s.t.Fatal(err)
	}
	return totals
}

// sum is all that a server holds of an entity, whatever the epoch.
func (s *suite) sum(server int, entity string) (sum int64) {
	s.t.Helper()
	for _, key := range s.keys(server) {
		if strings.HasPrefix(key, s.prefix+":"+entity+":") {
			sum += s.totals(server, []string{key})[0]
		}
	}
	return sum
}

// expectTotal checks a counter.
func (s *suite) expectTotal(entity string, epoch, want int64) {
	s.t.Helper()
	if got := s.total(entity, epoch); got != want {
		s.t.Errorf("%s holds %d in epoch %d, want %d", entity, got, epoch, want)
	}
}

// do runs a command on a server.
func (s *suite) do(server int, command string, args ...any) any {
	s.t.Helper()
	reply, err := s.conns[server].Do(command, args...)
	if err != nil {
		s.t.Fatalf("%s: %v", command, err)
	}
	return reply
}

// A suiteNode is one limiter, and what it says.
type suiteNode struct {
	*ratelimit.Limiter
	t   *testing.T
	log *suiteLog
}

// node makes a limiter on the suite's clock. change may alter its configuration. At
// the end every unit it counted must be delivered or dropped for a cause.
func (s *suite) node(change func(*ratelimit.Config), options ...ratelimit.Option) *suiteNode {
	s.t.Helper()
	return s.looping(change, append([]ratelimit.Option{ratelimit.WithClock(s.clock.Node(0))}, options...)...)
}

// looping is node with the clock and the goroutines of production.
func (s *suite) looping(change func(*ratelimit.Config), options ...ratelimit.Option) *suiteNode {
	s.t.Helper()
	cfg := ratelimit.DefaultConfig()
	cfg.GlobalThreshold, cfg.WindowInterval = 100, suiteWindow
	cfg.SyncByUnits = false // the suite says what each tick sends
	cfg.RedisURLs, cfg.RedisKeyPrefix = s.urls, s.prefix
	// Only a server that hangs may meet these.
	cfg.GlobalReadTimeout, cfg.GlobalWriteTimeout, cfg.ConnectTimeout = 20*time.Second, 20*time.Second, 20*time.Second
	if change != nil {
		change(&cfg)
	}
	n := &suiteNode{t: s.t, log: &suiteLog{}}
	l, err := ratelimit.New(cfg, append([]ratelimit.Option{
		ratelimit.WithMetricsSet(metrics.NewSet()), ratelimit.WithLogger(slog.New(slog.NewTextHandler(n.log, nil))),
	}, options...)...)
	if err != nil {
		s.t.Fatal(err)
	}
	n.Limiter = l
	s.t.Cleanup(n.end)
	return n
}

// end closes the limiter and checks its books.
func (n *suiteNode) end() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_ = n.Close(ctx) // what is left is in the statistics
	if s := n.Stats(); s.Counted != s.Delivered+s.Dropped.Total() || s.Undelivered != 0 {
		n.t.Errorf("closed with %d counted, %d delivered, %d undelivered, dropped %+v", s.Counted, s.Delivered, s.Undelivered, s.Dropped)
	}
}

// sync ticks once, at this very time.
func (n *suiteNode) sync() {
	n.t.Helper()
	if err := n.Sync(context.Background()); err != nil {
		n.t.Fatal(err)
	}
}

// allowed checks single units, so many times, and returns how many passed.
func (n *suiteNode) allowed(key string, times int) (passed int) {
	for range times {
		if n.Allow(key) {
			passed++
		}
	}
	return passed
}

// expectLevel checks what a node takes an entity's level for, and that the fleet's
// counts tell so.
func (n *suiteNode) expectLevel(key string, want float64) {
	n.t.Helper()
	if d := n.Peek(key); d.Level() != want || d.Basis() != ratelimit.BasisFleet {
		n.t.Errorf("%s: level %v by %v, want %v by the fleet", key, d.Level(), d.Basis(), want)
	}
}

// metric sums a metric over its labels, of which those given must occur.
func (n *suiteNode) metric(name string, labels ...string) (sum float64) {
	n.t.Helper()
	var text bytes.Buffer
	n.WritePrometheus(&text)
	for line := range strings.Lines(text.String()) {
		series, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if base, _, _ := strings.Cut(series, "{"); base != "global_rate_limiter_"+name ||
			slices.ContainsFunc(labels, func(label string) bool { return !strings.Contains(series, label) }) {
			continue
		}
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			n.t.Fatal(err)
		}
		sum += v
	}
	return sum
}

// A suiteLog keeps what a limiter logs.
type suiteLog struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

func (l *suiteLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// count returns how many lines contain the text.
func (l *suiteLog) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}

// eventually waits for what only real time can bring.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited 30 s for this in vain: %s", what)
		}
	}
}
