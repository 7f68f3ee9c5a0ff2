package goredis

// This file is the store contract on a go-redis client: one EVALSHA of lua/sync.lua
// per batch.

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hanzoai/limiters/internal/scriptcall"
	"github.com/hanzoai/limiters/lua"
	"github.com/hanzoai/limiters/ratelimit/store"
)

// A Store is one partition's counters, behind a go-redis client. It may be used by
// any goroutine; one Apply runs at a time and the others wait.
type Store struct {
	client redis.UniversalClient // immutable

	mu      sync.Mutex
	request scriptcall.Request // guarded by mu
	args    []any              // guarded by mu; of the command, between calls empty
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
	return &Store{client: client}, nil
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
func (s *Store) Apply(ctx context.Context, batch *store.Batch, reply *store.Reply) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return failure(err, false)
	}
	defer func() {
		// The client allocates what a reply's length says, and a length may lie.
		if p := recover(); p != nil {
			err = &store.Error{
				Fate: store.Unknown, Step: store.StepReply, Cause: store.CauseProtocol,
				Err: fmt.Errorf("goredis: the client panicked: %v", p),
			}
		}
	}()
	defer s.release()
	s.encode(batch)
	client := patient(s.client, batch.Patience)
	raw, sent, err := s.call(ctx, client, "evalsha", lua.SHA1)
	if text, ok := replyText(err); ok && scriptcall.IsNoScript(text) {
		raw, sent, err = s.call(ctx, client, "eval", lua.Source)
	}
	if err != nil {
		return failure(err, sent)
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

// encode lays out the arguments of the batch, leaving the command and the script to
// call. It requires mu.
func (s *Store) encode(batch *store.Batch) {
	s.args = append(s.args[:0], nil)
	s.args = append(s.args, s.request.Encode(batch)...)
}

// release lets go of the batch's strings. It requires mu.
func (s *Store) release() {
	s.request.Release()
	clear(s.args)
}

// call sends the encoded batch once, to as many nodes as redirect it, and reports
// whether any may have received it. It requires mu.
func (s *Store) call(ctx context.Context, client redis.UniversalClient, command, script string) (raw any, sent bool, err error) {
	s.args[0], s.args[1] = command, script
	c := &call{Cmd: redis.NewCmd(ctx, s.args...)}
	err = client.Process(ctx, c)
	return c.Val(), c.sent, err
}

// A call is a command that a client sends once. Clients answer a redirection by
// sending it to another node: that does not count, for the node before refused it.
type call struct {
	*redis.Cmd
	sent bool // its arguments were read: perhaps it was written
}

// NoRetry makes the client return the first error instead of sending again.
func (c *call) NoRetry() bool { return true }

// Args returns the command's arguments, as a client asks for them to write them. A
// cluster's client reads them once before, to find the slot.
func (c *call) Args() []any {
	c.sent = true
	return c.Cmd.Args()
}
