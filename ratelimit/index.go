package ratelimit

// This file finds a shard's entries by key. A built-in map would do, were it not
// for four things: no look-up can be made while it changes, it hashes the key again
// although the shard was chosen by a hash, it never gives memory back after a flood,
// and it takes more of it.

import (
	"iter"
	"math/bits"
	"sync/atomic"
)

// An index is a hash table from key to entry, in buckets of 64 bytes. At most
// three quarters of it are in use, and at least an eighth unless it is of the smallest
// size. The zero value is empty.
//
// The shard's lock guards it, except that find and each may be called without. Then
// find may miss an entry that was added just now, but it never returns another than
// that of the key. Whether that one is still in the table, its place tells.
type index struct {
	buckets atomic.Pointer[[]bucket] // a power of two of them, or none
	_       [48]byte                 // so that len is not in the cache line of what look-ups read
	len     int
}

// A bucket holds up to seven entries. For each it has a tag, eight bits of the hash,
// so that a look-up compares a key with hardly any but its own. An entry that found
// its bucket full is in one of those that follow.
type bucket struct {
	tags    atomic.Uint64 // a byte for each entry, 0 where there is none; the eighth counts entries that went on
	entries [bucketSize]atomic.Pointer[entry]
}

const (
	bucketSize = 7
	// onward is how far the count of those that went on is shifted; it stays at
	// manyOn once there.
	onward = 8 * bucketSize
	manyOn = 255
	// ones and highs have the lowest and the highest bit of each tag.
	ones  = 0x0001_0101_0101_0101
	highs = ones << 7
)

// home is the bucket where the search for a hash begins. The low bits chose the
// shard, and the high ones are the tag.
func home(hash uint64) uint64 { return hash >> 24 }

// tagOf is the tag of a hash, which is never 0.
func tagOf(hash uint64) uint64 { return max(1, hash>>56) }

// matches returns a word with the highest bit set of each byte of tags that is tag.
// Above such a byte others may be marked wrongly, so the caller compares keys.
func matches(tags, tag uint64) uint64 {
	differ := tags ^ ones*tag
	return (differ - ones) &^ differ & highs
}

// find returns the entry of a key whose hash is given, nil if there is none.
func (x *index) find(hash uint64, key string) *entry {
	buckets := x.all()
	at, tag := home(hash), tagOf(hash)
	for range buckets {
		b := &buckets[at&uint64(len(buckets)-1)]
		tags := b.tags.Load()
		for m := matches(tags, tag); m != 0; m &= m - 1 {
			if e := b.entries[bits.TrailingZeros64(m)/8].Load(); e != nil && e.key == key {
				return e
			}
		}
		if tags>>onward == 0 {
			break
		}
		at++
	}
	return nil
}

// insert adds an entry whose key is not in the index.
func (x *index) insert(e *entry) {
	if size := len(x.all()); 4*(x.len+1) > 3*bucketSize*size {
		x.resize(max(1, 2*size))
	}
	put(x.all(), e)
	x.len++
}

// remove takes an entry out that is in the index.
func (x *index) remove(e *entry) {
	buckets := x.all()
	for at := home(e.hash); ; at++ {
		b := &buckets[at&uint64(len(buckets)-1)]
		tags := b.tags.Load()
		if i := b.placeOf(e); i >= 0 {
			b.tags.Store(tags &^ (0xff << (8 * i)))
			b.entries[i].Store(nil)
			break
		}
		if tags>>onward < manyOn {
			b.tags.Store(tags - 1<<onward)
		}
	}
	x.len--
	if size := len(buckets); size > 1 && 8*x.len < bucketSize*size {
		x.resize(size / 2)
	}
}

// placeOf returns where in the bucket the entry is, -1 if it is not there.
func (b *bucket) placeOf(e *entry) int {
	for i := range b.entries {
		if b.entries[i].Load() == e {
			return i
		}
	}
	return -1
}

// each yields every entry, in no order that means anything. It may be called without
// the lock; then it yields none twice, and perhaps some that are gone since it began,
// and not all that came.
func (x *index) each() iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		buckets := x.all()
		for i := range buckets {
			for j := range buckets[i].entries {
				if e := buckets[i].entries[j].Load(); e != nil && !yield(e) {
					return
				}
			}
		}
	}
}

// all returns the buckets.
func (x *index) all() []bucket {
	if buckets := x.buckets.Load(); buckets != nil {
		return *buckets
	}
	return nil
}

func (x *index) resize(size int) {
	buckets := make([]bucket, size)
	for e := range x.each() {
		put(buckets, e)
	}
	x.buckets.Store(&buckets)
}

// put adds an entry to buckets that have room for it.
func put(buckets []bucket, e *entry) {
	for at := home(e.hash); ; at++ {
		b := &buckets[at&uint64(len(buckets)-1)]
		tags := b.tags.Load()
		if i := b.placeOf(nil); i >= 0 {
			b.entries[i].Store(e)
			b.tags.Store(tags | tagOf(e.hash)<<(8*i))
			return
		}
		if tags>>onward < manyOn {
			b.tags.Store(tags + 1<<onward)
		}
	}
}
