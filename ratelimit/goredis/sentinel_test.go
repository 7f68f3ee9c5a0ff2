package goredis

// This file is a master with two replicas and three sentinels, and a failover
// under a fleet that counts.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/ratelimit/store"
)

// A sentinelSet is a master that sentinels watch.
type sentinelSet struct {
	servers   map[string]*process // by address
	sentinels []*process
}

func startSentinels(t *testing.T) *sentinelSet {
	t.Helper()
	ctx := context.Background()
	master := startServer(t, "repl-diskless-sync-delay 0")
	set := &sentinelSet{servers: map[string]*process{master.addr: master}}
	host, port, _ := strings.Cut(master.addr, ":")
	for range 2 {
		p := startServer(t, "replicaof "+host+" "+port, "repl-diskless-sync-delay 0")
		set.servers[p.addr] = p
	}
	for range 3 {
		set.sentinels = append(set.sentinels, startProgram(t, true,
			"sentinel monitor main "+host+" "+port+" 2",
			"sentinel down-after-milliseconds main 1000",
			"sentinel failover-timeout main 6000",
			"sentinel parallel-syncs main 2",
		))
	}
	for _, p := range set.sentinels {
		c := redis.NewSentinelClient(&redis.Options{Addr: p.addr})
		t.Cleanup(func() { _ = c.Close() })
		eventually(t, "the sentinels' meeting", func() error {
			state, err := c.Master(ctx, "main").Result()
			if err != nil {
				return err
			}
			if state["num-slaves"] != "2" || state["num-other-sentinels"] != "2" || state["flags"] != "master" {
				return fmt.Errorf("%v", state)
			}
			return nil
		})
	}
	set.replicate(t, master)
	return set
}

// client returns a client that asks the sentinels for the master.
func (s *sentinelSet) client(t *testing.T, b *breaker) *redis.Client {
	t.Helper()
	o := &redis.FailoverOptions{
		MasterName: "main", Dialer: b.dial, DialTimeout: 2 * time.Second, DialerRetries: 1,
		ReadTimeout: 2 * time.Second, MaxRetries: 5, MinRetryBackoff: time.Millisecond,
	}
	for _, p := range s.sentinels {
		o.SentinelAddrs = append(o.SentinelAddrs, p.addr)
	}
	c := redis.NewFailoverClient(o)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// documentedClient returns one with the options of docs/redis.md.
func (s *sentinelSet) documentedClient(t *testing.T) *redis.Client {
	t.Helper()
	o := &redis.FailoverOptions{
		MasterName: "main", DialTimeout: time.Second, DialerRetries: 1,
		ReadTimeout: 100 * time.Millisecond, WriteTimeout: 100 * time.Millisecond,
	}
	for _, p := range s.sentinels {
		o.SentinelAddrs = append(o.SentinelAddrs, p.addr)
	}
	c := redis.NewFailoverClient(o)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// awaitReplica waits until every sentinel knows of a replica that follows the master.
func (s *sentinelSet) awaitReplica(t *testing.T) {
	t.Helper()
	ctx := context.Background()
	for _, p := range s.sentinels {
		c := redis.NewSentinelClient(&redis.Options{Addr: p.addr})
		t.Cleanup(func() { _ = c.Close() })
		eventually(t, "the replicas' return", func() error {
			replicas, err := c.Replicas(ctx, "main").Result()
			if err != nil {
				return err
			}
			for _, r := range replicas {
				if r["flags"] == "slave" && r["master-link-status"] == "ok" {
					return nil
				}
			}
			return fmt.Errorf("%v", replicas)
		})
	}
}

// master returns the server that the first sentinel takes for the master.
func (s *sentinelSet) master(t *testing.T) *process {
	t.Helper()
	c := redis.NewSentinelClient(&redis.Options{Addr: s.sentinels[0].addr})
	defer func() { _ = c.Close() }()
	addr, err := c.GetMasterAddrByName(context.Background(), "main").Result()
	if err != nil {
		t.Fatal(err)
	}
	return s.servers[strings.Join(addr, ":")]
}

// replicate waits until both replicas have all that the master was told.
func (s *sentinelSet) replicate(t *testing.T, master *process) {
	t.Helper()
	// WAIT counts from the connection's own last write, so there must be one.
	c := master.client(t).Conn()
	defer func() { _ = c.Close() }()
	eventually(t, "replication", func() error {
		ctx := context.Background()
		if err := c.Set(ctx, "barrier", "", time.Hour).Err(); err != nil {
			return err
		}
		if n, err := c.Wait(ctx, 2, time.Second).Result(); err != nil || n < 2 {
			return fmt.Errorf("%d replicas have it: %w", n, err)
		}
		return nil
	})
}

// failOver kills the master and waits until the sentinels have another.
func (s *sentinelSet) failOver(t *testing.T) {
	t.Helper()
	master := s.master(t)
	if err := master.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a failover", func() error {
		if now := s.master(t); now == master {
			return errors.New("the sentinels keep the old master")
		}
		return nil
	})
}

// A batch that the old master executed and passed on, whose answer was lost with
// it, is a duplicate to the new one.
func TestABatchIsADuplicateAfterAFailover(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	set := startSentinels(t)
	var b breaker
	client := set.client(t, &b)
	s, err := New(client)
	if err != nil {
		t.Fatal(err)
	}
	batch := small()
	batch.Number = 1
	var reply store.Reply
	b.arm(1)
	var failed *store.Error
	if err := s.Apply(ctx, batch, &reply); !errors.As(err, &failed) || failed.Fate != store.Unknown {
		t.Fatalf("an answer was lost: %v", err)
	}
	set.replicate(t, set.master(t))
	set.failOver(t)
	batch.Retry = true
	eventually(t, "sending the batch to the new master", func() error { return s.Apply(ctx, batch, &reply) })
	if reply.Outcome != store.Duplicate || reply.Writes[0].Status != store.Written || reply.Writes[0].Total != 3 {
		t.Errorf("the new master answers %+v, want a duplicate with total 3", reply)
	}
}

// A fleet counts through a failover. What was replicated before is there after,
// and nothing is counted twice; what the dead master acknowledged last may be
// missing, since replication is asynchronous.
func TestAFailoverDoublesNothing(t *testing.T) {
	t.Parallel()
	const nodes, keys = 3, 20
	set := startSentinels(t)
	var b breaker
	var counted, floor [keys]atomic.Uint64
	var done atomic.Bool
	var fleet sync.WaitGroup
	var limiters []*ratelimit.Limiter
	for range nodes {
		s, err := New(set.client(t, &b))
		if err != nil {
			t.Fatal(err)
		}
		limiters = append(limiters, newLimiter(t, "failover", []ratelimit.Partition{{Name: "main", Store: s}}))
	}
	count := func(lim *ratelimit.Limiter) {
		for key := range keys {
			n := uint64(key + 1)
			lim.Check(fmt.Sprintf("key%d", key), n)
			counted[key].Add(n)
		}
	}
	for _, lim := range limiters {
		count(lim)
		deliver(t, lim)
	}
	set.replicate(t, set.master(t))
	for key := range keys {
		floor[key].Store(counted[key].Load())
	}
	for _, lim := range limiters {
		fleet.Go(func() { // ends when the failover is over
			for round := 0; !done.Load(); round++ {
				count(lim)
				b.arm(round % 2)
				_ = lim.Sync(context.Background()) // what fails is sent again
			}
		})
	}
	set.failOver(t)
	done.Store(true)
	fleet.Wait()
	b.arm(0)
	for _, lim := range limiters {
		count(lim) // by the new master
		deliver(t, lim)
		s := lim.Stats()
		if s.Counted != s.Delivered+s.Dropped.Unknown || s.Dropped.Total() != s.Dropped.Unknown {
			t.Errorf("counted %d, delivered %d, dropped %+v", s.Counted, s.Delivered, s.Dropped)
		}
	}
	got := counters(t, set.client(t, &b), "failover")
	for key := range keys {
		name := fmt.Sprintf("key%d", key)
		least, most := floor[key].Load()+nodes*uint64(key+1), counted[key].Load()
		if got[name] < least || got[name] > most {
			t.Errorf("%s: the new master holds %d, want %d … %d", name, got[name], least, most)
		}
	}
	t.Logf("%d answers lost; of key0 counted %d, held %d, replicated before the failover %d",
		b.lost(), counted[0].Load(), got["key0"], floor[0].Load())
}
