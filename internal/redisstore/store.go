// Package redisstore is the store contract on Redis: one EVALSHA of lua/sync.lua
// per batch, over a redigo pool.
//
// # Time
//
// An attempt takes at most the connect timeout, if a connection has to be made,
// and the reply timeout or the batch's patience, whichever is longer, from then on,
// for sending, for an EVAL where the server does not know the script, and for the
// answer. A context's deadline shortens this; a context that is cancelled is noticed
// before the request is sent.
//
// # Connections
//
// On its own connections a store takes no answer that announces more than was asked
// for. Connections of a caller's pool believe what a server announces.
//
// A connection goes back to the pool only after an answer that leaves no doubt
// about its state. It is closed after every other error, and where a new one may
// reach a better server: after READONLY, LOADING, MASTERDOWN and their kind.
//
// # Concurrency
//
// A [Store] may be used by any goroutine; one Apply runs at a time and the others
// wait. Arguments and reply buffers are reused between calls: that is why no call
// is ever left running behind (redigo's DoContext would).
package redisstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/hanzoai/limiters/internal/redisurl"
	"github.com/hanzoai/limiters/internal/scriptcall"
	"github.com/hanzoai/limiters/lua"
	"github.com/hanzoai/limiters/ratelimit/store"
)

// errClosed is the cause of attempts after Close.
var errClosed = errors.New("redisstore: closed")

// A Store is one Redis, or one database of it.
type Store struct {
	pool     *redis.Pool       // immutable
	dialer   *dialer           // immutable; nil for a pool of the caller's
	timeouts Timeouts          // immutable
	warn     func(text string) // immutable once in use; may be nil

	mu      sync.Mutex
	closed  bool               // guarded by mu
	probed  bool               // guarded by mu; see split.go
	request scriptcall.Request // guarded by mu
}

// Open returns a store over a pool of its own, which Close closes. It does not
// connect.
func Open(target redisurl.Target, options Options) *Store {
	d := newDialer(target, options)
	s := New(d.pool(), options.Timeouts)
	s.dialer, s.warn = d, options.Warn
	return s
}

// New returns a store over the caller's pool, which stays the caller's to close,
// after the store. Its connections must implement [redis.ConnWithTimeout], as
// redigo's do, and should have a write timeout.
func New(pool *redis.Pool, timeouts Timeouts) *Store {
	return &Store{pool: pool, timeouts: timeouts.withDefaults()}
}

// Warn is [Options.Warn] for a store over a caller's pool. It is called before the first
// Apply, and returns the store.
func (s *Store) Warn(warn func(text string)) *Store {
	s.warn = warn
	return s
}

// Close waits for a running Apply, ends the store and, if it is the store's, the
// pool. It may be called more than once.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	if s.dialer != nil {
		return s.pool.Close()
	}
	return nil
}

// Apply implements [store.Store]. Every error is an [*store.Error].
func (s *Store) Apply(ctx context.Context, batch *store.Batch, reply *store.Reply) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return &store.Error{Fate: store.NotSent, Step: store.StepConnect, Cause: store.CauseClosed, Err: errClosed}
	}
	conn, err := s.connect(ctx)
	if err != nil {
		return failedConnect(err)
	}
	defer func() { _ = conn.Close() }() // back to the pool; what went wrong is known by now
	deadline := time.Now().Add(max(s.timeouts.Reply, batch.Patience))
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	defer s.interruptible(ctx)()
	if err := s.attempt(ctx, conn, deadline, batch, reply); err != nil {
		return canceled(ctx, err)
	}
	s.probe(conn, batch)
	return nil
}

// interruptible has the end of ctx end what is done on a connection of the store's own,
// until the function that it returns is called.
func (s *Store) interruptible(ctx context.Context) (stop func()) {
	if s.dialer == nil {
		return func() {}
	}
	if g := s.dialer.current.Load(); g != nil {
		stopped := context.AfterFunc(ctx, g.interrupt)
		return func() { stopped() }
	}
	return func() {}
}

// canceled names the error of an attempt that the end of ctx cut short.
func canceled(ctx context.Context, err *store.Error) *store.Error {
	if err.Cause == store.CauseTimeout && errors.Is(ctx.Err(), context.Canceled) {
		err.Cause = store.CauseCanceled
	}
	return err
}

// expect says how many elements the answers to the next request may hold. It requires
// mu.
func (s *Store) expect(elements int) {
	if s.dialer == nil {
		return
	}
	if g := s.dialer.current.Load(); g != nil {
		g.asked = elements
	}
}

// connect takes a connection from the pool, within the connect timeout.
func (s *Store) connect(ctx context.Context) (conn redis.Conn, err error) {
	defer func() {
		// A caller's pool that is closed meanwhile may panic in redigo.
		if p := recover(); p != nil {
			err = fmt.Errorf("redisstore: the pool panicked: %v", p)
		}
	}()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	bounded, cancel := context.WithTimeout(ctx, s.timeouts.Connect)
	defer cancel()
	conn, err = s.pool.GetContext(bounded)
	if err != nil {
		return nil, err
	}
	if err := conn.Err(); err != nil {
		drop(conn)
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// attempt sends the batch, by EVAL if the server does not know the script, and
// reads the answer. The connection is dropped unless its state is certain.
func (s *Store) attempt(ctx context.Context, conn redis.Conn, deadline time.Time, batch *store.Batch, reply *store.Reply) (failed *store.Error) {
	keep := false
	defer func() {
		// redigo allocates what a reply's length says, and a length may lie.
		if p := recover(); p != nil {
			failed = &store.Error{
				Fate: store.Unknown, Step: store.StepReply, Cause: store.CauseProtocol,
				Err: fmt.Errorf("redisstore: reading the reply panicked: %v", p),
			}
		}
		if !keep {
			drop(conn)
		}
	}()
	if err := ctx.Err(); err != nil {
		keep = true
		return failedConnect(err)
	}
	defer s.request.Release()
	args := s.request.Encode(batch)
	s.expect(scriptcall.MostElements(args))

	args[0] = boxedSHA
	raw, step, err := call(conn, deadline, "EVALSHA", args)
	if isNoScript(err) {
		args[0] = boxedSource
		raw, step, err = call(conn, deadline, "EVAL", args)
	}
	if err != nil {
		failed, keep = failedCall(step, err, batch)
		return failed
	}
	if err := scriptcall.Decode(raw, batch, reply); err != nil {
		return &store.Error{Fate: store.Unknown, Step: store.StepDecode, Cause: store.CauseMalformed, Err: err}
	}
	keep = true
	return nil
}

// call sends one command and waits for its reply until the deadline. The step is
// the one that failed.
func call(conn redis.Conn, deadline time.Time, command string, args []any) (raw any, step string, err error) {
	if err := conn.Send(command, args...); err != nil {
		return nil, store.StepSend, err
	}
	if err := conn.Flush(); err != nil {
		return nil, store.StepSend, err
	}
	// Zero would mean no timeout at all.
	raw, err = redis.ReceiveWithTimeout(conn, max(time.Until(deadline), time.Nanosecond))
	return raw, store.StepReply, err
}

// drop makes the connection's error permanent, so that its pool discards it when
// it is closed: reading beyond the answers ends in a timeout. Replies that are
// still buffered are read first, of which there are fewer than bytes in a buffer.
func drop(conn redis.Conn) {
	defer func() { _ = recover() }() // see attempt
	for range 4096 {
		if conn.Err() != nil {
			return
		}
		_, _ = redis.ReceiveWithTimeout(conn, time.Nanosecond)
	}
}

// The script's name and text, boxed once.
var (
	boxedSHA    any = lua.SHA1
	boxedSource any = lua.Source
)
