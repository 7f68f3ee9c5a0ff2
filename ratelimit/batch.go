package ratelimit

// This file turns what entries have to say into a batch.

import "github.com/hanzoai/limiters/ratelimit/store"

// A batch is one numbered message to a partition: the store's form of it, and
// which entries it speaks for. Its buffers are reused by the batches that follow.
type batch struct {
	store.Batch
	items []item
	epoch int64 // the latest of its items'

	keys          []byte // the text of all counter keys
	writes, reads []span // where each key is in keys

	asks       []ask // of calls to the fleet; their items come first
	amounts    []uint64
	conditions []store.Condition
}

// A span is a part of a batch's keys.
type span struct{ from, to int }

// An item is what a batch says for one entry: the units of two epochs, to be added or
// taken back, and whether it asks for both counters.
type item struct {
	entry *entry
	epoch int64     // that of the second unit count
	units [2]uint64 // of the epoch before, and of epoch
	back  [2]uint64 // of the same, to be taken back; of each epoch there is one or the other
	read  bool
	at    [2]int // index in Writes where there are units, else in Reads if read
	ask   int    // index in the batch's asks, from 1; 0 = none
}

// reset empties the batch.
func (b *batch) reset() {
	clear(b.items) // lets go of the entries
	b.items = b.items[:0]
	b.Writes, b.Reads = b.Writes[:0], b.Reads[:0]
	b.keys, b.writes, b.reads = b.keys[:0], b.writes[:0], b.reads[:0]
	b.Retry = false
	clear(b.asks)
	b.asks, b.amounts, b.conditions = b.asks[:0], b.amounts[:0], b.conditions[:0]
}

// addLocked moves the entry's unsent units, and those it is owed, into the batch, and asks
// for its counters if read, and for what ask says if it is not 0. It returns where the key of
// the counter before is. It requires the lock of e, whose debts are netted.
func (b *batch) addLocked(e *entry, read bool, prefix string, ask int) (previous span) {
	it := item{entry: e, epoch: e.epoch, read: read, ask: ask}
	for i := range e.slots {
		it.units[i], e.slots[i].unsent = e.slots[i].unsent, 0
		it.back[i] = e.takeOwedLocked(i)
		asks := ask != 0 && i == 1 && len(b.asks[ask-1].amounts) > 0
		if it.units[i]|it.back[i] == 0 && !read && !asks && ask == 0 {
			continue
		}
		from := len(b.keys)
		b.keys = appendCounterKey(b.keys, prefix, e.key, e.partition.l.number(e.epoch-1+int64(i)))
		key := span{from, len(b.keys)}
		if i == 0 {
			previous = key
		}
		if it.units[i]|it.back[i] != 0 || asks {
			it.at[i] = len(b.Writes)
			b.writes = append(b.writes, key)
			b.Writes = append(b.Writes, store.Write{Delta: int64(it.units[i]) - int64(it.back[i])})
		} else if read {
			it.at[i] = len(b.reads)
			b.reads = append(b.reads, key)
		}
	}
	if len(b.items) == 0 || it.epoch > b.epoch {
		b.epoch = it.epoch
	}
	b.items = append(b.items, it)
	e.inFlight = true
	return previous
}

// finish gives the batch its keys: one string holds them all.
func (b *batch) finish() {
	keys := string(b.keys)
	for i, at := range b.writes {
		b.Writes[i].Key = keys[at.from:at.to]
	}
	for _, at := range b.reads {
		b.Reads = append(b.Reads, keys[at.from:at.to])
	}
	b.finishAsks(keys)
}

// unreadable reports whether no read at an epoch can see any of the batch's.
func (b *batch) unreadable(epoch int64) bool {
	return epoch >= b.epoch+2 || epoch <= b.epoch-2
}

// answeredBy reports whether a reply has the batch's number and shape.
func (b *batch) answeredBy(r *store.Reply) bool {
	if r.Number != b.Number || len(r.Writes) != len(b.Writes) || len(r.Reads) != len(b.Reads) {
		return false
	}
	var skipped bool
	switch r.Outcome {
	case store.Applied, store.Duplicate:
	case store.Stranger, store.Orphan, store.BadSequence:
		skipped = true
	default:
		return false
	}
	for i, w := range r.Writes {
		if w.Taken > uint64(max(0, -b.Writes[i].Delta)) {
			return false
		}
		if c := b.Writes[i].Condition; c != nil && len(w.Granted) != len(c.Amounts) {
			return false
		}
		if w.Status > store.Skipped || (w.Status == store.Skipped) != skipped || !isTotal(w.Total) {
			return false
		}
	}
	for _, total := range r.Reads {
		if !isTotal(total) {
			return false
		}
	}
	return true
}

// isTotal reports whether a reply may hold n as a counter's total.
func isTotal(n int64) bool { return n >= store.Invalid && n <= store.MaxUnits }

// sizes returns how many of the batch's entities carry units, and how many ask for
// a read.
func (b *batch) sizes() (writing, reading int) {
	for i := range b.items {
		if it := &b.items[i]; it.units != [2]uint64{} || it.back != [2]uint64{} || it.ask != 0 && len(b.asks[it.ask-1].amounts) > 0 {
			writing++
		}
		if b.items[i].read {
			reading++
		}
	}
	return writing, reading
}

// backs returns how many units the batch takes back.
func (b *batch) backs() (n uint64) {
	for i := range b.items {
		n += b.items[i].back[0] + b.items[i].back[1]
	}
	return n
}

// units returns how many units the batch carries.
func (b *batch) units() (n uint64) {
	for i := range b.items {
		n += b.items[i].units[0] + b.items[i].units[1]
	}
	return n
}
