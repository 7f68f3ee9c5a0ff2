package ratelimit

// This file is the node's side of one partition: its tick, and the delivery of
// batches exactly once.

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"sync"
	"time"

	"github.com/hanzoai/limiters/internal/level"
	"github.com/hanzoai/limiters/ratelimit/store"
)

// A partition is one store and what waits for it. At most one of its batches is
// without an answer; that one is sent again, unchanged, before anything else.
//
// The tick under way holds turn. Lock order: turn, mu, a shard's lock, an entry's, the queue's.
type partition struct {
	index  int         // immutable
	name   string      // immutable
	prefix string      // immutable; of its keys
	store  store.Store // immutable
	l      *Limiter    // immutable

	queue queue
	fleet fleetQueue
	turn  chan struct{} // holds one value while nobody ticks

	neighbors neighbors
	units     unitSync

	taken   []*entry    // of the holder of turn
	pressed []*entry    // of the holder of turn
	reply   store.Reply // of the holder of turn
	retried bool        // of the holder of turn; the batch was sent again at once

	dropped total        // units of its entities that were stale, overflowed or unknown
	again   []*fleetCall // of the holder of turn; to be asked again

	mu       sync.Mutex
	batch    batch  // guarded by mu, but read freely by the holder of turn while carrying
	carrying bool   // guarded by mu; batch has no answer yet
	trying   bool   // guarded by mu; an attempt has not returned
	settled  bool   // guarded by mu; Close has accounted for everything; replies are ignored
	sequence string // guarded by mu
	number   uint64 // guarded by mu; of the last batch under sequence
	acked    uint64 // guarded by mu; the last number acknowledged under sequence; 0 = none
	ackedAt  int64  // guarded by mu; mono; when a batch was acknowledged last
	health   health // guarded by mu
	pace     pace   // guarded by mu
	lines    []line // guarded by mu; to be logged once it is free
}

var (
	errWrongReply    = errors.New("the reply does not have the batch's number and shape")
	errSequenceTaken = errors.New("the sequence key is in use by another; the batch waits under a new one")
)

func newPartition(l *Limiter, index int, p Partition) *partition {
	tag := ""
	if p.HashTag != "" {
		tag = "{" + p.HashTag + "}"
	}
	prefix := tag + l.cfg.RedisKeyPrefix
	n := &partition{
		index: index, name: p.Name, prefix: prefix, store: p.Store, l: l,
		turn: make(chan struct{}, 1), pace: paceOf(l.cfg), fleet: fleetQueue{wake: make(chan struct{}, 1)},
		units: unitSync{wake: make(chan struct{}, 1), keys: l.keysPerTick, scripts: scriptsSaved},
	}
	if l.kind == sliding {
		n.queue.pressed = make([]*entry, 0, leastPressed)
	}
	if l.byUnits {
		n.queue.ready = make([]*entry, 0, l.cfg.MaxKeysPerScript)
	}
	n.turn <- struct{}{}
	n.batch.WindowKey = windowKey(prefix)
	n.batch.Window = time.Duration(windowNumber(l.cfg)) * time.Millisecond
	n.batch.SequenceTTL = sequenceTTL(l.cfg)
	n.batch.TTL, n.batch.Spread = expiry(l.cfg)
	n.neighbors = neighborsOf(tag, l.cfg.RedisKeyPrefix, &n.batch.Batch)
	n.drawIdentityLocked()
	return n
}

// drawIdentityLocked starts a new sequence of numbers, under 128 random bits.
func (p *partition) drawIdentityLocked() {
	var bits [16]byte
	rand.Read(bits[:]) // never fails
	p.sequence, p.number, p.acked = sequenceKey(p.prefix, hex.EncodeToString(bits[:])), 0, 0
}

// tick syncs what waits, entities of the lowest rank or above: the batch without
// an answer first, then up to the partition's share of Config.MaxSyncKeysPerTick,
// in scripts of at most Config.MaxKeysPerScript, less where replies are late. What is queued meanwhile is left
// to the next tick. It ends at the first batch that stays without an answer, whose
// error it returns. It requires the turn.
func (p *partition) tick(ctx context.Context, lowest rank) error {
	p.slicePressed()
	if p.isCarrying() {
		if err := p.deliver(ctx); err != nil {
			p.noteDeferred(lowest, 0)
			return err
		}
	}
	quota, left := p.queue.quota(p.units.beginTick(lowest, p.l.keysPerTick), lowest)
	p.units.keys -= quota.sum()
	p.noteDeferred(lowest, left)
	for {
		size := p.batchSize()
		if waiting := min(p.fleet.len(), p.fleetCalls()); waiting > 0 { // they come first, and wait for this script
			size = max(1, min(size/4, size-waiting))
		}
		p.taken = p.queue.pop(p.taken[:0], size, &quota)
		if lowest == rankIdle {
			p.taken = p.queue.takeAsked(p.taken, size)
		}
		if len(p.taken) == 0 {
			p.lookAround(ctx)
			return p.askIfIdle(ctx, lowest)
		}
		encoded := p.encode()
		clear(p.taken)
		if !encoded {
			continue
		}
		if err := p.deliver(ctx); err != nil {
			return err
		}
	}
}

// noteDeferred notes how many entities a whole tick leaves in the queue because of
// its bound.
func (p *partition) noteDeferred(lowest rank, left int) {
	if lowest > rankIdle {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.health.deferred = left
}

// batchSize is how many entities the next batch may take.
func (p *partition) batchSize() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pace.entities
}

func (p *partition) isCarrying() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.carrying
}

// encode makes the batch of calls to the fleet that wait and of the entries taken, and reports
// whether there is one.
func (p *partition) encode() bool {
	r := p.l.readNow()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.settled {
		return false
	}
	b := &p.batch
	b.reset()
	p.takeFleetLocked(&r)
	for _, e := range p.taken {
		s := p.l.table.shardOf(e.hash)
		e.lock()
		if read, speaks := p.speaksLocked(e, !s.closed.Load(), r); speaks {
			p.l.sliceLocked(e, &r)
			b.addLocked(e, read, p.prefix, 0)
		}
		e.unlock()
	}
	if len(b.items) == 0 {
		return false
	}
	b.finish()
	if p.l.calendar != nil {
		b.TTL = p.l.counterTTL(&r)
		b.Spread = b.TTL / 10
	}
	if p.silentLocked(r) {
		p.drawIdentityLocked()
	}
	p.numberLocked()
	b.Nonce = nonce()
	p.carrying = true
	return true
}

// numberLocked gives the batch the next number of the identity.
func (p *partition) numberLocked() {
	p.number++
	p.batch.Sequence, p.batch.Number, p.batch.Acked = p.sequence, p.number, p.acked
}

// nonce returns 64 random bits.
func nonce() uint64 {
	var bits [8]byte
	rand.Read(bits[:]) // never fails
	return binary.BigEndian.Uint64(bits[:])
}

// silentLocked reports whether so much time has passed since a batch was acknowledged,
// on either clock, that the sequence key may expire under the next one: then a retry
// of it could not tell whether it was applied, and would have to give it up. A batch
// with number 1 under a new key can always be retried.
func (p *partition) silentLocked(r reading) bool {
	if p.number == 0 {
		return false
	}
	silence := int64(p.batch.SequenceTTL / 2)
	wall := p.health.lastSync
	return level.Elapsed(r.mono, p.ackedAt) >= silence || max(level.Elapsed(r.wall, wall), level.Elapsed(wall, r.wall)) >= silence
}

// speaksLocked reports whether an entry taken from the queue has something to say or to
// ask, and whether it asks for its counters: because a check wanted it, or because it has
// units in a young epoch, when other nodes may still add to the counter of the one
// before. After Close (not open) it asks for nothing. It requires the entry's lock.
func (p *partition) speaksLocked(e *entry, open bool, r reading) (read, speaks bool) {
	e.queued, e.ready = false, false
	if e.place == gone || e.inFlight || e.place == asked && p.fleet.asksFor(e.key) || e.place == asked && p.l.table.shardOf(e.hash).entries.find(e.hash, e.key) != nil {
		return false, false
	}
	e.advanceLocked(&r)
	if e.synced {
		p.l.metrics.syncStalenessMS.Update(float64(level.Elapsed(e.usedAt, e.syncedAt)) / 1e6)
	}
	e.netLocked(&r, p.l.window)
	unsent := e.unsentLocked()
	read = open && (e.wantRead || unsent && !e.prevFinal)
	return read, read || unsent
}

// deliver sends the batch until it is answered or given up. After a connection
// that the peer closed it tries once more at once; any other failure it returns,
// and the batch stays what it is for the next tick.
func (p *partition) deliver(ctx context.Context) error {
	p.retried = false
	for {
		sent := p.l.readNow()
		if !p.begin(sent) {
			return nil
		}
		p.reply.Number = 0 // the answer before is none to this attempt
		_, began := p.l.precise()
		err := p.store.Apply(ctx, &p.batch.Batch, &p.reply)
		_, ended := p.l.precise()
		p.noteScript(began, ended)
		if err == nil && !p.batch.answeredBy(&p.reply) {
			err = &store.Error{Step: store.StepDecode, Cause: store.CauseMalformed, Err: errWrongReply}
		}
		if !p.conclude(err, sent, p.l.readNow()) {
			if err == nil && p.isCarrying() {
				err = errSequenceTaken
			}
			return err
		}
	}
}

// begin prepares an attempt at the batch. If no read can see its epochs any more,
// or the limiter is closed, it gives the batch up and reports false.
func (p *partition) begin(r reading) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.carrying {
		return false
	}
	if p.batch.unreadable(r.epoch) {
		p.abandonLocked(dropStale, &r)
		p.endFleetLocked(nil)
		p.pace.gaveUp()
		return false
	}
	p.trying = true
	p.batch.Patience = p.pace.patience
	p.health.attempts++
	if p.batch.Retry {
		p.health.retries++
	}
	return true
}

// conclude accounts for an attempt that returned, and reports whether the batch
// should be sent again at once.
func (p *partition) conclude(err error, sent, now reading) (again bool) {
	p.mu.Lock()
	p.trying = false
	if !p.settled {
		p.observeLocked(err, sent, now)
		if again = p.concludeLocked(err, sent, now); !again {
			p.endFleetLocked(err)
		}
		p.noticeLocked(now)
	}
	lines := p.lines
	p.lines = nil
	p.mu.Unlock()
	p.log(lines)
	return again
}

func (p *partition) concludeLocked(err error, sent, now reading) (again bool) {
	if err != nil {
		failure := asStoreError(err)
		if failure.Fate == store.Unknown {
			p.batch.Retry = true
			p.pace.missed(failure.Cause == store.CauseTimeout || errors.Is(err, context.DeadlineExceeded))
			again = failure.Cause == store.CauseClosed && !p.retried
			p.retried = p.retried || again
		}
		return again
	}
	p.pace.answered(len(p.batch.items), time.Duration(level.Elapsed(now.mono, sent.mono)))
	if p.reply.Forgotten {
		p.health.forgotten++
	}
	switch p.reply.Outcome {
	case store.Applied, store.Duplicate:
		p.acked = p.batch.Number
		p.acknowledgeLocked(sent, now)
		return false
	case store.Orphan:
		p.abandonLocked(dropUnknown, &now)
		p.acked = 0 // the store was found without it
		return false
	}
	// Somebody else writes to the sequence key: leave it, and send under a new one, at
	// the next tick, what no attempt can have applied.
	if p.batch.Retry {
		p.abandonLocked(dropUnknown, &now)
	}
	p.drawIdentityLocked()
	if p.carrying {
		p.numberLocked()
	}
	return false
}

// asStoreError returns what is known about a failed attempt.
func asStoreError(err error) *store.Error {
	var failure *store.Error
	if errors.As(err, &failure) {
		return failure
	}
	return &store.Error{Fate: store.Unknown, Step: store.StepReply, Cause: store.CauseOther, Err: err}
}
