package ratelimit

// This file tests the bounds at scale: a large table, many limiters on one store,
// a flood of keys that are met once. Time is virtual. By default the sizes are
// small fractions; -scale.full (make scale) makes them whole, and its log has the
// figures that docs/performance.md shows.

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"github.com/hanzoai/limiters/internal/clock"
	"github.com/hanzoai/limiters/ratelimit/store"
)

var fullScale = flag.Bool("scale.full", false, "run the scale tests at their whole size: minutes, and a gigabyte")

// scaled returns whole at full scale, and else a part of it.
func scaled(whole, part int) int {
	if *fullScale {
		return whole
	}
	return part
}

// A sinkStore applies every batch, and keeps only the counters of entities whose
// key begins with "hot_": what the others count is the limiter's alone.
type sinkStore struct {
	mu      sync.Mutex
	totals  map[string]int64 // of kept entities, by counter key
	written map[string]bool  // kept entities that were added to since the last take
	read    map[string]bool  // kept entities that were read since the last take
	scripts int              // since the last take
	most    int              // counters in one batch, ever
}

func (s *sinkStore) Apply(_ context.Context, b *store.Batch, r *store.Reply) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.totals == nil {
		s.totals, s.written, s.read = map[string]int64{}, map[string]bool{}, map[string]bool{}
	}
	s.scripts++
	s.most = max(s.most, len(b.Writes)+len(b.Reads))
	*r = store.Reply{
		Number: b.Number, Outcome: store.Applied, Window: b.Window.Milliseconds(),
		Writes: slices.Grow(r.Writes[:0], len(b.Writes))[:len(b.Writes)],
		Reads:  slices.Grow(r.Reads[:0], len(b.Reads))[:len(b.Reads)],
	}
	for i, w := range b.Writes {
		r.Writes[i] = store.WriteResult{Status: store.Written, Total: int64(w.Delta)}
		if entity, kept := keptEntity(w.Key); kept {
			key := strings.Clone(w.Key)
			s.totals[key] += int64(w.Delta)
			s.written[strings.Clone(entity)] = true
			r.Writes[i].Total = s.totals[key]
		}
	}
	for i, key := range b.Reads {
		r.Reads[i] = s.totals[key]
		if entity, kept := keptEntity(key); kept {
			s.read[strings.Clone(entity)] = true
		}
	}
	return nil
}

// keptEntity returns the entity of a counter key, if its counters are kept.
func keptEntity(key string) (entity string, kept bool) {
	at := strings.Index(key, ":hot_")
	if at < 0 {
		return "", false
	}
	return key[at+1 : strings.LastIndexByte(key, ':')], true
}

// take returns what happened since the last call.
func (s *sinkStore) take() (scripts int, written, read map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	scripts, written, read = s.scripts, maps.Clone(s.written), maps.Clone(s.read)
	s.scripts = 0
	clear(s.written)
	clear(s.read)
	return scripts, written, read
}

// scaleLimiter is a limiter on the store and a fake clock.
func scaleLimiter(t *testing.T, c Clock, s store.Store, change func(*Config)) *Limiter {
	t.Helper()
	cfg := DefaultConfig()
	change(&cfg)
	l, err := New(cfg, WithClock(c), WithMetricsSet(metrics.NewSet()), WithLogger(slog.New(slog.DiscardHandler)),
		WithPartitions(Partition{Name: "sink", Store: s}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close(context.Background()) })
	return l
}

// conserved checks that every unit is accounted for.
func conserved(t *testing.T, s Stats) {
	t.Helper()
	if sum := s.Delivered + s.Undelivered + s.Dropped.Total(); s.Counted != sum {
		t.Fatalf("counted %d units; delivered %d + undelivered %d + dropped %+v = %d",
			s.Counted, s.Delivered, s.Undelivered, s.Dropped, sum)
	}
}

// whole runs a test beside others unless it is at full scale, when it wants the
// machine for itself.
func whole(t *testing.T) {
	if !*fullScale {
		t.Parallel()
	}
}

// A tick takes up its bound, whatever waits; what it leaves, it says; and all are
// synced after as many ticks as the bound makes necessary. Memory grows by a line,
// and a tick not at all.
func TestScaleATableOfMillions(t *testing.T) {
	whole(t)
	most := scaled(1_000_000, 20_000)
	var sizes, heaps []float64
	for _, entities := range []int{most / 8, most / 4, most / 2, most} {
		heap, slowest := fillTable(t, entities, most, scaled(20_000, 1_500))
		sizes, heaps = append(sizes, float64(entities)), append(heaps, heap)
		t.Logf("%d entities: heap %.1f MB, the slowest tick %v", entities, heap/1e6, slowest)
	}
	at0, slope := leastSquares(sizes, heaps)
	t.Logf("fitted: heap %.1f MB + %.0f bytes for each entity", at0/1e6, slope)
}

// fillTable has so many entities met and synced, in a table for limit of them. It
// returns the heap's growth in bytes, and how long the slowest tick took.
func fillTable(t *testing.T, entities, limit, perTick int) (heap float64, slowest time.Duration) {
	t.Helper()
	before := liveBytes()
	c, s := clock.NewFake(start), &sinkStore{}
	l := scaleLimiter(t, c, s, func(cfg *Config) {
		cfg.LocalCacheMaxEntries, cfg.MaxSyncKeysPerTick = limit, perTick
	})
	for i := range entities {
		if !l.Check(benchKey(i), 1).Allowed() {
			t.Fatalf("the first contact of entity %d is limited", i)
		}
	}
	if got := l.Stats(); got.Entities != entities || got.Queued != entities {
		t.Fatalf("%d entities, %d queued; want %d of each", got.Entities, got.Queued, entities)
	}
	for left := entities; left > 0; {
		begin := time.Now()
		c.Advance(l.cfg.TickInterval)
		slowest = max(slowest, time.Since(begin))
		taken := min(left, perTick)
		left -= taken
		scripts, _, _ := s.take()
		got := l.Stats()
		want := (taken + l.cfg.MaxKeysPerScript - 1) / l.cfg.MaxKeysPerScript
		if got.Queued != left || got.Deferred != left || scripts != want {
			t.Fatalf("%d queued, %d deferred, %d scripts; want %d, %d, %d", got.Queued, got.Deferred, scripts, left, left, want)
		}
		conserved(t, got)
	}
	if got := l.Stats(); got.Delivered != uint64(entities) || got.Dropped.Total() != 0 || got.Entities != entities {
		t.Errorf("delivered %d, dropped %+v, %d entities; want %d, none, %d", got.Delivered, got.Dropped, got.Entities, entities, entities)
	}
	heap = liveBytes() - before
	l.Close(context.Background())
	return heap, slowest
}

// leastSquares returns the line that fits best.
func leastSquares(x, y []float64) (at0, slope float64) {
	var n, sx, sy, sxx, sxy float64
	for i := range x {
		n, sx, sy, sxx, sxy = n+1, sx+x[i], sy+y[i], sxx+x[i]*x[i], sxy+x[i]*y[i]
	}
	slope = (n*sxy - sx*sy) / (n*sxx - sx*sx)
	return (sy - slope*sx) / n, slope
}

// Twenty limiters count the same keys and others on one store: every unit is there
// once, each limiter works within its own bounds, and all learn of the limit.
func TestScaleTwentyLimitersOnOneStore(t *testing.T) {
	whole(t)
	const limiters, threshold = 20, 4_000
	own := scaled(20_000, 400) // keys that one limiter alone sees
	w := newWorld(t)
	nodes := make([]*node, limiters)
	for i := range nodes {
		nodes[i] = w.node(func(cfg *Config) {
			cfg.GlobalThreshold, cfg.WindowInterval, cfg.TickInterval = threshold, 12*time.Second, time.Second
			cfg.Scope = fmt.Sprint("node ", i)
		})
	}
	for second := range 36 {
		for i, n := range nodes {
			n.check("shared", 20) // 4,800 per window by all
			for k := range own / 12 {
				n.check(fmt.Sprintf("own_%02d_%06d", i, (second*(own/12)+k)%own), 1)
			}
		}
		w.clock.Advance(time.Second)
		for i, n := range nodes {
			got := n.Stats()
			conserved(t, got)
			if got.Undelivered != 0 || got.Dropped.Total() != 0 {
				t.Fatalf("second %d, node %d: %d units undelivered, dropped %+v; want none", second, i, got.Undelivered, got.Dropped)
			}
		}
	}
	w.conserves(nodes...)
	t.Logf("%d limiters with %d keys each, 36 s: %d units in the store", limiters, own+1, delivered(nodes))
	for i, n := range nodes {
		if got := n.Stats(); got.Limited == 0 || got.Limited > got.Allowed {
			t.Errorf("node %d: %d allowed, %d limited; want some limited, and less", i, got.Allowed, got.Limited)
		}
		if d := n.Peek("shared"); d.Level() < threshold/2 {
			t.Errorf("node %d: the shared key's level is %.0f: it did not learn of the others'", i, d.Level())
		}
	}
}

// delivered is the sum over all nodes.
func delivered(nodes []*node) (units uint64) {
	for _, n := range nodes {
		units += n.Stats().Delivered
	}
	return units
}

// A floodRun is what the hot keys met.
type floodRun struct {
	admitted [][floodHotKeys]bool // by step
	stats    Stats
}

// A floodWatch checks the bounds after each tick of a flood.
type floodWatch struct {
	l        *Limiter
	store    *sinkStore
	warm     [floodHotKeys]bool // the key left tier Idle
	spoke    [floodHotKeys]bool // something of it was counted since the last tick, and it was warm
	silences [floodHotKeys]int  // ticks since the key was last synced
}

const floodHotKeys = 20

func floodHotKey(i int) string { return fmt.Sprintf("hot_%02d", i) }

// runFlood offers the hot keys a steady load, most of it above the threshold, and
// after some seconds, for two windows, so many keys per second that are met once.
func runFlood(t *testing.T, flood int) floodRun {
	const step = 100 * time.Millisecond
	entries, capacity, perTick := scaled(300_000, 3_000), scaled(1_000_000, 10_000), scaled(20_000, 200)
	c, s := clock.NewFake(start), &sinkStore{}
	l := scaleLimiter(t, c, s, func(cfg *Config) {
		cfg.GlobalThreshold = 6_000 // 10 per step
		cfg.LocalCacheMaxEntries, cfg.ChannelCapacity, cfg.MaxSyncKeysPerTick = entries, capacity, perTick
		cfg.SyncByUnits = false // it counts the scripts of ticks
	})
	run, watch := floodRun{}, &floodWatch{l: l, store: s}
	var slowest time.Duration
	var heap float64
	buffer, met := []byte("flood_"), 0
	// All hot keys are warm when the flood comes.
	for at := -20 * time.Second; at < 2*l.cfg.WindowInterval; at += step {
		var admitted [floodHotKeys]bool
		for i := range admitted {
			d := l.Check(floodHotKey(i), uint64(i+5)) // 5 … 24 per step
			admitted[i] = d.Allowed()
			watch.saw(i, d)
		}
		run.admitted = append(run.admitted, admitted)
		for range flood / int(time.Second/step) {
			if at < 0 {
				break
			}
			met++
			l.Check(string(strconv.AppendInt(buffer, int64(met), 10)), 1)
		}
		begin := time.Now()
		c.Advance(step)
		slowest = max(slowest, time.Since(begin))
		if (at+step)%l.cfg.TickInterval == 0 {
			watch.check(t, at+step)
		}
		if *fullScale && (at+step)%(10*time.Second) == 0 {
			heap = max(heap, liveBytes())
		}
	}
	run.stats = l.Stats()
	t.Logf("%d keys per second, %d in all: %d entities, %d units delivered, %d waiting, %d dropped for want of room, the slowest tick %v, heap %.0f MB",
		flood, met, run.stats.Entities, run.stats.Delivered, run.stats.Undelivered, run.stats.Dropped.Overflow, slowest, heap/1e6)
	return run
}

// saw notes a check of a hot key. One that is idle yet waits among the others.
func (w *floodWatch) saw(i int, d Decision) {
	warm := d.Level() >= float64(d.Threshold())/10
	w.warm[i] = w.warm[i] || warm
	w.spoke[i] = w.spoke[i] || warm && d.Allowed()
}

// check checks all bounds after a tick.
func (w *floodWatch) check(t *testing.T, at time.Duration) {
	t.Helper()
	l, got := w.l, w.l.Stats()
	conserved(t, got)
	most := l.cfg.LocalCacheMaxEntries + l.cfg.ChannelCapacity
	if got.Entities > most || got.Queued > most {
		t.Fatalf("%v: %d entities, %d of them wait, at most %d may be there", at, got.Entities, got.Queued, most)
	}
	scripts, written, read := w.store.take()
	if most := (l.cfg.MaxSyncKeysPerTick + l.cfg.MaxKeysPerScript - 1) / l.cfg.MaxKeysPerScript; scripts > most {
		t.Fatalf("%v: %d scripts in a tick, at most %d may be", at, scripts, most)
	}
	if w.store.most > 2*l.cfg.MaxKeysPerScript {
		t.Fatalf("%v: %d counters in a script, at most two of %d entities may be", at, w.store.most, l.cfg.MaxKeysPerScript)
	}
	w.checkHotKeys(t, at, written, read)
}

// checkHotKeys checks that hot keys are synced on time: in this tick if something
// of them was counted, and if not at least as often as tier Hot is read.
func (w *floodWatch) checkHotKeys(t *testing.T, at time.Duration, written, read map[string]bool) {
	t.Helper()
	longest := int(w.l.cfg.SyncInterval/2/w.l.cfg.TickInterval) + 1
	for i := range floodHotKeys {
		key := floodHotKey(i)
		if w.spoke[i] && !written[key] {
			t.Fatalf("%v: %s was not synced in this tick, though something of it was counted", at, key)
		}
		w.silences[i]++
		if written[key] || read[key] || !w.warm[i] {
			w.silences[i] = 0
		}
		if w.silences[i] > longest {
			t.Fatalf("%v: %s was not synced for %d ticks, at most %d may pass", at, key, w.silences[i], longest)
		}
		w.spoke[i] = false
	}
}

// A flood of keys that are met once changes nothing for those that are in use: not
// a decision about them, not the tick of their sync. What does not fit is counted.
func TestScaleAFloodOfKeys(t *testing.T) {
	whole(t)
	calm := runFlood(t, 0)
	flood := runFlood(t, scaled(200_000, 2_000))
	for step := range calm.admitted {
		for i, want := range calm.admitted[step] {
			if got := flood.admitted[step][i]; got != want {
				t.Fatalf("step %d: %s is allowed: %t; without the flood: %t", step, floodHotKey(i), got, want)
			}
		}
	}
	if calm.stats.Limited == 0 || calm.stats.Dropped.Total() != 0 {
		t.Errorf("without a flood: %d limited, dropped %+v; want some, and nothing", calm.stats.Limited, calm.stats.Dropped)
	}
	d := flood.stats.Dropped
	if d.Overflow == 0 || d.Total() != d.Overflow {
		t.Errorf("dropped %+v, want overflow only", d)
	}
	if flood.stats.Deferred == 0 {
		t.Error("no tick left anything to the next one: it was no flood")
	}
}
