package ratelimittest_test

// This file shows that the conformance suite finds a store that breaks the contract:
// each test runs the suite in a process of its own, which has to fail.

import (
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hanzoai/limiters/ratelimit/store"
	"github.com/hanzoai/limiters/testing/ratelimittest"
)

// brokenEnv names the fault for the process that has it.
const brokenEnv = "RATELIMITTEST_BROKEN"

// A broken store changes batches before, and replies after, they pass.
type broken struct {
	store.Store
	before func(*store.Batch)
	after  func(*store.Reply)
}

func (s *broken) Apply(ctx context.Context, b *store.Batch, r *store.Reply) error {
	c := *b
	if s.before != nil {
		s.before(&c)
	}
	err := s.Store.Apply(ctx, &c, r)
	if err == nil && s.after != nil {
		s.after(r)
	}
	return err
}

// faults are by name, and part of what the suite says of each.
var faults = map[string]struct {
	broken broken
	says   string
}{
	"counts a retry again": {broken{before: func(b *store.Batch) {
		if b.Retry {
			b.Number += 1000
			b.Retry = false
		}
	}}, "a_batch_counts_once"},
	"knows no orphans": {broken{before: func(b *store.Batch) { b.Retry = false }}, "orphan"},
	"loses the last read": {broken{after: func(r *store.Reply) {
		if n := len(r.Reads); n > 0 {
			r.Reads[n-1] = 0
		}
	}}, "a_batch_is_applied_and_answered"},
	"draws a nonce for each attempt": {broken{before: func(b *store.Batch) { b.Nonce = rand.Uint64() }}, "sent_twice"},
	"ignores the nonce":              {broken{before: func(b *store.Batch) { b.Nonce = 7 }}, "nonce"},
	"counts nonces in floats":        {broken{before: func(b *store.Batch) { b.Nonce = uint64(float64(b.Nonce)) }}, "nonce"},
	"numbers a look":                 {broken{before: func(b *store.Batch) { b.Number = max(b.Number, 1) }}, "look"},
	"forgets in silence":             {broken{after: func(r *store.Reply) { r.Forgotten = false }}, "forgotten_batches"},
	"takes what is not there":        {broken{after: func(r *store.Reply) { eachWrite(r, func(w *store.WriteResult) { w.Taken = max(w.Taken, 3) }) }}, "takes"},
	"repeats no takings": {broken{after: func(r *store.Reply) {
		if r.Outcome == store.Duplicate {
			eachWrite(r, func(w *store.WriteResult) { w.Taken = 0 })
		}
	}}, "repeats_takings"},
	"repeats no grants": {broken{after: func(r *store.Reply) {
		if r.Outcome == store.Duplicate {
			eachWrite(r, func(w *store.WriteResult) { clear(w.Granted) })
		}
	}}, "repeats_takings"},
	"grants at the limit": {broken{before: func(b *store.Batch) { eachCondition(b, func(c *store.Condition) { c.Limit++ }) }}, "granted_if"},
	"rounds weights": {broken{before: func(b *store.Batch) {
		eachCondition(b, func(c *store.Condition) { c.Weight &^= 1 })
	}}, "weighed_exactly"},
	"poisons what is full": {broken{after: func(r *store.Reply) {
		eachWrite(r, func(w *store.WriteResult) {
			if w.Total == store.MaxUnits {
				*w = store.WriteResult{Status: store.Poisoned, Total: store.Invalid}
			}
		})
	}}, "saturated"},
	"hides poison": {broken{after: func(r *store.Reply) {
		for i := range r.Writes {
			r.Writes[i].Status = store.Written
		}
	}}, "poisoned"},
	"never expires":                    {broken{before: func(b *store.Batch) { b.TTL = time.Hour }}, "counters_expire"},
	"answers with a number of its own": {broken{after: func(r *store.Reply) { r.Number++ }}, "the reply says number"},
}

func eachWrite(r *store.Reply, change func(*store.WriteResult)) {
	for i := range r.Writes {
		change(&r.Writes[i])
	}
}

// eachCondition changes copies: the batch's belong to the suite.
func eachCondition(b *store.Batch, change func(*store.Condition)) {
	b.Writes = slices.Clone(b.Writes)
	for i := range b.Writes {
		if c := b.Writes[i].Condition; c != nil {
			changed := *c
			change(&changed)
			b.Writes[i].Condition = &changed
		}
	}
}

func TestBrokenStoresAreFound(t *testing.T) {
	t.Parallel()
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := exec.Command(os.Args[0], "-test.run=^TestBrokenStore$")
			c.Env = append(os.Environ(), brokenEnv+"="+name)
			out, err := c.CombinedOutput()
			if err == nil || !strings.Contains(string(out), fault.says) {
				t.Errorf("the suite said %v and not %q:\n%s", err, fault.says, out)
			}
		})
	}
}

// TestBrokenStore is what the process of a fault runs. Without one, the suite passes
// through the same wrapper.
func TestBrokenStore(t *testing.T) {
	fault := faults[os.Getenv(brokenEnv)]
	ratelimittest.TestStore(t, func(*testing.T) (store.Store, func(time.Duration)) {
		c := ratelimittest.NewClock()
		s := fault.broken
		s.Store = ratelimittest.NewStore(c)
		return &s, c.Advance
	})
}
