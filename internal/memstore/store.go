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

	outcome, failures := s.judgeLocked(batch)
	reply.Outcome = outcome
	if outcome == store.Applied {
		s.writeLocked(batch, reply)
	} else {
		s.skipLocked(batch, reply, failures)
	}
	for i, key := range batch.Reads {
		reply.Reads[i] = s.table.total(key)
	}
	s.table.sweep(16 + 2*(len(batch.Writes)+len(batch.Reads)))
	return nil
}

// judgeLocked decides what happens to the batch, by its number and what its
// sequence key holds, and returns the failures to repeat to a duplicate. It
// requires s.mu.
func (s *Store) judgeLocked(batch *store.Batch) (store.Outcome, []failure) {
	e := s.table.find(batch.Sequence)
	if e == nil {
		if batch.Retry && batch.Number > 1 {
			return store.Orphan, nil
		}
		return store.Applied, nil
	}
	number, failures, ok := parseSequence(e)
	switch {
	case !ok:
		return store.BadSequence, nil
	case batch.Number > number:
		return store.Applied, nil
	case batch.Number < number:
		return store.Duplicate, nil
	}
	return store.Duplicate, failures
}

// writeLocked applies the batch. It requires s.mu.
func (s *Store) writeLocked(batch *store.Batch, reply *store.Reply) {
	s.table.set(batch.Sequence, formatSequence(batch.Number, nil), batch.SequenceTTL)
	reply.Window = s.claimWindowLocked(batch)
	var failures []failure
	for i := range batch.Writes {
		result := s.addLocked(&batch.Writes[i], batch.Lifetime(i))
		if result.Status != store.Written {
			failures = append(failures, failure{index: i, status: result.Status})
		}
		reply.Writes[i] = result
	}
	if len(failures) > 0 {
		s.table.set(batch.Sequence, formatSequence(batch.Number, failures), batch.SequenceTTL)
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

// addLocked adds to one counter, which lives for lifetime if it is new. It requires s.mu.
func (s *Store) addLocked(w *store.Write, lifetime time.Duration) store.WriteResult {
	fail := s.failures[w.Key]
	if fail == store.Refused {
		return store.WriteResult{Status: store.Refused, Total: s.table.total(w.Key)}
	}
	total, ok := s.table.add(w.Key, int64(w.Delta))
	if !ok || total < 0 || total > store.MaxUnits {
		return store.WriteResult{Status: store.Poisoned, Total: store.Invalid}
	}
	status := store.Written
	if total == int64(w.Delta) {
		if fail == store.Unexpiring {
			status = store.Unexpiring
		} else {
			s.table.find(w.Key).expireAfter(s.table.now, lifetime)
		}
	}
	return store.WriteResult{Status: status, Total: total}
}

// skipLocked answers a batch that is not applied now: totals as they are, and
// the statuses of the time it was applied, if it was. It requires s.mu.
func (s *Store) skipLocked(batch *store.Batch, reply *store.Reply, failures []failure) {
	reply.Window = store.Invalid
	if e := s.table.find(batch.WindowKey); e != nil {
		reply.Window = e.total()
	}
	status := store.Skipped
	if reply.Outcome == store.Duplicate {
		status = store.Written
	}
	for i := range batch.Writes {
		reply.Writes[i] = store.WriteResult{Status: status, Total: s.table.total(batch.Writes[i].Key)}
	}
	for _, f := range failures {
		if 0 <= f.index && f.index < len(reply.Writes) { // anybody may have written them
			reply.Writes[f.index].Status = f.status
		}
	}
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
