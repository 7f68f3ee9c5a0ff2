package goredis

// This file moves slots under a store, and under a fleet that counts.

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hanzoai/limiters/ratelimit/store"
)

// However many entities, a tick is one call for each tag.
func TestOneScriptPerTagAndTick(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	parts, err := Partitions(c.client(t), 8)
	if err != nil {
		t.Fatal(err)
	}
	lim := newLimiter(t, "tick", parts)
	for tick := range 3 {
		for i := range 400 {
			lim.Check(fmt.Sprintf("key%d", i), 1)
		}
		if err := lim.Sync(context.Background()); err != nil {
			t.Fatal(err)
		}
		for i, p := range lim.Stats().Partitions {
			if p.RoundTrips != uint64(tick+1) || p.Writes < uint64(tick+1)*20 {
				t.Errorf("tick %d: partition %d made %d calls and wrote %d counters", tick+1, i, p.RoundTrips, p.Writes)
			}
		}
	}
}

// Slots are as the cluster computes them, and one batch meets each state of a slot
// that moves.
func TestABatchWhileItsSlotMoves(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := startCluster(t)
	for i, tag := range tags(MaxPartitions) {
		if got := c.nodes[0].ClusterKeySlot(ctx, "{"+tag+"}x{y}").Val(); got != int64(slotOf(i)) {
			t.Fatalf("the cluster has %q in slot %d, want %d", tag, got, slotOf(i))
		}
	}
	tag := tags(1)[0]
	s, err := New(c.client(t))
	if err != nil {
		t.Fatal(err)
	}
	batch := func(number uint64, counters ...string) *store.Batch {
		b := &store.Batch{
			Sequence: "{" + tag + "}p:id:seq", Number: number, SequenceTTL: time.Hour,
			WindowKey: "{" + tag + "}p:window", Window: time.Minute, TTL: time.Hour,
		}
		for _, name := range counters {
			b.Writes = append(b.Writes, store.Write{Key: "{" + tag + "}p:" + name + ":1", Delta: 1})
		}
		return b
	}
	var reply store.Reply
	applied := func(when string, b *store.Batch, totals ...int64) {
		t.Helper()
		if err := s.Apply(ctx, b, &reply); err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		if reply.Outcome != store.Applied {
			t.Fatalf("%s: outcome %d", when, reply.Outcome)
		}
		for i, want := range totals {
			if w := reply.Writes[i]; w.Status != store.Written || w.Total != want {
				t.Fatalf("%s: write %d is %+v, want total %d", when, i, reply.Writes[i], want)
			}
		}
	}
	denied := func(when string, b *store.Batch) {
		t.Helper()
		err := s.Apply(ctx, b, &reply)
		var failed *store.Error
		if !errors.As(err, &failed) || failed.Fate != store.Denied || failed.Cause != store.CauseCluster {
			t.Fatalf("%s: %v, want denied by the cluster", when, err)
		}
	}

	applied("before", batch(1, "a", "b"), 1, 1)
	from, err := c.owner(slotOf(0))
	if err != nil {
		t.Fatal(err)
	}
	to := c.nodes[0]
	if to == from {
		to = c.nodes[1]
	}
	m := &migration{cluster: c, slot: slotOf(0), from: from, to: to}
	if err := m.begin(); err != nil {
		t.Fatal(err)
	}
	applied("all keys are at the old node", batch(2, "a", "b"), 2, 2)
	if _, err := m.moveKeys(2); err != nil {
		t.Fatal(err)
	}
	denied("the keys are at both", batch(3, "a", "b"))
	denied("the keys are at both, again", batch(3, "a", "b"))
	if _, err := m.moveKeys(100); err != nil {
		t.Fatal(err)
	}
	applied("all keys are at the new node (ASK)", batch(3, "a", "b"), 3, 3)
	denied("a new key while the slot moves", batch(4, "a", "new"))
	if err := m.end(); err != nil {
		t.Fatal(err)
	}
	applied("after (MOVED)", batch(4, "a", "new"), 4, 1)
	b := batch(4, "a", "new")
	b.Retry = true
	if err := s.Apply(ctx, b, &reply); err != nil || reply.Outcome != store.Duplicate {
		t.Errorf("again: outcome %d, %v, want a duplicate", reply.Outcome, err)
	}
}

// Three nodes count in eight partitions while the partitions' slots travel around
// the cluster, key by key, and answers are lost. At the end Redis holds every unit
// once.
func TestReshardingLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	const nodes, partitions, moves, keys = 3, 8, 24, 60
	c := startCluster(t)
	var b breaker
	var done atomic.Bool
	var denials, syncs atomic.Int64
	var counted [keys]atomic.Uint64
	var fleet sync.WaitGroup
	for node := range nodes {
		client := c.client(t, func(o *redis.ClusterOptions) { o.Dialer = b.dial })
		parts, err := Partitions(client, partitions)
		if err != nil {
			t.Fatal(err)
		}
		lim := newLimiter(t, "moving", parts)
		random := rand.New(rand.NewPCG(seed, uint64(node)))
		fleet.Go(func() { // ends when the slots have moved
			for !done.Load() {
				for range 50 {
					key := random.IntN(keys)
					n := random.Uint64N(9)
					if !lim.Check(fmt.Sprintf("key%d", key), n).Allowed() {
						t.Error("limited")
					}
					counted[key].Add(n)
				}
				if random.IntN(8) == 0 {
					b.arm(1 + random.IntN(2))
				}
				err := lim.Sync(context.Background())
				syncs.Add(1)
				var failed *store.Error
				if errors.As(err, &failed) && failed.Cause == store.CauseCluster {
					denials.Add(1)
				}
			}
			b.arm(0)
			deliver(t, lim)
			s := lim.Stats()
			if s.Delivered != s.Counted || s.Dropped.Total() != 0 {
				t.Errorf("counted %d, delivered %d, dropped %+v", s.Counted, s.Delivered, s.Dropped)
			}
		})
	}
	random := rand.New(rand.NewPCG(seed, nodes))
	err := func() error {
		for move := range moves {
			slot := slotOf(move % partitions)
			from, err := c.owner(slot)
			if err != nil {
				return err
			}
			m := &migration{cluster: c, slot: slot, from: from, to: from}
			for m.to == from {
				m.to = c.nodes[random.IntN(len(c.nodes))]
			}
			if err := m.begin(); err != nil {
				return err
			}
			for rest := 1; rest > 0; {
				if rest, err = m.moveKeys(1 + random.IntN(4)); err != nil {
					return err
				}
				for before := syncs.Load(); syncs.Load() == before && !t.Failed(); { // the fleet meets this state
					time.Sleep(time.Millisecond)
				}
			}
			if err := m.end(); err != nil {
				return err
			}
		}
		return nil
	}()
	done.Store(true)
	fleet.Wait()
	if err != nil {
		t.Fatal(err)
	}
	got := counters(t, c.client(t), "moving")
	for key := range keys {
		name := fmt.Sprintf("key%d", key)
		if want := counted[key].Load(); got[name] != want {
			t.Errorf("%s: Redis holds %d, counted %d", name, got[name], want)
		}
	}
	if denials.Load() == 0 || b.lost() == 0 {
		t.Errorf("%d ticks met a slot on the move and %d answers were lost: nothing was tested", denials.Load(), b.lost())
	}
	t.Logf("%d syncs, %d met a slot on the move, %d answers lost", syncs.Load(), denials.Load(), b.lost())
}
