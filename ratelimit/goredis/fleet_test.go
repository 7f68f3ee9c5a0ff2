package goredis

// This file is a fleet on the real clock that counts while servers fail, and its books.

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/redis/go-redis/v9"

	"github.com/hanzoai/limiters/ratelimit"
)

// soon is when partitions must be back after a server took over. A client that reads
// the slots again only by itself does so once a minute.
const soon = 20 * time.Second

// A fleet is nodes that count without a pause.
type fleet struct {
	t        *testing.T
	prefix   string
	limiters []*ratelimit.Limiter
	counted  [40]atomic.Uint64 // by key
	done     atomic.Bool
	load     sync.WaitGroup
}

// startFleet starts nodes with the default configuration, that limit nothing. parts is
// called once for each.
func startFleet(t *testing.T, prefix string, nodes int, parts func() []ratelimit.Partition) *fleet {
	t.Helper()
	f := &fleet{t: t, prefix: prefix}
	for range nodes {
		cfg := ratelimit.DefaultConfig()
		cfg.GlobalThreshold, cfg.RedisKeyPrefix = 1<<50, prefix
		lim, err := ratelimit.New(cfg, ratelimit.WithPartitions(parts()...), ratelimit.WithLogger(nil), ratelimit.WithMetricsSet(metrics.NewSet()))
		if err != nil {
			t.Fatal(err)
		}
		f.limiters = append(f.limiters, lim)
		f.load.Go(func() { // ends when the fleet is stopped
			for !f.done.Load() {
				key, n := rand.IntN(len(f.counted)), 1+rand.Uint64N(4)
				lim.Check(fmt.Sprintf("key%d", key), n)
				f.counted[key].Add(n)
				time.Sleep(500 * time.Microsecond)
			}
		})
	}
	t.Cleanup(func() {
		f.done.Store(true)
		f.load.Wait()
		for _, lim := range f.limiters {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			_ = lim.Close(ctx) // what is left is the test's to judge
			cancel()
		}
	})
	f.awaitHeard(time.Now(), nil)
	return f
}

// awaitHeard waits until these partitions, nil for all, have answered every node after a
// moment, and returns how long after it that was.
func (f *fleet) awaitHeard(after time.Time, partitions map[int]bool) time.Duration {
	f.t.Helper()
	eventually(f.t, "hearing from all partitions", func() error {
		for _, lim := range f.limiters {
			for i, p := range lim.Stats().Partitions {
				if (partitions == nil || partitions[i]) && !(p.Up && p.LastSync.After(after)) {
					return fmt.Errorf("partition %s has not answered since", p.Name)
				}
			}
		}
		return nil
	})
	return time.Since(after)
}

// A ledger is what a fleet's units became.
type ledger struct {
	counted, delivered, unknown, held uint64
}

// lost is what servers acknowledged and do not hold, at least.
func (l ledger) lost() uint64 {
	if l.held >= l.delivered {
		return 0
	}
	return l.delivered - l.held
}

// finish stops counting, delivers what is left, and checks that every unit is accounted
// for: delivered, or of a fate that nobody can know; and that none is counted twice.
func (f *fleet) finish(client redis.UniversalClient) (l ledger) {
	f.t.Helper()
	f.done.Store(true)
	f.load.Wait()
	for _, lim := range f.limiters {
		deliver(f.t, lim)
		s := lim.Stats()
		l.counted, l.delivered, l.unknown = l.counted+s.Counted, l.delivered+s.Delivered, l.unknown+s.Dropped.Unknown
		if s.Counted != s.Delivered+s.Dropped.Unknown || s.Dropped.Total() != s.Dropped.Unknown {
			f.t.Errorf("counted %d, delivered %d, dropped %+v", s.Counted, s.Delivered, s.Dropped)
		}
	}
	held, total := counters(f.t, client, f.prefix), uint64(0)
	for key := range f.counted {
		name, counted := fmt.Sprintf("key%d", key), f.counted[key].Load()
		if held[name] > counted {
			f.t.Errorf("%s: Redis holds %d, counted %d", name, held[name], counted)
		}
		l.held, total = l.held+held[name], total+counted
	}
	if total != l.counted || total == 0 {
		f.t.Errorf("the callers counted %d, the nodes %d", total, l.counted)
	}
	return l
}

// promoted waits until a server is a master, and returns when that was seen.
func promoted(t *testing.T, c *redis.Client) time.Time {
	t.Helper()
	eventually(t, "the promotion", func() error {
		role, err := c.Do(context.Background(), "ROLE").Slice()
		if err != nil {
			return err
		}
		if role[0] != "master" {
			return errors.New("it is a replica still")
		}
		return nil
	})
	return time.Now()
}
