package ratelimit

// This file is the local table: all that this node knows, in shards.

import (
	"hash/maphash"
	"math/bits"
	"runtime"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"
)

// These set how finely the table is divided: finely enough that new keys on all
// cores seldom meet, and that what is done under a shard's lock to all its entries
// takes no longer than some two milliseconds; and no finer, for every check looks at
// the first line of a shard. A small table has one shard, so that its bound is one
// shard's matter. On a clock that drives the limiter the division is the same on every
// machine.
const (
	leastPerShard = 64    // entries, unless there is one shard
	mostPerShard  = 16384 // entries, unless there are maxShards
	shardsPerCore = 4
	maxShards     = 256
	drivenShards  = 16
)

// A table holds the entries of all keys: at most limit (one more for each check under
// way), and up to spare more while they have undelivered units. It is safe for concurrent
// use.
type table struct {
	constants
	ledger *ledger
	owner  func(key string) *partition
	limit  int64
	spare  int64
	stable bool         // hash is the same in every process
	seed   maphash.Seed // of hash otherwise

	refusals refusals

	shards []shard
	live   atomic.Int64 // entries in the table
}

// newTable returns an empty table for at most limit entries, and spare more with
// undelivered units.
func newTable(c constants, limit, spare int, stable bool, g *ledger, owner func(key string) *partition) *table {
	shards := max(shardsPerCore*runtime.GOMAXPROCS(0), limit/mostPerShard)
	if stable {
		shards = drivenShards
	}
	shards = max(1, min(shards, maxShards, limit/leastPerShard))
	shards = 1 << (bits.Len(uint(shards)) - 1)
	t := &table{
		constants: c, ledger: g, owner: owner, limit: int64(limit), spare: int64(spare), stable: stable, seed: maphash.MakeSeed(),
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
