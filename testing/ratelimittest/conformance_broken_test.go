package ratelimittest_test

// This file shows that the conformance suite finds a store that breaks the contract:
// each test runs the suite in a process of its own, which has to fail.

import (
	"context"
	"os"
	"os/exec"
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
	"hides poison": {broken{after: func(r *store.Reply) {
		for i := range r.Writes {
			r.Writes[i].Status = store.Written
		}
	}}, "poisoned"},
	"never expires":                    {broken{before: func(b *store.Batch) { b.TTL = time.Hour }}, "counters_expire"},
	"answers with a number of its own": {broken{after: func(r *store.Reply) { r.Number++ }}, "the reply says number"},
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
