// This file tests the index: as a map, and read while it changes.

package ratelimit

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"
)

// indexed returns an entry with this hash.
func indexed(key string, hash uint64) *entry {
	e := newEntry(key)
	e.hash = hash
	return e
}

// An index finds what it holds and nothing else, whatever the hashes: many keys of
// one bucket, of one tag, of one hash.
func TestIndexIsAMap(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var x index
		held := map[string]*entry{}
		var keys []string
		hashes := rapid.SampledFrom([]func(i int) uint64{
			func(i int) uint64 { return uint64(i) * 0x9E3779B97F4A7C15 },
			func(i int) uint64 { return uint64(i%5) << 56 },          // one home
			func(i int) uint64 { return uint64(i) << 24 },            // one tag
			func(int) uint64 { return 1<<56 | 1<<24 },                // one hash
			func(i int) uint64 { return 0xfe<<56 + uint64(i%2)<<57 }, // neighbouring tags
			func(i int) uint64 { return uint64(i%3)<<24 | 0xff<<56 }, // three neighbouring homes
		}).Draw(t, "hashes")
		hash := map[string]uint64{}
		for i := range rapid.IntRange(1, 3000).Draw(t, "steps") {
			switch {
			case len(keys) == 0 || rapid.IntRange(0, 2).Draw(t, "do") > 0:
				key := fmt.Sprint("k", i)
				e := indexed(key, hashes(i))
				x.insert(e)
				held[key], hash[key] = e, e.hash
				keys = append(keys, key)
			default:
				at := rapid.IntRange(0, len(keys)-1).Draw(t, "which")
				key := keys[at]
				keys[at] = keys[len(keys)-1]
				keys = keys[:len(keys)-1]
				x.remove(held[key])
				delete(held, key)
				if got := x.find(hash[key], key); got != nil {
					t.Fatalf("%s is found after it was removed", key)
				}
			}
		}
		if x.len != len(held) {
			t.Fatalf("%d entries, says %d", len(held), x.len)
		}
		for key, e := range held {
			if x.find(e.hash, key) != e {
				t.Fatalf("%s is not found", key)
			}
		}
		seen := 0
		for e := range x.each() {
			if seen++; held[e.key] != e {
				t.Fatalf("%s is there, and should not be", e.key)
			}
		}
		if seen != len(held) {
			t.Fatalf("each yields %d entries of %d", seen, len(held))
		}
		for _, e := range held {
			x.remove(e)
		}
		if buckets := len(x.all()); x.len != 0 || buckets > 1 {
			t.Fatalf("empty, it says %d and has %d buckets", x.len, buckets)
		}
	})
}

// A look-up needs no lock: while others come and go and the index grows and shrinks,
// what stays is found every time, and no key is taken for another.
func TestIndexIsReadWhileItChanges(t *testing.T) {
	t.Parallel()
	var x index
	var stay []*entry
	for i := range 100 {
		stay = append(stay, indexed(fmt.Sprint("stays", i), rand.Uint64()))
		x.insert(stay[i])
	}
	hashes := make([]uint64, 2000) // of those that come and go
	for i := range hashes {
		hashes[i] = rand.Uint64()
	}
	var ended atomic.Bool
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			for !ended.Load() {
				for _, e := range stay {
					if x.find(e.hash, e.key) != e {
						t.Errorf("%s is not found", e.key)
						return
					}
				}
				for i, hash := range hashes[:100] {
					if got := x.find(hash, fmt.Sprint("comes", i)); got != nil && (got.hash != hash || got.key != fmt.Sprint("comes", i)) {
						t.Errorf("%s is taken for comes%d", got.key, i)
						return
					}
				}
				seen := map[*entry]bool{}
				for e := range x.each() {
					if seen[e] {
						t.Errorf("%s is yielded twice", e.key)
						return
					}
					seen[e] = true
				}
				for _, e := range stay {
					if !seen[e] {
						t.Errorf("%s is not yielded", e.key)
						return
					}
				}
			}
		})
	}
	for range 20 {
		come := make([]*entry, len(hashes)) // an entry comes once
		for i, hash := range hashes {
			come[i] = indexed(fmt.Sprint("comes", i), hash)
			x.insert(come[i])
		}
		for _, e := range come {
			x.remove(e)
		}
	}
	ended.Store(true)
	readers.Wait()
}

// A bucket counts up to so many entries that went on, and stays there: what is removed
// then must not make it forget those that are still farther along.
func TestIndexFindsWhatWentOnFromABucketThatLostCount(t *testing.T) {
	t.Parallel()
	var x index
	const entries = 3 * manyOn
	all := make([]*entry, entries)
	for i := range all {
		all[i] = indexed(fmt.Sprint("k", i), uint64(1+i%200)<<56) // one home
		x.insert(all[i])
	}
	for i, e := range all[:entries-20] {
		x.remove(e)
		for _, left := range all[i+1:] {
			if x.find(left.hash, left.key) != left {
				t.Fatalf("after %d were removed %s is not found", i+1, left.key)
			}
		}
	}
}
