package goredis

// This file says what a failed attempt tells: whether the batch can have been
// applied, and what went wrong. Which error replies deny a batch for certain is
// scriptcall's knowledge.

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/hanzoai/limiters/internal/scriptcall"
	"github.com/hanzoai/limiters/ratelimit/store"
)

// failure is the error of an attempt. Nodes that redirected it before the one that
// failed refused it, so only the last error counts.
func failure(err error, sent bool) *store.Error {
	if text, ok := replyText(err); ok && !sent {
		// A node's refusal of the batch, or a server's of the connection; both tell
		// that nothing was applied.
		if r, ok := scriptcall.RefusalOf(text); ok && !connecting(err) {
			return &store.Error{Fate: store.Denied, Step: store.StepReply, Cause: r.Cause, Err: err}
		}
	}
	if !sent {
		return &store.Error{Fate: store.NotSent, Step: store.StepConnect, Cause: causeOf(err), Err: err}
	}
	step := store.StepReply
	var network *net.OpError
	if errors.As(err, &network) && network.Op == "write" {
		step = store.StepSend
	}
	return &store.Error{Fate: store.Unknown, Step: step, Cause: causeOf(err), Err: err}
}

// connecting reports that an error reply is to the preparation of a connection: the
// client wraps those.
func connecting(err error) bool {
	_, direct := err.(redis.Error)
	return !direct
}

// replyText is the text of an error reply; false if err is none.
func replyText(err error) (string, bool) {
	var reply redis.Error
	if !errors.As(err, &reply) {
		return "", false
	}
	return reply.Error(), true
}

// causeOf names an error by one of the store's causes.
func causeOf(err error) string {
	if errors.Is(err, redis.Nil) {
		return store.CauseMalformed // a null where an array must be
	}
	if text, ok := replyText(err); ok {
		return scriptcall.CauseOfReply(text)
	}
	if peer := foreign(err); peer != nil {
		return scriptcall.CauseOfTransport(peer)
	}
	if cause := scriptcall.CauseOfTransport(err); cause != store.CauseOther {
		return cause
	}
	switch {
	case errors.Is(err, redis.ErrPoolExhausted), errors.Is(err, redis.ErrPoolTimeout):
		return store.CausePoolExhausted
	case errors.Is(err, redis.ErrClosed):
		return store.CauseClosed
	case errors.Is(err, errAnswer), errors.Is(err, errPanicked), unparsed(err):
		return store.CauseProtocol
	}
	return store.CauseOther
}

// unparsed reports that the client could not read what a server sent, which it quotes.
func unparsed(err error) bool {
	text := err.Error()
	return strings.Contains(text, "redis: can't parse") || strings.Contains(text, "redis: invalid reply")
}

// foreign is the error that says what else than Redis answered, if the client quotes
// something known; else nil.
func foreign(err error) error {
	if !unparsed(err) {
		return nil
	}
	text := err.Error()
	if i := strings.IndexByte(text, '"'); i >= 0 {
		if quoted, err := strconv.QuotedPrefix(text[i:]); err == nil {
			said, _ := strconv.Unquote(quoted)
			return scriptcall.ForeignPeer([]byte(said))
		}
	}
	return nil
}

// explain is what failed as it may be shown: without what a server quoted, and with
// what it may mean.
func explain(failed *store.Error, client redis.UniversalClient, batch *store.Batch) error {
	err := failed.Err
	if text, ok := replyText(err); ok {
		return said(err, text, client, batch)
	}
	if peer := foreign(err); peer != nil {
		return peer
	}
	switch {
	case unparsed(err):
		return errors.New(scriptcall.Shown(err.Error()))
	case failed.Fate == store.NotSent && !errors.Is(err, redis.ErrClosed):
		return scriptcall.Explain(err, encrypted(client))
	}
	return err
}

// said is an error reply as it may be shown.
func said(err error, text string, client redis.UniversalClient, batch *store.Batch) error {
	shown := replyError(scriptcall.Shown(text, scriptcall.Keys(batch)...))
	if scriptcall.IsCluster(text) {
		if _, ok := client.(*redis.ClusterClient); ok {
			return fmt.Errorf("%w (all keys of a partition need one hash tag: take Partitions, or set HashTag)", shown)
		}
		return fmt.Errorf("%w (a Redis Cluster: take a ClusterClient, and Partitions)", shown)
	}
	before, ok := strings.CutSuffix(err.Error(), text)
	switch {
	case string(shown) == text:
		return err
	case !ok || before == "":
		return shown
	}
	return fmt.Errorf("%s%w", before, shown)
}

// encrypted reports whether the client's connections use TLS.
func encrypted(client redis.UniversalClient) bool {
	switch c := client.(type) {
	case *redis.Client:
		return c.Options().TLSConfig != nil
	case *redis.ClusterClient:
		return c.Options().TLSConfig != nil
	}
	return false
}
