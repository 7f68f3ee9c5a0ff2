package ratelimittest

// This file lets calls that wait end on the clock of a test.

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/hanzoai/limiters/ratelimit"
)

// RunWaits calls f in a goroutine of its own and returns when f has. Whenever
// [ratelimit.Limiter.Wait] of lim makes f wait, time passes until something becomes due: so f
// goes on at the very moment at which its units pass. Where f has several goroutines, time
// passes while any of them waits.
//
// A test in a testing/synctest bubble does not need it, with a limiter on the bubble's time.
func (c *Clock) RunWaits(lim *ratelimit.Limiter, f func()) {
	done := make(chan struct{})
	go func() { // ends with f
		defer close(done)
		f()
	}()
	for {
		select {
		case <-done:
			return
		default:
		}
		if lim.Stats().Waiting > 0 {
			if d, ok := c.fake.Next(); ok {
				c.Advance(d)
				continue
			}
		}
		runtime.Gosched()
	}
}

// WithTimeout returns a context that ends when the clock has advanced by d, or with its
// parent, or when cancel is called; call that, as with [context.WithTimeout]. Its deadline
// is on the clock's wall.
func (c *Clock) WithTimeout(parent context.Context, d time.Duration) (ctx context.Context, cancel context.CancelFunc) {
	inner, end := context.WithCancel(parent)
	t := &timeout{Context: inner, at: c.Time().Add(d)}
	if at, ok := parent.Deadline(); ok && at.Before(t.at) {
		t.at = at
	}
	stop := c.fake.Once(d, func() {
		t.mu.Lock()
		t.passed = inner.Err() == nil
		t.mu.Unlock()
		end()
	})
	return t, func() {
		stop()
		end()
	}
}

// A timeout is a context with a deadline on a Clock.
type timeout struct {
	context.Context
	at time.Time // immutable

	mu     sync.Mutex
	passed bool // guarded by mu; the deadline has passed, before anything else ended it
}

// Deadline returns when the context ends, on the clock's wall.
func (t *timeout) Deadline() (time.Time, bool) { return t.at, true }

// Err returns nil until the context has ended.
func (t *timeout) Err() error {
	err := t.Context.Err()
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil && t.passed {
		return context.DeadlineExceeded
	}
	return err
}
