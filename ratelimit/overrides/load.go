package overrides

// This file bounds a source that hangs: a file on a dead mount cannot be told to stop.

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// grace is how long a source may take to return after its context has ended.
const grace = 100 * time.Millisecond

// ErrHanging says that a source did not return when its context ended. Until it does,
// refreshes wait for it, each for its timeout, and fail with this error.
var ErrHanging = errors.New("overrides: the source hangs")

// A loading is one call of Source.Load.
type loading struct {
	done      chan struct{} // closed when Load has returned
	overrides map[string]uint64
	err       error
	panicked  any
}

// begin calls Load in a goroutine, which ends when Load returns.
func begin(ctx context.Context, source Source) *loading {
	l := &loading{done: make(chan struct{})}
	go func() {
		defer close(l.done)
		returned := false
		defer func() {
			if l.panicked = recover(); l.panicked == nil && !returned { // runtime.Goexit
				l.err = errors.New("overrides: the source ended its goroutine")
			}
		}()
		l.overrides, l.err = source.Load(ctx)
		returned = true
	}()
	return l
}

// wait reports whether Load returns before the context has ended for a while.
func (l *loading) wait(ctx context.Context) bool {
	select {
	case <-l.done:
		return true
	case <-ctx.Done():
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-l.done:
		return true
	case <-timer.C:
		return false
	}
}

// load reads the source, for as long as ctx allows. A read that hung and came back is
// dropped: what it holds may be as old as it is. Only whoever has the turn may call it.
func (w *Watcher) load(ctx context.Context) (map[string]uint64, error) {
	hangs := func() error { return fmt.Errorf("%w: %w", ErrHanging, context.Cause(ctx)) }
	if w.hung != nil {
		if !w.hung.wait(ctx) {
			return nil, hangs()
		}
		w.hung = nil
	}
	l := begin(ctx, w.source)
	if !l.wait(ctx) {
		w.hung = l
		return nil, hangs()
	}
	if l.panicked != nil {
		panic(l.panicked)
	}
	return l.overrides, l.err
}
