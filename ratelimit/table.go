package ratelimit

// This file is the local table: all that this node knows, in shards.

import (
	"hash/maphash"
	"math/bits"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"
)

// These set how finely the table is divided. A table this small has one shard, so that
// its bound is one shard's matter. On a clock that drives the limiter few goroutines
// check at once, and there are many ticks, each of which sums up all shards.
const (
	entriesPerShard = 64
	maxShards       = 256
	maxDrivenShards = 16
)

// A table holds the entries of all keys, at most limit of them (one more for each
// check under way), and those set aside. It is safe for concurrent use.
type table struct {
	constants
	ledger *ledger
	owner  func(key string) *partition
	limit  int64
	stable bool         // hash is the same in every process
	seed   maphash.Seed // of hash otherwise

	shards   []shard
	live     atomic.Int64 // entries in the table, those set aside not counted
	overfull atomic.Bool  // a partition keeps more evicted entries than it may
}

// newTable returns an empty table for at most limit entries.
func newTable(c constants, limit int, stable bool, g *ledger, owner func(key string) *partition) *table {
	most := maxShards
	if stable {
		most = maxDrivenShards
	}
	shards := 1 << (bits.Len(uint(max(1, min(limit/entriesPerShard, most)))) - 1)
	t := &table{
		constants: c, ledger: g, owner: owner, limit: int64(limit), stable: stable, seed: maphash.MakeSeed(),
		shards: make([]shard, shards),
	}
	for i := range t.shards {
		t.shards[i].table = t
	}
	return t
}

// hash returns the hash of a key. It is keyed at random, so that nobody can choose
// keys that meet in one place; on a clock that drives the limiter it is the same in
// every process, so that a timeline has the same end every time.
func (t *table) hash(key string) uint64 {
	if t.stable {
		return xxhash.Sum64String(key)
	}
	return maphash.String(t.seed, key)
}

// shardOf returns the shard of a hash.
func (t *table) shardOf(hash uint64) *shard {
	return &t.shards[hash&uint64(len(t.shards)-1)]
}

// trim drops the units of the oldest evicted entries of partitions that keep more
// of them than they may. It requires that no shard's lock is held.
func (t *table) trim(partitions []*partition) {
	if !t.overfull.Load() || !t.overfull.Swap(false) {
		return
	}
	for _, p := range partitions {
		for e := p.queue.overflow(); e != nil; e = p.queue.overflow() {
			s := t.shardOf(e.hash)
			s.mu.Lock()
			if e.place == aside { // not revived meanwhile
				s.dropUnsentLocked(e, dropOverflow)
				if !e.inFlight {
					s.forgetLocked(e)
				}
			}
			s.mu.Unlock()
		}
	}
}

// counts returns the sum of all shards' counts.
func (t *table) counts() (sum shardCounts) {
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		c := s.counts
		s.mu.Unlock()
		sum.allowed += c.allowed
		sum.limited += c.limited
		sum.misses += c.misses
		sum.queued += c.queued
		sum.units += c.units
		for j := range c.evicted {
			sum.evicted[j] += c.evicted[j]
		}
	}
	return sum
}
