// This file is a node of the burst test: the test's own program, started again as a
// process, that limits on a real Redis by the real clock and says what happened.

package integration

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/hanzoai/limiters/internal/redisstore"
	"github.com/hanzoai/limiters/internal/redisurl"
	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/ratelimit/store"
)

// burstEnv makes the program a node: it holds a burstSetup.
const burstEnv = "LIMITERS_TEST_BURST_NODE"

// A burstSetup is what a node is told when it starts.
type burstSetup struct {
	URL       string
	Prefix    string
	Window    ratelimit.WindowKind
	Threshold uint64
	Interval  time.Duration
}

// A burstOrder asks a node for a burst: so many requests of a key, evenly within a
// time, from a moment on.
type burstOrder struct {
	Key      string
	Requests int
	From     int64 // Unix time, ns
	Within   time.Duration
}

// A burstReport is what came of it. Times are ns since the order's moment.
type burstReport struct {
	Sent    []int64 // of each request
	Allowed int
	Last    int64 // of the requests that passed
	Gaps    []burstGap
}

// A burstGap is from sending one script to having the reply of the next. The first is
// from the burst's moment to the first reply.
type burstGap struct{ From, Until int64 }

// longest is the longest gap of those in which anything passed.
func (r *burstReport) longest() (gap int64) {
	for _, g := range r.Gaps {
		if g.From <= r.Last {
			gap = max(gap, min(g.Until, r.Last)-g.From)
		}
	}
	return gap
}

// nodeOfBurst runs the program as a node if it was started as one, and reports whether
// it was. A line on standard input is an order, one on standard output its report; the
// node ends with its input.
func nodeOfBurst() bool {
	text := os.Getenv(burstEnv)
	if text == "" {
		return false
	}
	if err := runBurstNode(text); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}

func runBurstNode(text string) error {
	var setup burstSetup
	if err := json.Unmarshal([]byte(text), &setup); err != nil {
		return err
	}
	target, err := redisurl.Parse(setup.URL)
	if err != nil {
		return err
	}
	inner := redisstore.Open(target, redisstore.Options{})
	defer inner.Close()
	timed := &timedStore{inner: inner}
	cfg := ratelimit.DefaultConfig()
	cfg.GlobalThreshold, cfg.WindowInterval, cfg.Window = setup.Threshold, setup.Interval, setup.Window
	cfg.RedisKeyPrefix = setup.Prefix
	lim, err := ratelimit.New(cfg, ratelimit.WithPartitions(ratelimit.Partition{Name: "redis", Store: timed}))
	if err != nil {
		return err
	}
	defer lim.Close(context.Background())
	if err := lim.Sync(context.Background()); err != nil { // connects
		return err
	}
	orders := bufio.NewScanner(os.Stdin)
	for orders.Scan() {
		var order burstOrder
		if err := json.Unmarshal(orders.Bytes(), &order); err != nil {
			return err
		}
		line, err := json.Marshal(order.run(lim, timed))
		if err != nil {
			return err
		}
		fmt.Println(string(line))
	}
	return errors.Join(orders.Err(), lim.Close(context.Background()))
}

// run makes the burst.
func (o *burstOrder) run(lim *ratelimit.Limiter, timed *timedStore) burstReport {
	from := time.Unix(0, o.From)
	timed.begin(from)
	report := burstReport{Sent: make([]int64, 0, o.Requests)}
	for i := range o.Requests {
		time.Sleep(time.Until(from.Add(o.Within * time.Duration(i) / time.Duration(o.Requests))))
		report.Sent = append(report.Sent, int64(time.Since(from)))
		if lim.Allow(o.Key) {
			report.Allowed++
			report.Last = report.Sent[i]
		}
	}
	time.Sleep(time.Until(from.Add(o.Within)))
	report.Gaps = timed.end(from)
	return report
}

// A timedStore takes down when scripts are sent and answered.
type timedStore struct {
	inner store.Store

	mu    sync.Mutex
	from  time.Time  // guarded by mu
	calls [][2]int64 // guarded by mu; sent and answered, ns since from; those that failed are left out
}

// Apply implements store.Store.
func (s *timedStore) Apply(ctx context.Context, batch *store.Batch, reply *store.Reply) error {
	sent := time.Now()
	err := s.inner.Apply(ctx, batch, reply)
	answered := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.calls = append(s.calls, [2]int64{int64(sent.Sub(s.from)), int64(answered.Sub(s.from))})
	}
	return err
}

func (s *timedStore) begin(from time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.from, s.calls = from, nil
}

// end returns the gaps of a burst that is over; one that is under way ends now.
func (s *timedStore) end(from time.Time) (gaps []burstGap) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := int64(0)
	for _, call := range s.calls {
		gaps = append(gaps, burstGap{before, call[1]})
		before = max(0, call[0])
	}
	return append(gaps, burstGap{before, int64(time.Since(from))})
}
