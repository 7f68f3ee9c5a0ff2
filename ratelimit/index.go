package ratelimit

// This file finds a shard's entries by key. A built-in map would do, were it not
// for three things: it hashes the key again although the shard was chosen by a hash,
// it never gives memory back after a flood, and it takes half as much again per
// entry.

import "iter"

// An index is a hash table with linear probing, from key to entry. At most three
// quarters of it are in use, and at least an eighth unless it is of the smallest
// size. The zero value is empty. The shard's lock guards it.
type index struct {
	slots []indexSlot // a power of two of them, or none
	len   int
}

// An indexSlot is free if entry is nil.
type indexSlot struct {
	hash  uint64
	entry *entry
}

// minIndex is the smallest number of slots.
const minIndex = 8

// find returns the entry of a key whose hash is given, nil if there is none.
func (x *index) find(hash uint64, key string) *entry {
	if x.len == 0 {
		return nil
	}
	mask := uint64(len(x.slots) - 1)
	for i := home(hash) & mask; ; i = (i + 1) & mask {
		switch slot := &x.slots[i]; {
		case slot.entry == nil:
			return nil
		case slot.hash == hash && slot.entry.key == key:
			return slot.entry
		}
	}
}

// insert adds an entry whose key is not in the index.
func (x *index) insert(e *entry) {
	if 4*(x.len+1) > 3*len(x.slots) {
		x.resize(max(minIndex, 2*len(x.slots)))
	}
	x.put(indexSlot{e.hash, e})
	x.len++
}

// remove takes an entry out that is in the index. What stands behind it closes
// ranks, so that no look-up ends too early.
func (x *index) remove(e *entry) {
	mask := uint64(len(x.slots) - 1)
	hole := home(e.hash) & mask
	for x.slots[hole].entry != e {
		hole = (hole + 1) & mask
	}
	for i := (hole + 1) & mask; x.slots[i].entry != nil; i = (i + 1) & mask {
		// The slot at i may move to the hole unless its home lies between them.
		if (i-home(x.slots[i].hash))&mask >= (i-hole)&mask {
			x.slots[hole] = x.slots[i]
			hole = i
		}
	}
	x.slots[hole] = indexSlot{}
	x.len--
	if len(x.slots) > minIndex && 8*x.len < len(x.slots) {
		x.resize(len(x.slots) / 2)
	}
}

// all yields every entry, in no order that means anything. The index must not
// change meanwhile.
func (x *index) all() iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		for i := range x.slots {
			if e := x.slots[i].entry; e != nil && !yield(e) {
				return
			}
		}
	}
}

func (x *index) resize(size int) {
	before := x.slots
	x.slots = make([]indexSlot, size)
	for _, slot := range before {
		if slot.entry != nil {
			x.put(slot)
		}
	}
}

func (x *index) put(slot indexSlot) {
	mask := uint64(len(x.slots) - 1)
	i := home(slot.hash) & mask
	for x.slots[i].entry != nil {
		i = (i + 1) & mask
	}
	x.slots[i] = slot
}

// home is where the search for a hash begins. The low bits chose the shard.
func home(hash uint64) uint64 { return hash >> 32 }
