// Package memstore is the store contract in plain Go memory: the twin of
// lua/sync.lua, command for command.
//
// It serves memory:// (one process, for development) and every test that needs a
// fleet without a network. A differential test holds it to the script.
//
// # Concurrency
//
// All methods may be called at any time from any goroutine; many limiters may
// share one store, as nodes share a Redis.
package memstore

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/hanzoai/limiters/ratelimit/store"
)

// A Store keeps counters in memory. Everything it holds expires by its clock, in
// whole milliseconds, and is removed when it is next met or by a sweep that
// every Apply does a little of; one Apply's work is proportional to its batch.
type Store struct {
	now func() int64 // immutable

	mu       sync.Mutex
	table    table                   // guarded by mu
	notes    []note                  // guarded by mu; of the batch under way
	failures map[string]store.Status // guarded by mu; what Fail asked for
}

// New returns an empty store whose clock is now: nanoseconds since the Unix
// epoch. A clock that steps back revives nothing that was already removed. nil
// is the system's clock.
func New(now func() int64) *Store {
	if now == nil {
		now = func() int64 { return time.Now().UnixNano() }
	}
	return &Store{now: now, table: table{entries: map[string]*entry{}}}
}

// Apply implements [store.Store]. It fails only if ctx has ended before it began.
func (s *Store) Apply(ctx context.Context, batch *store.Batch, reply *store.Reply) error {
	if err := ctx.Err(); err != nil {
		return &store.Error{Fate: store.NotSent, Step: store.StepSend, Cause: store.CauseCanceled, Err: err}
	}
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.table.now = floorDiv(now, int64(time.Millisecond))

	reply.Number = batch.Number
	reply.Time = floorDiv(now, int64(time.Microsecond))
	reply.Writes = resize(reply.Writes, len(batch.Writes))
	reply.Reads = resize(reply.Reads, len(batch.Reads))

	s.notes = s.notes[:0]
	reply.Outcome = s.judgeLocked(batch)
	if reply.Outcome == store.Applied {
		s.writeLocked(batch, reply)
	} else {
		s.skipLocked(batch, reply)
	}
	s.answer(batch, reply)
	for i, key := range batch.Reads {
		reply.Reads[i] = s.table.total(key)
	}
	s.table.sweep(16 + 2*(len(batch.Writes)+len(batch.Reads)))
	return nil
}

// judgeLocked decides what happens to the batch, by what its sequence key holds, and
// collects the notes for a duplicate. It requires s.mu.
func (s *Store) judgeLocked(batch *store.Batch) store.Outcome {
	if batch.Number == 0 {
		return store.Looked
	}
	e := s.table.find(batch.Sequence)
	if e == nil {
		s.noteForgotten(batch.Acked > 0)
		if batch.Retry && batch.Number > 1 {
			return store.Orphan
		}
		return store.Applied
	}
	last, ok := parseSequence(e)
	switch {
	case !ok:
		return store.BadSequence
	case batch.Number > last.number:
		s.noteForgotten(batch.Acked > last.number)
		return store.Applied
	case batch.Number == last.number && last.nonce == strconv.FormatUint(batch.Nonce, 10):
		s.notes = append(s.notes, last.notes...)
		return store.Duplicate
	}
	return store.Stranger
}

// noteForgotten notes that what the batch says was acknowledged is not there.
func (s *Store) noteForgotten(forgotten bool) {
	if forgotten {
		s.notes = append(s.notes, note{code: noteForgotten})
	}
}

// writeLocked applies the batch. It requires s.mu.
func (s *Store) writeLocked(batch *store.Batch, reply *store.Reply) {
	s.table.set(batch.Sequence, formatSequence(batch, nil), batch.SequenceTTL)
	reply.Window = s.claimWindowLocked(batch)
	for i := range batch.Writes {
		reply.Writes[i].Total = s.changeLocked(batch, i)
	}
	if len(s.notes) > 0 {
		s.table.set(batch.Sequence, formatSequence(batch, s.notes), batch.SequenceTTL)
	}
}

// claimWindowLocked sets the window key if nobody has, renews it if it holds the
// batch's window, and returns what it holds. It requires s.mu.
func (s *Store) claimWindowLocked(batch *store.Batch) int64 {
	window := batch.Window.Milliseconds()
	e := s.table.find(batch.WindowKey)
	if e == nil {
		s.table.set(batch.WindowKey, integerValue(window), batch.SequenceTTL)
		return window
	}
	held := e.total()
	if held == window {
		e.expireAfter(s.table.now, batch.SequenceTTL)
	}
	return held
}

// skipLocked reads the totals of a batch that is not applied now. It requires s.mu.
func (s *Store) skipLocked(batch *store.Batch, reply *store.Reply) {
	reply.Window = store.Invalid
	if e := s.table.find(batch.WindowKey); e != nil {
		reply.Window = e.total()
	}
	for i := range batch.Writes {
		reply.Writes[i].Total = s.table.total(batch.Writes[i].Key)
	}
}

// answer fills in what became of each write, by the notes.
func (s *Store) answer(batch *store.Batch, reply *store.Reply) {
	reply.Forgotten = false
	status := store.Skipped
	if reply.Outcome == store.Applied || reply.Outcome == store.Duplicate {
		status = store.Written
	}
	for i := range reply.Writes {
		w, r := &batch.Writes[i], &reply.Writes[i]
		r.Status, r.Taken, r.Granted = status, 0, nil
		if w.Delta < 0 {
			r.Taken = uint64(-w.Delta)
		}
		if w.Condition != nil {
			r.Granted = make([]bool, len(w.Condition.Amounts))
			for j := range r.Granted {
				r.Granted[j] = status == store.Written
			}
		}
	}
	tell(s.notes, batch, reply)
}

// resize returns a slice of n elements, in s's memory if it is large enough.
func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// floorDiv is a / b rounded down, so that times before 1970 keep their order.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
