package ratelimit

// This file tests Close (docs/design.md, the tick): what it delivers, what it
// reports, when it returns, and what is left of the limiter after it.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"github.com/hanzoai/limiters/ratelimit/store"
)

// ends closes the node and compares what it reports; nil is no error.
func (n *node) ends(ctx context.Context, row string, want *CloseError) {
	n.world.t.Helper()
	err := n.Close(ctx)
	var got *CloseError
	if err != nil && !errors.As(err, &got) {
		n.world.t.Errorf("%s: Close = %v, want a CloseError or nil", row, err)
		return
	}
	if (got == nil) != (want == nil) || got != nil && *got != *want {
		n.world.t.Errorf("%s: Close = %+v, want %+v", row, got, want)
	}
	s := n.Stats()
	if s.Undelivered != 0 || s.Counted != s.Delivered+s.Dropped.Total() {
		n.world.t.Errorf("%s: after Close %+v, want every unit delivered or dropped", row, s)
	}
	if want != nil && (s.Dropped.Closed != want.Undelivered || s.Dropped.Unknown < want.Unknown) {
		n.world.t.Errorf("%s: dropped %+v, want what Close reported, %+v", row, s.Dropped, *want)
	}
}

func TestCloseDeliversWhatIsLeft(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n, links := w.nodeOf(3, func(c *Config) { c.MaxSyncKeysPerTick, c.ChannelCapacity, c.LocalCacheMaxEntries = 6, 60, 150 })
	for i := range 200 {
		n.check(fmt.Sprint("k", i), 1) // in the queue, turned away, evicted
	}
	n.Forget("k199")
	dropped := n.Stats().Dropped
	n.ends(context.Background(), "healthy", nil)
	if s := n.Stats(); s.Dropped != dropped || s.Delivered != 200-dropped.Overflow {
		t.Errorf("%+v, want all delivered but the overflow before, %d", s, dropped.Overflow)
	}
	for i, l := range links {
		for _, b := range l.take() {
			if len(b.Reads) > 0 {
				t.Errorf("partition %d: batch %d reads %q, which nobody will look at", i, b.Number, b.Reads)
			}
		}
	}
	w.conserves(n)
}

func TestCloseOfAnIdleLimiterSendsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(nil)
	n.Peek("a")
	n.ends(context.Background(), "idle", nil)
	if got := n.link.take(); len(got) != 0 {
		t.Errorf("it sent %+v", got)
	}
}

func TestCloseReportsByFate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		before, after error // what fails while closing
		earlier       error // what failed an attempt before it, at the units of a
		want          CloseError
		attempts      int
	}{
		{"unreachable", errUnreachable, nil, nil, CloseError{Undelivered: 7}, 3},
		{"refused", errReadOnly, nil, nil, CloseError{Undelivered: 7}, 3},
		{"timeouts", errTimeout, nil, nil, CloseError{Unknown: 7}, 3},
		{"applied without a reply", nil, errTimeout, nil, CloseError{Unknown: 7}, 3},
		{"closed connections", nil, errEOF, nil, CloseError{Unknown: 7}, 6},
		{"in doubt before", errUnreachable, nil, errTimeout, CloseError{Undelivered: 4, Unknown: 3}, 3},
		{"refused before", errUnreachable, nil, errReadOnly, CloseError{Undelivered: 7}, 3},
	} {
		w := newWorld(t)
		n := w.node(nil)
		n.check("a", 3)
		if c.earlier != nil {
			n.link.breaks(c.earlier, nil)
			n.syncFails()
		}
		n.check("b", 4)
		n.link.breaks(c.before, c.after)
		n.link.take()
		n.ends(context.Background(), c.name, &c.want)
		if got := len(n.link.take()); got != c.attempts {
			t.Errorf("%s: %d attempts, want %d", c.name, got, c.attempts)
		}
		w.conserves(n)
	}
}

func TestCloseErrorSaysBothCounts(t *testing.T) {
	t.Parallel()
	err := &CloseError{Undelivered: 12, Unknown: 34}
	if want := "ratelimit: closed with 12 units undelivered and 34 units of unknown fate"; err.Error() != want {
		t.Errorf("%q, want %q", err.Error(), want)
	}
}

// An outage that ends while Close runs costs nothing.
func TestCloseOutlastsAShortFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(nil)
	n.check("a", 3)
	attempts := 0
	n.link.hook(func(*store.Batch) error {
		if attempts++; attempts < 3 {
			return errTimeout
		}
		return nil
	}, nil)
	n.ends(context.Background(), "two failures", nil)
	w.conserves(n)
}

func TestOnlyFailuresInARowEndClose(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.MaxSyncKeysPerTick = 1 })
	for i := range 4 {
		n.check(fmt.Sprint("k", i), 1)
	}
	attempts := 0
	n.link.hook(func(*store.Batch) error {
		if attempts++; attempts%3 > 0 { // two of three
			return errTimeout
		}
		return nil
	}, nil)
	n.ends(context.Background(), "eight failures, two in a row", nil)
	w.conserves(n)
}

// Headway is what shortens the queue, whatever becomes of the units: a partition
// is given up for failing, not for having much to do that delivers nothing.
func TestCloseGoesOnWhileItMakesHeadway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.MaxSyncKeysPerTick = 1 })
	for i := range 8 {
		key := fmt.Sprint("hot", i)
		n.check(key, 300)
		n.sync()
		w.clock.Advance(8 * time.Second)
		n.check(key, 1) // limited; wants a read
	}
	for i := range 8 {
		w.mem.Set(n.counterKey(fmt.Sprint("bad", i), n.epochAt(0)), "x")
		n.check(fmt.Sprint("bad", i), 50)
	}
	n.check("last", 1)
	n.ends(context.Background(), "17 ticks", nil)
	if s := n.Stats(); s.Dropped != (Dropped{Poisoned: 400}) {
		t.Errorf("dropped %+v, want 400 poisoned and nothing else", s.Dropped)
	}
}

// Refused units are tried again as often as a failing partition is, even while
// another partition makes headway.
func TestCloseDoesNotHammerAPartitionThatRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n, links := w.nodeOf(2, func(c *Config) { c.MaxSyncKeysPerTick = 2 })
	turns := make(chan struct{}, 40)
	refused := false
	for i := 0; n.partitions[1].queue.len() < 40; i++ {
		key := fmt.Sprint("k", i)
		if n.table.owner(key) == n.partitions[1] {
			n.check(key, 20)
		} else if !refused {
			refused = true
			n.check(key, 20)
			w.mem.Fail(n.counterKey(key, n.epochAt(0)), store.Refused)
		}
	}
	links[0].hook(nil, func(*store.Reply) error { // one tick of the other between any two
		<-turns
		return nil
	})
	replies := 0
	links[1].hook(nil, func(*store.Reply) error {
		turns <- struct{}{}
		if replies++; replies == 40 {
			close(turns)
		}
		return nil
	})
	n.ends(context.Background(), "one refuses", &CloseError{Undelivered: 20})
	if got := len(links[0].take()); got != 3 {
		t.Errorf("%d attempts at the partition that refuses everything, want 3", got)
	}
	w.conserves(n)
}

func TestCloseWithAnEndedContextReportsWithoutTrying(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(nil)
	n.check("a", 3)
	n.link.breaks(nil, errTimeout)
	n.syncFails()
	n.link.heals()
	n.check("b", 4)
	n.link.take()
	ended, end := context.WithCancel(context.Background())
	end()
	n.ends(ended, "ended", &CloseError{Undelivered: 4, Unknown: 3})
	if got := n.link.take(); len(got) != 0 {
		t.Errorf("it sent %+v", got)
	}
	w.conserves(n)
	n.ends(ended, "again", &CloseError{Undelivered: 4, Unknown: 3})
}

// A store that does not return does not keep Close from returning, exactly; the
// reply that comes later changes nothing.
func TestCloseLeavesAHungStoreBehind(t *testing.T) {
	t.Parallel()
	for _, ticking := range []bool{true, false} { // hung since before Close, or since Close's own attempt
		w := newWorld(t)
		n := w.node(nil)
		ctx, end := context.WithCancel(context.Background())
		defer end()
		entered, release := make(chan struct{}), make(chan struct{})
		n.link.hook(func(*store.Batch) error {
			close(entered)
			<-release
			return nil
		}, nil)
		n.check("a", 3)
		var ticks sync.WaitGroup
		if ticking {
			ticks.Go(func() { n.Sync(context.Background()) })
			<-entered
			end()
		} else {
			ticks.Go(func() { <-entered; end() })
		}
		n.check("a", 2)
		n.check("b", 4)
		want := &CloseError{Undelivered: 6, Unknown: 3}
		if !ticking {
			want = &CloseError{Unknown: 9}
		}
		n.ends(ctx, fmt.Sprint("ticking ", ticking), want)
		before := n.Stats()
		w.conserves(n)
		close(release)
		ticks.Wait()
		n.partitions[0].turn <- <-n.partitions[0].turn // whoever had it is done
		after := n.Stats()
		if after.Delivered != 0 || after.Dropped != before.Dropped {
			t.Errorf("ticking %v: a late reply changed %+v to %+v", ticking, before.Dropped, after.Dropped)
		}
		if e := n.entry("a"); e.slots[1].total != 0 || e.synced {
			t.Errorf("ticking %v: a late reply taught %+v", ticking, e.slots)
		}
		n.ends(context.Background(), "again", want)
	}
}

func TestCloseWaitsForTheTickUnderWay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(nil)
	entered, release := make(chan struct{}), make(chan struct{})
	n.link.hook(func(*store.Batch) error {
		if b := n.partitions[0].batch.Number; b == 1 {
			close(entered)
			<-release
		}
		return nil
	}, nil)
	n.check("a", 3)
	var group sync.WaitGroup
	group.Go(func() { w.clock.Advance(5 * time.Second) })
	<-entered
	n.check("a", 2)
	group.Go(func() { n.ends(context.Background(), "during a tick", nil) })
	for !n.closing.begun() {
		runtime.Gosched()
	}
	close(release)
	group.Wait()
	if s := n.Stats(); s.Delivered != 5 {
		t.Errorf("%+v, want 5 delivered", s)
	}
	w.conserves(n)
	w.clock.Advance(time.Minute) // ticks no more
	if got := len(n.link.take()); got > 2 {
		t.Errorf("%d attempts, want those of the tick and of Close", got)
	}
}

func TestCloseIsIdempotentAndConcurrent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(nil)
	n.check("a", 3)
	entered, release := make(chan struct{}), make(chan struct{})
	n.link.hook(func(*store.Batch) error { close(entered); <-release; return nil }, nil)
	var group sync.WaitGroup
	results := make([]error, 8)
	group.Go(func() { results[0] = n.Close(context.Background()) })
	<-entered
	n.link.breaks(errUnreachable, nil)
	ended, end := context.WithCancel(context.Background())
	end()
	if err := n.Close(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("a second Close whose context ended: %v, want %v", err, context.Canceled)
	}
	for i := 1; i < len(results); i++ {
		group.Go(func() { results[i] = n.Close(context.Background()) })
	}
	close(release)
	group.Wait()
	for i, err := range results {
		if err != nil {
			t.Errorf("Close %d = %v, want the first one's result: nil", i, err)
		}
	}
	if err := n.Close(ended); err != nil {
		t.Errorf("Close after all = %v, want the result although the context ended", err)
	}
	w.conserves(n)
}

// The caller's arithmetic: every unit that a check counted before Close is delivered
// or reported; none of a check after it is.
func TestCloseUnderConcurrentChecksIsExact(t *testing.T) {
	t.Parallel()
	for round := range 6 {
		w := newWorld(t)
		n := w.node(func(c *Config) { c.GlobalThreshold = 1 << 40 })
		switch round % 3 {
		case 1:
			n.link.breaks(errUnreachable, nil)
		case 2:
			n.link.breaks(nil, errTimeout)
		}
		var before, after, closed atomic.Uint64 // units of checks that ended before Close began, or before it ended
		var group sync.WaitGroup
		started := make(chan struct{}, 4)
		for g := range 4 {
			group.Go(func() {
				for i := 0; closed.Load() < 2; i++ {
					begun := closed.Load()
					n.Check(fmt.Sprint("k", g, "/", i%7), uint64(1+i%3))
					units := uint64(1 + i%3)
					if closed.Load() == 0 {
						before.Add(units)
					}
					if begun < 2 {
						after.Add(units)
					}
					if i == 50 {
						started <- struct{}{}
					}
				}
			})
		}
		group.Go(func() {
			for closed.Load() == 0 {
				n.Sync(context.Background())
			}
		})
		for range 4 {
			<-started
		}
		closed.Store(1)
		err := n.Close(context.Background())
		closed.Store(2)
		group.Wait()
		var left CloseError
		if err != nil {
			left = *err.(*CloseError)
		}
		s := n.Stats()
		if s.Counted != s.Delivered+left.Undelivered+left.Unknown || s.Undelivered != 0 {
			t.Errorf("round %d: counted %d, delivered %d, Close reported %+v", round, s.Counted, s.Delivered, left)
		}
		if s.Counted < before.Load() || s.Counted > after.Load() {
			t.Errorf("round %d: counted %d units; %d were checked before Close, %d before its end", round, s.Counted, before.Load(), after.Load())
		}
		var held uint64
		for g := range 4 {
			for i := range 7 {
				held += uint64(w.total(n, fmt.Sprint("k", g, "/", i), n.epochAt(0)))
			}
		}
		if held < s.Delivered || held > s.Delivered+left.Unknown {
			t.Errorf("round %d: the store holds %d, delivered %d, unknown %d", round, held, s.Delivered, left.Unknown)
		}
	}
}

func TestWhatALimiterDoesAfterClose(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	set := metrics.NewSet()
	n := w.node(nil, WithMetricsSet(set))
	n.check("a", 50)
	n.ends(context.Background(), "healthy", nil)
	n.link.take()
	if names := set.ListMetricNames(); len(names) != 0 {
		t.Errorf("metrics left: %q", names)
	}
	before := n.Stats()
	// This node's own window limits on: 49 more, and in a new key 99.
	if got := n.allowedAfterClose("a", 200); got != 49 {
		t.Errorf("%d units pass after 50 before Close, want 49", got)
	}
	if got := n.allowedAfterClose("new", 200); got != 99 {
		t.Errorf("%d units of a new key pass, want 99", got)
	}
	if d := n.Peek("new"); d.Level() != 99 {
		t.Errorf("level %v, want 99", d.Level())
	}
	n.SetOverrides(map[string]uint64{"new": 150})
	if got := n.allowedAfterClose("new", 200); got != 50 {
		t.Errorf("%d more units pass after the override, want 50", got)
	}
	n.CheckAt("new", 5, start.Add(-time.Hour))
	n.CheckCustom("new", 5)
	n.Forget("a")
	if got := n.allowedAfterClose("a", 200); got != 99 {
		t.Errorf("%d units of a forgotten key pass, want 99", got)
	}
	if err := n.Sync(context.Background()); !errors.Is(err, ErrClosed) {
		t.Errorf("Sync = %v, want %v", err, ErrClosed)
	}
	w.clock.Advance(2 * time.Minute)
	if got := n.allowedAfterClose("a", 200); got != 99 {
		t.Errorf("%d units pass two windows later, want 99", got)
	}
	if after := n.Stats(); after.Counted != before.Counted || after.Undelivered != 0 || after.Dropped != before.Dropped {
		t.Errorf("after Close it counted: %+v, before %+v", after, before)
	}
	if got := n.link.take(); len(got) != 0 {
		t.Errorf("after Close it sent %+v", got)
	}
	var b bytes.Buffer
	n.WritePrometheus(&b)
	if b.Len() != 0 {
		t.Errorf("after Close it exposes %q", b.String())
	}
}

// allowedAfterClose is [node.allowed] without the audit.
func (n *node) allowedAfterClose(key string, limit int) (passed int) {
	for passed < limit && n.Allow(key) {
		passed++
	}
	return passed
}
