package ratelimit

// This file tests how a partition adapts to a store whose replies come late.

import (
	"fmt"
	"testing"
	"time"

	"github.com/hanzoai/limiters/ratelimit/store"
)

// An attempt without an answer makes the next one wait twice as long, up to a tick or a
// second; one that was not sent, or refused, does not.
func TestPatienceDoublesWithEachAttemptThatWasSent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		tick, timeout time.Duration
		failures      []error
		want          []int // ms, of each attempt
	}{
		{time.Second, 100 * time.Millisecond, []error{errTimeout, errTimeout, errTimeout, errTimeout, errTimeout}, []int{0, 200, 400, 800, 1000, 1000}},
		{3 * time.Second, 100 * time.Millisecond, []error{errTimeout, errTimeout, errTimeout, errTimeout, errTimeout, errTimeout}, []int{0, 200, 400, 800, 1600, 3000, 3000}},
		{100 * time.Millisecond, 300 * time.Millisecond, []error{errTimeout, errTimeout, errTimeout}, []int{0, 600, 1000, 1000}},
		{time.Second, 100 * time.Millisecond, []error{errUnreachable, errReadOnly, errTimeout, errUnreachable, errReadOnly}, []int{0, 0, 0, 200, 200, 200}},
	} {
		w := newWorld(t)
		n := w.node(func(cfg *Config) {
			cfg.TickInterval, cfg.GlobalReadTimeout, cfg.GlobalWriteTimeout = c.tick, c.timeout, c.timeout
		})
		n.check("a", 1)
		for _, failure := range c.failures {
			n.link.breaks(failure, nil)
			n.syncFails()
		}
		n.link.heals()
		n.sync()
		n.check("a", 1)
		n.sync()
		var got []int
		for _, b := range n.link.take() {
			got = append(got, int(b.Patience.Milliseconds()))
		}
		if want := append(c.want, 0); fmt.Sprint(got) != fmt.Sprint(want) { // answered at once: as at first
			t.Errorf("tick %v, timeout %v, %v: patience %v ms, want %v", c.tick, c.timeout, c.failures, got, want)
		}
		w.conserves(n)
	}
}

// A batch that was too large to be answered in time makes the next ones smaller, and
// batches that are answered in time make those after them larger again.
func TestBatchesShrinkWhereRepliesAreLate(t *testing.T) {
	t.Parallel()
	const most = 400
	w := newWorld(t)
	n := w.node(func(c *Config) { c.MaxKeysPerScript, c.GlobalThreshold = most, 1_000_000 })
	checkAll := func() {
		for i := range 1000 {
			n.check(fmt.Sprint("k", i), 1)
		}
	}
	var sizes []int
	slow := 80 // entities that are answered in time
	hook := func(b *store.Batch) error {
		if !b.Retry {
			sizes = append(sizes, len(b.Writes))
		}
		if len(b.Writes) > slow && !b.Retry {
			return errTimeout
		}
		return nil
	}
	n.link.hook(hook, nil)
	for range 30 {
		checkAll()
		_ = n.Sync(t.Context())
	}
	late := 0
	for _, size := range sizes[10:] {
		if size > slow {
			late++
		}
	}
	if sizes[0] != most || sizes[1] != most/2 || sizes[2] != most/4 {
		t.Errorf("the first batches took %v entities, want %d, then half, then half of that", sizes[:3], most)
	}
	if share := float64(late) / float64(len(sizes)-10); share > 0.4 {
		t.Errorf("%d of %d batches were too large to be answered in time: %v", late, len(sizes)-10, sizes)
	}
	slow, sizes = most, nil
	for range 10 {
		checkAll()
		n.sync()
	}
	if largest := sizes[len(sizes)-3]; largest != most {
		t.Errorf("batches take %d entities after ten ticks in time, want %d again: %v", largest, most, sizes)
	}
	w.conserves(n)
}

// Fewer entities make no difference where the way is long: then batches are as large as
// before at once.
func TestBatchesDoNotShrinkWhereTheWayIsLong(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		late, next time.Duration // how long the late batch and the one after it take
		want       int
	}{
		{225 * time.Millisecond, 225 * time.Millisecond, 1000},
		{225 * time.Millisecond, 170 * time.Millisecond, 1000},
		{225 * time.Millisecond, 300 * time.Millisecond, 1000},
		{225 * time.Millisecond, 120 * time.Millisecond, 626},
		{800 * time.Millisecond, 410 * time.Millisecond, 626},
	} {
		c := paceOf(Config{MaxKeysPerScript: 1000})
		c.missed(true)
		c.answered(1000, row.late)
		if c.entities != 500 {
			t.Errorf("%+v: %d entities after a late batch, want 500", row, c.entities)
		}
		c.answered(500, row.next)
		if c.entities != row.want {
			t.Errorf("%+v: %d entities, want %d", row, c.entities, row.want)
		}
	}
}

// The smallest batch is the configured one where that is smaller still.
func TestBatchesDoNotShrinkBelowTheirBound(t *testing.T) {
	t.Parallel()
	for _, most := range []int{1, 2, 31, 32, 33, 1000} {
		c := paceOf(Config{MaxKeysPerScript: most})
		for range 20 {
			c.missed(true)
			c.answered(most, time.Second)
		}
		if want := min(most, smallestBatch); c.entities != want {
			t.Errorf("of at most %d: %d entities, want %d", most, c.entities, want)
		}
		for range 40 {
			c.answered(1, 0)
		}
		if c.entities != most {
			t.Errorf("of at most %d: %d entities in the end", most, c.entities)
		}
	}
}
