package ratelimit

// This file is the harness of the unit tests: limiters on one fake clock and one
// memory store, and an audit of every unit.

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"github.com/hanzoai/limiters/internal/clock"
	"github.com/hanzoai/limiters/internal/memstore"
	"github.com/hanzoai/limiters/ratelimit/store"
)

// start is when every test's clock starts: at the beginning of a window of a minute.
var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

const (
	minute = int64(time.Minute)
	second = int64(time.Second)
)

// A world is a fake clock and what a fleet shares.
type world struct {
	t     *testing.T
	clock *clock.Fake
	mem   *memstore.Store
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, clock: clock.NewFake(start)}
	w.mem = memstore.New(func() int64 { wall, _ := w.clock.Now(); return wall })
	return w
}

// A node is a limiter, a way to break what it syncs through, and its audit.
type node struct {
	*Limiter
	world *world
	link  *link
	audit *audit
	log   *strings.Builder
}

// node starts a limiter on the world's clock. change may alter its configuration.
func (w *world) node(change func(*Config), opts ...Option) *node {
	w.t.Helper()
	cfg := DefaultConfig()
	cfg.GlobalThreshold = 100
	if change != nil {
		change(&cfg)
	}
	n := &node{world: w, link: &link{store: w.mem}, audit: newAudit(), log: &strings.Builder{}}
	opts = append([]Option{
		WithClock(w.clock.Node(0)), WithMetricsSet(metrics.NewSet()), WithLogger(slog.New(slog.NewTextHandler(n.log, nil))),
		WithPartitions(Partition{Name: "memory", Store: n.link}),
	}, opts...)
	l, err := New(cfg, opts...)
	if err != nil {
		w.t.Fatal(err)
	}
	n.Limiter = l
	l.ledger.settled = n.audit.settled
	l.ledger.returned = n.returnedTo
	w.t.Cleanup(func() { l.Close(context.Background()) })
	return n
}

// check checks n units and counts what was recorded in the audit.
func (n *node) check(key string, units uint64) Decision {
	r := n.read()
	d := n.Check(key, units)
	if d.Verdict() == VerdictAllowed || n.cfg.CountLimited {
		n.audit.count(n.KeyName(key), r.epoch, min(units, store.MaxUnits))
	}
	return d
}

// allowed checks single units until one is limited, at most limit of them, and
// returns how many passed.
func (n *node) allowed(key string, limit int) (passed int) {
	for passed < limit && n.check(key, 1).Allowed() {
		passed++
	}
	return passed
}

// A link is a store that can be made to fail.
type link struct {
	store store.Store

	mu      sync.Mutex
	before  func(b *store.Batch) error // fails an attempt before the store sees it
	after   func(r *store.Reply) error // fails an attempt that the store applied
	hooked  bool                       // before and after are a hook's, which sees batches alone
	batches []store.Batch              // every attempt, copied

	questions int // looks at nothing, which are no batches
}

func (l *link) Apply(ctx context.Context, b *store.Batch, r *store.Reply) error {
	l.mu.Lock()
	before, after := l.before, l.after
	if b.Number == 0 && len(b.Reads) == 0 {
		if l.questions++; l.hooked {
			before, after = nil, nil
		}
	} else {
		c := *b
		c.Writes = append([]store.Write(nil), b.Writes...)
		c.Reads = append([]string(nil), b.Reads...)
		l.batches = append(l.batches, c)
	}
	l.mu.Unlock()
	if before != nil {
		if err := before(b); err != nil {
			return err
		}
	}
	if err := l.store.Apply(ctx, b, r); err != nil {
		return err
	}
	if after != nil {
		return after(r)
	}
	return nil
}

// breaks makes every attempt fail so until it is healed: before the store sees it,
// or after it applied it.
func (l *link) breaks(before, after error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.before, l.after, l.hooked = nil, nil, false
	if before != nil {
		l.before = func(*store.Batch) error { return before }
	}
	if after != nil {
		l.after = func(*store.Reply) error { return after }
	}
}

func (l *link) heals() { l.breaks(nil, nil) }

// take returns the attempts since the last call.
func (l *link) take() []store.Batch {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.batches
	l.batches = nil
	return b
}

// The failures of attempts, by what they tell.
var (
	errUnreachable = &store.Error{Fate: store.NotSent, Step: store.StepConnect, Cause: store.CauseUnreachable, Err: fmt.Errorf("nothing listens")}
	errReadOnly    = &store.Error{Fate: store.Denied, Step: store.StepReply, Cause: store.CauseReadOnly, Err: fmt.Errorf("READONLY")}
	errTimeout     = &store.Error{Fate: store.Unknown, Step: store.StepReply, Cause: store.CauseTimeout, Err: fmt.Errorf("no reply")}
	errEOF         = &store.Error{Fate: store.Unknown, Step: store.StepReply, Cause: store.CauseClosed, Err: fmt.Errorf("EOF")}
)

// A counter is one entity's count in one epoch.
type counter struct {
	key   string
	epoch int64
}

// An audit knows, per counter, what was counted and what became of it.
type audit struct {
	mu        sync.Mutex
	counted   map[counter]uint64
	delivered map[counter]uint64
	dropped   map[counter][dropCauses]uint64
	returned  map[counter]returned
}

func newAudit() *audit {
	return &audit{
		counted: map[counter]uint64{}, delivered: map[counter]uint64{}, dropped: map[counter][dropCauses]uint64{},
		returned: map[counter]returned{},
	}
}

func (a *audit) count(key string, epoch int64, units uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.counted[counter{key, epoch}] += units
}

func (a *audit) settled(key string, epoch int64, units uint64, cause dropCause) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := counter{key, epoch}
	if cause == dropCauses {
		a.delivered[c] += units
		return
	}
	dropped := a.dropped[c]
	dropped[cause] += units
	a.dropped[c] = dropped
}

// unsettled returns, per counter, the limiter's units that are unsent and those in
// flight. Nothing else may run.
func (n *node) unsettled() (unsent, inFlight map[counter]uint64) {
	unsent, inFlight = map[counter]uint64{}, map[counter]uint64{}
	for i := range n.table.shards {
		for e := range n.table.shards[i].entries.each() {
			for j := range e.slots {
				if u := e.slots[j].unsent; u > 0 {
					unsent[counter{e.key, e.epoch - 1 + int64(j)}] += u
				}
			}
		}
	}
	for _, p := range n.partitions {
		if !p.carrying {
			continue
		}
		for _, it := range p.batch.items {
			for j, u := range it.units {
				if u > 0 {
					inFlight[counter{it.entry.key, it.epoch - 1 + int64(j)}] += u
				}
			}
		}
	}
	return unsent, inFlight
}

// conserves checks the law of conservation to the unit, counter by counter: for
// every node, counted = delivered + dropped + unsent + in flight; for the fleet,
// with nothing unknown or in flight, the store holds what was delivered. Nothing
// else may run.
func (w *world) conserves(nodes ...*node) {
	w.t.Helper()
	for _, v := range w.violations(nil, nodes...) {
		w.t.Error(v)
	}
}

// violations returns what breaks the law of conservation. The store may hold less
// than was delivered of the counters that lost, if not nil, names.
func (w *world) violations(lost func(counter) bool, nodes ...*node) (found []string) {
	delivered, doubtful := map[counter]uint64{}, map[counter]uint64{}
	for i, n := range nodes {
		unsent, inFlight := n.unsettled()
		all := map[counter]bool{}
		for _, m := range []map[counter]uint64{n.audit.counted, n.audit.delivered, unsent, inFlight} {
			for c := range m {
				all[c] = true
			}
		}
		for c := range n.audit.dropped {
			all[c] = true
		}
		for c := range all {
			sum := n.audit.delivered[c] + unsent[c] + inFlight[c] + n.audit.returned[c].vanished
			for _, u := range n.audit.dropped[c] {
				sum += u
			}
			if counted := n.audit.counted[c]; counted != sum {
				found = append(found, fmt.Sprintf("node %d, %q in epoch %d: counted %d; delivered %d + unsent %d + in flight %d + dropped %v + given back %+v = %d",
					i, c.key, c.epoch, counted, n.audit.delivered[c], unsent[c], inFlight[c], n.audit.dropped[c], n.audit.returned[c], sum))
			}
			delivered[c] += n.audit.delivered[c]
			doubtful[c] += inFlight[c] + n.audit.dropped[c][dropUnknown]
		}
	}
	taken, perhaps := map[counter]uint64{}, map[counter]uint64{}
	for i, n := range nodes {
		found = append(found, n.returns(i, taken, perhaps)...)
		n.asksFor(doubtful)
	}
	for c, units := range delivered {
		key := string(appendCounterKey(nil, nodes[0].cfg.RedisKeyPrefix, c.key, nodes[0].number(c.epoch)))
		total, ok := w.mem.Get(key)
		if !ok && nodes[0].read().epoch >= c.epoch+2 {
			continue // expired, when no read could see it any more
		}
		held := uint64(max(0, total))
		if held+taken[c]+perhaps[c] < units && (lost == nil || !lost(c)) || held+taken[c] > units+doubtful[c] {
			found = append(found, fmt.Sprintf("%q in epoch %d: the store holds %d, delivered are %d, doubtful %d, taken back %d, perhaps %d",
				c.key, c.epoch, held, units, doubtful[c], taken[c], perhaps[c]))
		}
	}
	return found
}
