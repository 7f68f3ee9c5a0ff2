// This file watches what passes between a node and its store, and so knows of each
// counter what the node was told: the measure of what Redis must hold.

package integration

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hanzoai/limiters/ratelimit/store"
)

// A witness is a store that takes down, per counter, the units of batches that
// were acknowledged, poisoned, or given up with their fate unknown. It stands
// between a limiter and the real store of one partition.
type witness struct {
	inner store.Store

	gate     sync.RWMutex // held for writing while the node is paused
	now      func() int64 // immutable; mono
	answered atomic.Int64 // mono of the last answer

	mu       sync.Mutex
	dead     bool              // guarded by mu; the node's process is gone
	acked    map[string]uint64 // guarded by mu; by counter
	since    map[string]uint64 // guarded by mu; acked by attempts that began after the last loss
	poisoned map[string]uint64 // guarded by mu
	doubtful map[string]uint64 // guarded by mu
	back     taken             // guarded by mu
	asking   asking            // guarded by mu
	losses   int               // guarded by mu; how often the server's data was destroyed
	refused  uint64            // guarded by mu; units
	open     carried           // guarded by mu; the batch without an answer
	orphans  int               // guarded by mu
	failures map[string]int    // guarded by mu; attempts by cause
	again    int               // guarded by mu; answers that say applied before
	resent   int               // guarded by mu; of them, those to first attempts
	timing   bool              // guarded by mu
	took     []time.Duration   // guarded by mu; answered attempts' while timing
}

// A carried batch is one that the store has not answered.
type carried struct {
	sequence string
	number   uint64
	writes   []store.Write
	maybe    bool // an attempt may have been applied
	asks     map[string]uint64
}

func newWitness(inner store.Store, now func() int64) *witness {
	return &witness{
		inner: inner, now: now, acked: map[string]uint64{}, since: map[string]uint64{},
		poisoned: map[string]uint64{}, doubtful: map[string]uint64{}, failures: map[string]int{}, back: newTaken(),
		asking: asking{map[string]uint64{}, map[string]uint64{}},
	}
}

// errDead is what a dead node's store answers.
var errDead = &store.Error{Fate: store.NotSent, Step: store.StepConnect, Cause: store.CauseOther, Err: errors.New("the node is dead")}

// Apply implements store.Store.
func (w *witness) Apply(ctx context.Context, b *store.Batch, r *store.Reply) error {
	w.pass()
	losses, ok := w.begin(b)
	if !ok {
		return errDead
	}
	began := time.Now()
	err := w.inner.Apply(ctx, b, r)
	if err == nil {
		w.time(time.Since(began))
		w.answered.Store(w.now())
	}
	w.pass() // a node may be paused between a reply and its use
	w.end(b, r, err, losses)
	return err
}

func (w *witness) time(took time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timing {
		w.took = append(w.took, took)
	}
}

// timed begins or ends to take down how long answers take, and returns those taken
// down.
func (w *witness) timed(on bool) []time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	took := w.took
	w.timing, w.took = on, nil
	return took
}

// pass waits while the node is paused.
func (w *witness) pass() {
	w.gate.RLock()
	defer w.gate.RUnlock()
}

// begin notes which batch is being sent; a new one says that the one before was
// given up.
func (w *witness) begin(b *store.Batch) (losses int, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead {
		return 0, false
	}
	if w.open.number != b.Number || w.open.sequence != b.Sequence {
		w.giveUpLocked()
		w.open = carried{sequence: b.Sequence, number: b.Number, writes: slices.Clone(b.Writes)}
	}
	return w.losses, true
}

// end notes what became of the attempt, by the same rules as the limiter does.
func (w *witness) end(b *store.Batch, r *store.Reply, err error, losses int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		var failed *store.Error
		if !errors.As(err, &failed) || failed.Fate == store.Unknown {
			w.open.maybe = true
			w.open.asks = asks(b)
		}
		if failed != nil {
			w.failures[failed.Cause]++
		}
		return
	}
	switch {
	case r.Outcome == store.Applied, r.Outcome == store.Duplicate:
		if r.Outcome == store.Duplicate {
			w.again++
			if !b.Retry {
				w.resent++
			}
		}
		w.grantsLocked(b, r, losses)
		for i, result := range r.Writes {
			if b.Writes[i].Delta < 0 {
				if result.Taken > 0 {
					w.back.taken[b.Writes[i].Key] += result.Taken
					w.back.takenSince[b.Writes[i].Key] += result.Taken
				}
				continue
			}
			units := uint64(b.Writes[i].Delta)
			switch result.Status {
			case store.Written, store.Unexpiring:
				w.acked[b.Writes[i].Key] += units
				if losses == w.losses {
					w.since[b.Writes[i].Key] += units
				}
			case store.Poisoned:
				w.poisoned[b.Writes[i].Key] += units
			default:
				w.refused += units
			}
		}
		w.open = carried{}
	default:
		if r.Outcome == store.Orphan {
			w.orphans++
		}
		w.open.maybe = w.open.maybe || b.Retry
		w.giveUpLocked()
	}
}

// giveUpLocked closes the books on the open batch. It requires w.mu.
func (w *witness) giveUpLocked() {
	if w.open.maybe {
		for _, write := range w.open.writes {
			if write.Delta < 0 {
				w.back.takenPerhaps[write.Key] += uint64(-write.Delta)
				continue
			}
			w.doubtful[write.Key] += uint64(write.Delta)
		}
		for counter, units := range w.open.asks {
			w.doubtful[counter] += units
			w.asking.doubt[counter] += units
		}
	}
	w.open = carried{}
}

// lost says that the server's data was destroyed just now: only what is
// acknowledged by attempts that begin later must be there.
func (w *witness) lost() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.losses++
	clear(w.since)
	clear(w.back.takenSince)
}

// die ends the node's traffic with its store, as the end of its process does.
func (w *witness) die() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dead = true
}

// An account is what a witness took down, by counter.
type account struct {
	acked, since, poisoned, doubtful map[string]uint64
	back                             taken
}

// taken is what a store took back, by counter: for certain, by attempts that ended after
// the last loss, and perhaps.
type taken struct{ taken, takenSince, takenPerhaps map[string]uint64 }

func newTaken() taken { return taken{map[string]uint64{}, map[string]uint64{}, map[string]uint64{}} }

func newAccount() account {
	return account{map[string]uint64{}, map[string]uint64{}, map[string]uint64{}, map[string]uint64{}, newTaken()}
}

// account closes the books. The node must have stopped sending.
func (w *witness) account() account {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.giveUpLocked()
	return account{
		maps.Clone(w.acked), maps.Clone(w.since), maps.Clone(w.poisoned), maps.Clone(w.doubtful),
		taken{maps.Clone(w.back.taken), maps.Clone(w.back.takenSince), maps.Clone(w.back.takenPerhaps)},
	}
}
