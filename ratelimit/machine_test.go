package ratelimit

// This file runs limiters through random histories on one fake clock and one store:
// checks, ticks, failures, leaps of the clock, losses in the store, in any order. After
// every step it looks at all that must always hold.

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hanzoai/limiters/ratelimit/store"
)

func TestRandomHistories(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		m := newMachine(t, rt)
		rt.Repeat(map[string]func(*rapid.T){
			"":           m.invariants,
			"check":      m.check,
			"check more": m.check,
			"checkAt":    m.checkAt,
			"peek":       m.peek,
			"fill":       m.fill,
			"crowd":      m.crowd,
			"advance":    m.advance,
			"step":       m.step,
			"sync":       m.sync,
			"fail":       m.fail,
			"heal":       m.heal,
			"poison":     m.poison,
			"refuse":     m.refuse,
			"forget":     m.forget,
			"record":     m.charge,
			"reserve":    m.reserve,
			"ask":        m.ask,
			"settle":     m.settle,
			"settle all": m.settleAll,
			"override":   m.override,
			"sequence":   m.sequence,
			"flush":      m.flush,
			"close":      m.close,
		})
		m.end(rt)
	})
}

// A machine is a fleet and what happened to its store and clock.
type machine struct {
	*world
	nodes []*member

	flushed   bool             // counters were lost, or may have expired early: the clock stepped back
	misled    bool             // a sequence key was lost or spoilt
	ruined    map[counter]bool // counters whose content a test replaced
	lastEpoch int64            // the latest that any node saw
}

// A member is a node, whether it is closed, and what it sent under each number.
type member struct {
	*node
	closed bool
	sent   map[string]store.Batch
	open   []*Reservation
	told   uint64 // units that the audit was told of by record, and as granted
}

// names are the keys of entities: odd ones among them, and more than the table holds.
var names = []string{"", "a", "b:1", "{c}", "d\n", strings.Repeat("long", 40), "k6", "k7", "k8", "k9", "k10", "k11", "k12"}

func newMachine(t *testing.T, rt *rapid.T) *machine {
	m := &machine{world: newWorld(t), ruined: map[counter]bool{}}
	countLimited, strict := rapid.Bool().Draw(rt, "count limited"), rapid.Bool().Draw(rt, "strict")
	hot := rapid.SampledFrom([]time.Duration{0, 4 * time.Second}).Draw(rt, "hot")
	kind := windows[rapid.SampledFrom([]string{"leaky", "sliding", "strict", "3 slices", "fixed", "hourly"}).Draw(rt, "window")]
	burst := rapid.SampledFrom([]time.Duration{0, 0, time.Second, 20 * time.Second}).Draw(rt, "burst")
	for range rapid.IntRange(1, 3).Draw(rt, "nodes") {
		offset := time.Duration(rapid.IntRange(-2000, 2000).Draw(rt, "offset")) * time.Millisecond
		n := m.world.node(func(c *Config) {
			c.GlobalThreshold, c.TickInterval, c.HotSyncInterval = 20, 10*time.Second, hot
			c.CountLimited, c.StrictFirstContact = countLimited, strict
			c.LocalCacheMaxEntries = rapid.IntRange(1, 9).Draw(rt, "entries")
			c.ChannelCapacity = rapid.IntRange(1, 6).Draw(rt, "capacity")
			c.MaxSyncKeysPerTick = rapid.IntRange(1, 6).Draw(rt, "per tick")
			c.MaxKeysPerScript = rapid.IntRange(1, 4).Draw(rt, "per script")
			c.LocalCacheIdleTimeout, c.TierScanIntervalTicks, c.MaxKeyBytes = 121*time.Second, 2, 64
			c.BurstInterval = burst
			if kind(c); c.WindowCalendar == CalendarHour {
				c.LocalCacheIdleTimeout = 2 * time.Hour
			}
		}, WithClock(m.clock.Node(offset)))
		member := &member{node: n, sent: map[string]store.Batch{}}
		n.ledger.granted = func(key string, epoch int64, units uint64) {
			n.audit.count(key, epoch, units)
			member.told += units
		}
		m.nodes = append(m.nodes, member)
	}
	m.lastEpoch = m.nodes[0].epochAt(0)
	return m
}

func (m *machine) someone(rt *rapid.T) *member {
	return m.nodes[rapid.IntRange(0, len(m.nodes)-1).Draw(rt, "node")]
}

func someKey(rt *rapid.T) string { return rapid.SampledFrom(names).Draw(rt, "key") }

// record counts in the audit what a check recorded.
func (n *member) record(d Decision, key string, epoch int64, units uint64) {
	if !n.closing.begun() && (d.Verdict() == VerdictAllowed || n.cfg.CountLimited) {
		n.audit.count(n.KeyName(key), epoch, units)
		n.told += units
	}
}

func (m *machine) check(rt *rapid.T) {
	n, key := m.someone(rt), someKey(rt)
	units := rapid.SampledFrom([]uint64{1, 1, 2, 9, 19, 20, 300}).Draw(rt, "units")
	epoch := n.epochAt(0)
	d := n.Check(key, units)
	n.record(d, key, epoch, units)
	judge(rt, d)
}

func (m *machine) checkAt(rt *rapid.T) {
	n, key := m.someone(rt), someKey(rt)
	at := time.Unix(0, n.read().wall).Add(-time.Duration(rapid.IntRange(-5, 150).Draw(rt, "seconds ago")) * time.Second)
	r := n.read()
	epoch := n.epochOf(at, &r)
	d := n.CheckAt(key, 3, at)
	n.record(d, key, epoch, 3)
	judge(rt, d)
}

func (m *machine) peek(rt *rapid.T) { judge(rt, m.someone(rt).Peek(someKey(rt))) }

// judge checks what every decision must be, its waits included.
func judge(rt *rapid.T, d Decision) {
	if level := d.Level(); math.IsNaN(level) || math.IsInf(level, 0) || level < 0 {
		rt.Fatalf("level %v", level)
	}
	if d.kind != leaky || d.burst.Interval > 0 {
		return // see retryafter_test.go
	}
	if d.model.Into == 0 && d.Verdict() == VerdictAllowed {
		return // see turnLocked
	}
	asked := max(d.units, 1) // one of no units is answered as one of one
	if limited := d.Level()+float64(asked-d.units) >= float64(d.Threshold()); limited != (d.Verdict() == VerdictLimited) && d.Basis() != BasisFirstContact {
		rt.Fatalf("level %v of %d: %v", d.Level(), d.Threshold(), d.Verdict())
	}
	passes := func(wait int64) bool {
		return d.model.Highest(d.threshold, d.tick, wait)+float64(asked) < float64(d.threshold)
	}
	switch wait := d.RetryAfter(); {
	case d.Verdict() == VerdictAllowed && wait != 0, wait < 0:
		rt.Fatalf("%v, RetryAfter %v", d.Verdict(), wait)
	case d.Verdict() == VerdictLimited && wait == Never:
		if asked < d.threshold {
			rt.Fatalf("%d units of a threshold of %d never pass", d.units, d.threshold)
		}
	case d.Verdict() == VerdictLimited && (!passes(int64(wait)+1) || wait > 0 && passes(int64(wait)-1)):
		rt.Fatalf("limited at level %v of %d; RetryAfter %v is not the smallest wait that helps", d.Level(), d.Threshold(), wait)
	}
}

// fill offers single units to an entity without a level: its threshold less one pass,
// and one at first contact with a threshold of one (unless that is strict).
func (m *machine) fill(rt *rapid.T) {
	n, key := m.someone(rt), someKey(rt)
	if n.Peek(key).Level() > 0 {
		return
	}
	first := n.Peek(key).Basis() == BasisFirstContact
	threshold, epoch := n.Peek(key).Threshold(), n.epochAt(0)
	passed := uint64(0)
	for range threshold + 3 {
		d := n.Check(key, 1)
		n.record(d, key, epoch, 1)
		if d.Verdict() == VerdictAllowed {
			passed++
		}
	}
	want := max(threshold, 1) - 1
	if threshold == 1 && first && !n.cfg.StrictFirstContact {
		want = 1
	}
	if n.bursts { // the bucket may hold something that the window no longer does
		want = min(passed, want, uint64(n.burst.Capacity(threshold)))
	}
	if passed != want {
		rt.Fatalf("%q let %d single units into an empty window, of a threshold of %d", key, passed, threshold)
	}
}

// crowd checks every key, which are more than the table holds.
func (m *machine) crowd(rt *rapid.T) {
	n, from := m.someone(rt), rapid.IntRange(0, len(names)-1).Draw(rt, "from")
	for i := range names {
		key := names[(from+i)%len(names)]
		n.record(n.Check(key, 1), key, n.epochAt(0), 1)
	}
}

func (m *machine) advance(rt *rapid.T) {
	seconds := rapid.SampledFrom([]int{1, 3, 10, 10, 25, 61, 130}).Draw(rt, "seconds")
	for ; seconds > 0; seconds -= 10 { // so that no epoch passes unseen
		m.clock.Advance(time.Duration(min(seconds, 10)) * time.Second)
		m.look()
	}
}

func (m *machine) step(rt *rapid.T) {
	by := time.Duration(rapid.SampledFrom([]int{-90000, -130, -70, -40, -2, 2, 40, 70, 130, 90000, 1 << 30}).Draw(rt, "seconds")) * time.Second
	for _, n := range m.nodes {
		// A sequence key that expires ahead is a lost one: see sequence.
		if p := n.partitions[0]; by > time.Hour && p.carrying && p.batch.Retry && p.batch.Number == 1 {
			return
		}
	}
	m.flushed = m.flushed || by < 0 // what expired ahead is missing afterwards
	m.clock.StepWall(by)
	m.look()
}

func (m *machine) look() {
	for _, n := range m.nodes {
		m.lastEpoch = max(m.lastEpoch, n.epochAt(0))
	}
}

func (m *machine) sync(rt *rapid.T) {
	n := m.someone(rt)
	if err := n.Sync(context.Background()); n.closed != errors.Is(err, ErrClosed) {
		rt.Fatalf("Sync = %v, closed %v", err, n.closed)
	}
}

// fail breaks a node's link: before the store sees a batch or after it answered, with
// checks and evictions meanwhile or not.
func (m *machine) fail(rt *rapid.T) {
	n := m.someone(rt)
	failure := rapid.SampledFrom([]error{errUnreachable, errReadOnly, errTimeout, errEOF, errors.New("boom"), nil}).Draw(rt, "failure")
	sent, busy := rapid.Bool().Draw(rt, "sent"), rapid.Bool().Draw(rt, "busy")
	before := func(*store.Batch) error {
		if busy {
			for _, key := range []string{"a", "b:1"} {
				n.record(n.Check(key, 2), key, n.epochAt(0), 2)
			}
			n.Forget("a")
		}
		if sent {
			return nil
		}
		return failure
	}
	after := func(r *store.Reply) error {
		if sent && failure == nil {
			r.Number++ // someone else's reply
		}
		if !sent {
			return nil
		}
		var known *store.Error
		if errors.As(failure, &known) && known.Fate != store.Unknown {
			return errTimeout // of an attempt that was applied nobody may say that it was not
		}
		return failure
	}
	n.link.hook(before, after)
}

func (m *machine) heal(rt *rapid.T) { m.someone(rt).link.heals() }

// counterOf picks a counter of the epochs around now.
func (m *machine) counterOf(rt *rapid.T) (c counter, key string) {
	n := m.someone(rt)
	c = counter{representation(someKey(rt), n.maxKeyBytes), n.epochAt(rapid.Int64Range(-1, 1).Draw(rt, "epoch"))}
	return c, n.counterKey(c.key, c.epoch)
}

func (m *machine) poison(rt *rapid.T) {
	c, key := m.counterOf(rt)
	m.ruined[c] = true
	if rapid.Bool().Draw(rt, "foreign") {
		m.mem.SetForeign(key)
	} else {
		m.mem.Set(key, "-9000")
	}
}

func (m *machine) refuse(rt *rapid.T) {
	_, key := m.counterOf(rt)
	m.mem.Fail(key, rapid.SampledFrom([]store.Status{store.Refused, store.Unexpiring, store.Written}).Draw(rt, "status"))
}

func (m *machine) forget(rt *rapid.T) { m.someone(rt).Forget(someKey(rt)) }

func (m *machine) override(rt *rapid.T) {
	keys, limits := rapid.SampledFrom(names), rapid.SampledFrom([]uint64{0, 1, 2, 7, 50})
	m.someone(rt).SetOverrides(rapid.MapOfN(keys, limits, 0, 4).Draw(rt, "overrides"))
}

// sequence loses or spoils a node's sequence key. A batch of number 1 in doubt is left
// alone: it cannot tell a lost key from one that never was (docs/design.md, the script).
func (m *machine) sequence(rt *rapid.T) {
	n := m.someone(rt)
	p := n.partitions[0]
	doubt := p.carrying && p.batch.Retry
	m.misled = true
	switch sequence := p.sequence; rapid.IntRange(0, 2).Draw(rt, "how") {
	case 0:
		if !doubt || p.batch.Number > 1 {
			m.mem.Delete(sequence)
		}
	case 1:
		m.mem.Set(sequence, "no number")
	case 2:
		if !doubt && n.link.before == nil { // another limiter's number is met at a first attempt
			m.mem.Set(sequence, fmt.Sprint(p.number+5, " 1"))
			n.Sync(context.Background())
			m.mem.Delete(sequence)
		}
	}
}

func (m *machine) flush(*rapid.T) {
	m.flushed = true
	m.mem.FlushAll()
}

func (m *machine) close(rt *rapid.T) {
	n := m.someone(rt)
	if rapid.IntRange(0, 4).Draw(rt, "really") > 0 {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if rapid.Bool().Draw(rt, "no time") {
		cancel()
	}
	m.closes(rt, n, ctx)
}

// closes closes a node and checks that its report is exact.
func (m *machine) closes(rt *rapid.T, n *member, ctx context.Context) {
	var before Dropped
	if !n.closed {
		before = n.Stats().Dropped
	}
	err := n.Close(ctx)
	for len(n.metrics.set.ListMetricNames()) > 0 { // the last that ends, later than Close if it had no time
		runtime.Gosched()
	}
	first := !n.closed
	n.closed = true
	s := n.Stats()
	var left CloseError
	var report *CloseError
	if errors.As(err, &report) {
		left = *report
	} else if err != nil {
		rt.Fatalf("Close = %v", err)
	}
	if first && (s.Dropped.Closed != left.Undelivered || s.Dropped.Unknown-before.Unknown < left.Unknown) || s.Undelivered != 0 {
		rt.Fatalf("Close reported %+v; dropped before %+v, after %+v", left, before, s)
	}
}

// end heals everything, closes all, and wants every unit accounted for.
func (m *machine) end(rt *rapid.T) {
	for _, n := range m.nodes {
		n.link.heals()
		if !n.closed && !m.flushed {
			n.Sync(context.Background())
		}
		m.closes(rt, n, context.Background())
		var counted uint64
		for _, units := range n.audit.counted {
			counted += units
		}
		if s := n.Stats(); s.Counted != counted || s.Counted-s.Returned.Taken != s.Delivered+s.Dropped.Total() || s.Returned.Waiting != 0 {
			rt.Fatalf("counted %d: %+v", counted, s)
		}
	}
	m.invariants(rt)
}
