package goredis

// This file is the store contract on a go-redis client: one EVALSHA of lua/sync.lua
// per batch.

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hanzoai/limiters/internal/scriptcall"
	"github.com/hanzoai/limiters/ratelimit/store"
)

// A Store is one partition's counters, behind a go-redis client. It may be used by
// any goroutine; one Apply runs at a time and the others wait.
//
// Apply returns when its ctx ends, whatever the client's options. What it leaves behind
// ends within the client's own timeouts, and the next Apply waits for that, as long as
// its ctx allows.
type Store struct {
	client redis.UniversalClient // immutable

	turn    chan struct{}      // holds one value while no call is under way
	request scriptcall.Request // of the holder of turn
	args    []any              // of the holder of turn; of the command, between calls empty
}

var _ store.Store = (*Store)(nil)

// New returns a store over the caller's client, which stays the caller's to close,
// after the limiter. It does not connect.
//
// The client is a [*redis.Client], of NewClient or NewFailoverClient, or a
// [*redis.ClusterClient]; no other sends a command exactly once if told to. Its
// read and write timeouts must not be switched off, or a hung server would hold
// the partition's tick for ever. On a cluster all keys of a partition must share a
// hash tag, as [Partitions] sees to.
func New(client redis.UniversalClient) (*Store, error) {
	if err := check(client); err != nil {
		return nil, err
	}
	s := &Store{client: client, turn: make(chan struct{}, 1)}
	s.turn <- struct{}{}
	return s, nil
}

// check says what makes a client unfit.
func check(client redis.UniversalClient) error {
	switch c := client.(type) {
	case *redis.Client:
		if c == nil {
			return errors.New("goredis: the client is nil")
		}
		if o := c.Options(); o.ReadTimeout <= 0 || o.WriteTimeout <= 0 {
			return errUnbounded
		}
	case *redis.ClusterClient:
		if c == nil {
			return errors.New("goredis: the client is nil")
		}
		if o := c.Options(); o.ReadTimeout <= 0 || o.WriteTimeout <= 0 {
			return errUnbounded
		}
	default:
		return fmt.Errorf("goredis: the client is a %T, want a *redis.Client or a *redis.ClusterClient", client)
	}
	return nil
}

var errUnbounded = errors.New("goredis: the client's ReadTimeout or WriteTimeout is switched off; a hung server would hold a tick for ever")

// Apply implements [store.Store]. Every error is an [*store.Error].
func (s *Store) Apply(ctx context.Context, batch *store.Batch, reply *store.Reply) error {
	if err := ctx.Err(); err != nil {
		return s.failed(err, false)
	}
	select {
	case <-s.turn:
	case <-ctx.Done():
		return s.failed(ctx.Err(), false)
	}
	raw, err := s.attempt(ctx, batch)
	if err != nil {
		return err
	}
	if err := scriptcall.Decode(raw, batch, reply); err != nil {
		return &store.Error{Fate: store.Unknown, Step: store.StepDecode, Cause: store.CauseMalformed, Err: err}
	}
	return nil
}

// patient is the client, or a copy that waits as long as the patience for a reply, on
// the same connections. A cluster's client cannot: it waits as its options say.
func patient(client redis.UniversalClient, patience time.Duration) redis.UniversalClient {
	if c, ok := client.(*redis.Client); ok && patience > c.Options().ReadTimeout {
		return c.WithTimeout(patience)
	}
	return client
}

// attempt sends the batch and waits for its answer, or for the end of ctx. It requires
// the turn, which it gives back, perhaps only after it has returned.
func (s *Store) attempt(ctx context.Context, batch *store.Batch) (raw any, err error) {
	s.args = append(s.args[:0], nil)
	s.args = append(s.args, s.request.Encode(batch)...)
	c := newCall(s.args)
	client := patient(s.client, batch.Patience)
	answered, left := make(chan error), make(chan struct{})
	go func() { // ends within the client's timeouts
		err := run(ctx, client, c)
		s.request.Release()
		clear(s.args)
		s.turn <- struct{}{}
		select {
		case answered <- err:
		case <-left:
		}
	}()
	select {
	case err := <-answered:
		if err != nil {
			failed := s.failed(err, c.mayBeSent())
			failed.Err = explain(failed, s.client, batch)
			return nil, failed
		}
		return c.answer.value(), nil
	case <-ctx.Done():
		close(left)
		return nil, s.failed(ctx.Err(), !c.leave())
	}
}

// run calls the script, with its text if the server does not know it.
func run(ctx context.Context, client redis.UniversalClient, c *call) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errPanicked, p)
		}
	}()
	err = client.Process(ctx, c.prepare(ctx, byHash))
	if text, ok := replyText(err); ok && scriptcall.IsNoScript(text) {
		err = client.Process(ctx, c.prepare(ctx, byText))
	}
	return err
}

var errPanicked = errors.New("goredis: the client panicked")

// failed is the error of an attempt. On a cluster it has the client read again which
// node serves which slot, as the client itself does only after some refusals, and else
// once a minute: its old node may be dead.
func (s *Store) failed(err error, sent bool) *store.Error {
	failed := failure(err, sent)
	cluster, ok := s.client.(*redis.ClusterClient)
	if ok && maybeElsewhere(failed.Cause) {
		cluster.ReloadState(context.Background())
	}
	return failed
}

// maybeElsewhere reports that an attempt failed for a cause that another node may not
// have.
func maybeElsewhere(cause string) bool {
	switch cause {
	case store.CauseTimeout, store.CauseClosed, store.CauseUnreachable, store.CausePoolExhausted, store.CauseOther,
		store.CauseCluster, store.CauseReadOnly, store.CauseMasterDown, store.CauseLoading:
		return true
	}
	return false
}
