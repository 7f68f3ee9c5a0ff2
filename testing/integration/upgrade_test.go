// This file lets nodes of the version before count together with those of this one.

package integration

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/gomodule/redigo/redis"

	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/ratelimit/store"
	"github.com/hanzoai/limiters/testing/ratelimittest"
	"github.com/hanzoai/limiters/testing/redistest"
)

// before is the script of the version before nonces, as it was released.
//
//go:embed testdata/sync-before-nonces.lua
var before string

// An oldStore says what a node of the version before says, by the script that it brought
// along.
type oldStore struct{ conn redis.Conn }

// Apply implements store.Store as that version did.
func (s *oldStore) Apply(_ context.Context, b *store.Batch, r *store.Reply) error {
	args := redis.Args{before, 2 + len(b.Writes) + len(b.Reads), b.Sequence, b.WindowKey}
	for _, w := range b.Writes {
		args = args.Add(w.Key)
	}
	retry := 0
	if b.Retry {
		retry = 1
	}
	args = args.AddFlat(b.Reads).Add(b.Number, retry, b.SequenceTTL.Milliseconds(), b.Window.Milliseconds(), b.TTL.Milliseconds(),
		b.SpreadStep().Milliseconds(), len(b.Writes))
	for _, w := range b.Writes {
		args = args.Add(w.Delta)
	}
	values, err := redis.Int64s(s.conn.Do("EVAL", args...))
	if err != nil {
		return err
	}
	if len(values) != 5+2*len(b.Writes)+len(b.Reads) {
		return fmt.Errorf("a reply of %d elements", len(values))
	}
	outcomes := []store.Outcome{1: store.Applied, 2: store.Duplicate, 3: store.Orphan, 4: store.BadSequence}
	*r = store.Reply{Number: uint64(values[0]), Outcome: outcomes[values[1]], Time: values[2]*1_000_000 + values[3], Window: values[4]}
	for i := range b.Writes {
		status := []store.Status{store.Written, store.Poisoned, store.Refused, store.Unexpiring, store.Skipped}[values[5+2*i]]
		r.Writes = append(r.Writes, store.WriteResult{Status: status, Total: values[6+2*i]})
	}
	r.Reads = values[5+2*len(b.Writes):]
	return nil
}

// A lossy store loses some replies, of batches that were applied.
type lossy struct {
	store.Store
	rng *rand.Rand
}

func (s *lossy) Apply(ctx context.Context, b *store.Batch, r *store.Reply) error {
	err := s.Store.Apply(ctx, b, r)
	if s.rng.IntN(4) == 0 {
		return errors.New("the reply is lost")
	}
	return err
}

// Nodes are replaced one by one, from the version before to this one and back, under
// traffic and with replies lost: every unit counts once, both versions see each other's
// counts, and neither takes the other for a deployment with another window.
func TestVersionsCountTogether(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for name, versions := range map[string][]bool{ // whether the node that comes next is new
		"upgrade":   {false, false, false, true, true, true},
		"downgrade": {true, true, true, false, false, false},
		"mixed":     {false, true, false, true, false, true, true, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			u := &upgrade{t: t, server: s, rng: rand.New(rand.NewPCG(seed, 0)), clock: ratelimittest.NewClock(), prefix: s.Prefix() + name, counted: map[string]uint64{}}
			for _, isNew := range versions {
				if len(u.nodes) == 3 {
					u.leave()
				}
				u.join(isNew)
				u.run(7)
			}
			u.run(3)
			u.agree()
			for len(u.nodes) > 0 {
				u.leave()
			}
			u.compare()
		})
	}
}

// An upgrade is a fleet while it changes.
type upgrade struct {
	t       *testing.T
	server  *redistest.Server
	rng     *rand.Rand
	clock   *ratelimittest.Clock
	prefix  string
	nodes   []*ratelimit.Limiter
	counted map[string]uint64 // by counter
}

// join adds a node.
func (u *upgrade) join(isNew bool) {
	u.t.Helper()
	var inner store.Store = &oldStore{u.server.Conn()}
	if isNew {
		inner = openStore(u.t, u.server)
	}
	cfg := ratelimit.DefaultConfig()
	cfg.GlobalThreshold, cfg.RedisKeyPrefix = 100_000, u.prefix
	cfg.LocalCacheMaxEntries = 6
	l, err := ratelimit.New(cfg, ratelimit.WithClock(u.clock), ratelimit.WithMetricsSet(metrics.NewSet()), ratelimit.WithPartitions(ratelimit.Partition{
		Name: "p", Store: &lossy{inner, rand.New(rand.NewPCG(u.rng.Uint64(), 0))},
	}))
	if err != nil {
		u.t.Fatal(err)
	}
	u.nodes = append(u.nodes, l)
}

// leave closes the node that is there the longest.
func (u *upgrade) leave() {
	u.t.Helper()
	l := u.nodes[0]
	u.nodes = u.nodes[1:]
	for range 40 { // Close gives up after three lost replies
		if err := l.Sync(context.Background()); err == nil && l.Stats().Undelivered == 0 {
			break
		}
	}
	if err := l.Close(context.Background()); err != nil {
		u.t.Fatal(err)
	}
	if st := l.Stats(); st.Delivered != st.Counted || st.Partitions[0].Forgotten > 0 || st.LostTotals > 0 {
		u.t.Errorf("%+v, want all delivered and nothing lost", st)
	}
}

// run lets seconds of traffic pass.
func (u *upgrade) run(seconds int) {
	window := int64(time.Minute)
	for range seconds {
		for _, l := range u.nodes {
			for range 8 {
				key, units := fmt.Sprint("k", u.rng.IntN(12)), 1+u.rng.Uint64N(9)
				wall, _ := u.clock.Now()
				if l.Check(key, units).Allowed() {
					u.counted[fmt.Sprintf("%s:%s:%d", u.prefix, key, wall/window)] += units
				}
			}
		}
		u.clock.Advance(time.Second)
	}
}

// agree checks that every node sees the whole fleet's count, after a sync of all.
func (u *upgrade) agree() {
	u.t.Helper()
	for range 3 {
		for _, l := range u.nodes {
			for i := range 12 {
				wall, _ := u.clock.Now()
				key := fmt.Sprint("k", i)
				if l.Check(key, 1).Allowed() {
					u.counted[fmt.Sprintf("%s:%s:%d", u.prefix, key, wall/int64(time.Minute))]++
				}
			}
			for range 20 {
				if err := l.Sync(context.Background()); err == nil && l.Stats().Undelivered == 0 {
					break
				}
			}
		}
	}
	levels := map[string]float64{}
	for i, l := range u.nodes {
		for j := range 3 { // few enough for its table
			key := fmt.Sprint("k", 11-j)
			d := l.Peek(key)
			if d.Basis() != ratelimit.BasisFleet {
				continue
			}
			if seen, ok := levels[key]; ok && (d.Level() < seen-30 || d.Level() > seen+30) {
				u.t.Errorf("node %d: %s is at level %v, on another node at %v", i, key, d.Level(), seen)
			}
			levels[key] = d.Level()
		}
	}
	if len(levels) == 0 {
		u.t.Error("no node knows a level")
	}
}

// compare checks what Redis holds, counter by counter, and the window.
func (u *upgrade) compare() {
	u.t.Helper()
	conn := u.server.Conn()
	for counter, want := range u.counted {
		if got, err := redis.Uint64(conn.Do("GET", counter)); err != nil || got != want {
			u.t.Errorf("%s holds %d, %v; counted were %d", counter, got, err, want)
		}
	}
	if got, err := redis.Int64(conn.Do("GET", u.prefix+":window")); err != nil || got != 60_000 {
		u.t.Errorf("the window key holds %d, %v", got, err)
	}
}
