// This file says what a failed attempt tells: whether the batch can have been
// applied, and whether the connection can be used again. Which error replies deny
// a batch for certain is scriptcall's knowledge.

package redisstore

import (
	"errors"
	"fmt"
	"strings"

	"github.com/gomodule/redigo/redis"

	"github.com/hanzoai/limiters/internal/scriptcall"
	"github.com/hanzoai/limiters/ratelimit/store"
)

// failedConnect is the error of an attempt that never left this process.
func failedConnect(err error) *store.Error {
	return &store.Error{Fate: store.NotSent, Step: store.StepConnect, Cause: causeOf(err), Err: said(err)}
}

// failedCall is the error of an attempt that was, or may have been, sent, and
// whether its connection can be kept.
func failedCall(step string, err error, batch *store.Batch) (failed *store.Error, keep bool) {
	if r, ok := refusalOf(err); ok {
		return &store.Error{Fate: store.Denied, Step: step, Cause: r.Cause, Err: saidOf(batch, err)}, r.Keep
	}
	return &store.Error{Fate: store.Unknown, Step: step, Cause: causeOf(err), Err: saidOf(batch, err)}, false
}

// saidOf is said, without the keys of the batch.
func saidOf(batch *store.Batch, err error) error {
	if _, ok := replyText(err); !ok {
		return err
	}
	return said(err, scriptcall.Keys(batch)...)
}

// clusterHint adds to a cluster's reply what to do.
const clusterHint = "a Redis Cluster: use the module ratelimit/goredis, or a HashTag"

// said is an error as it may be shown: without what a server quoted, and without these
// secrets.
func said(err error, secrets ...string) error {
	var reply redis.Error
	if !errors.As(err, &reply) {
		return err
	}
	shown := redis.Error(scriptcall.Shown(string(reply), secrets...))
	before, _ := strings.CutSuffix(err.Error(), string(reply))
	switch {
	case scriptcall.IsCluster(string(shown)) && !strings.HasSuffix(err.Error(), clusterHint+")"):
		return fmt.Errorf("%w (%s)", shown, clusterHint)
	case shown == reply:
		return err
	case before == "" || before == err.Error():
		return shown
	}
	return fmt.Errorf("%s%w", before, shown)
}

// isNoScript reports that the server does not know the script.
func isNoScript(err error) bool {
	text, ok := replyText(err)
	return ok && scriptcall.IsNoScript(text)
}

// refusalOf returns what kind of refusal an error reply is, if it is a known one.
func refusalOf(err error) (scriptcall.Refusal, bool) {
	text, ok := replyText(err)
	if !ok {
		return scriptcall.Refusal{}, false
	}
	return scriptcall.RefusalOf(text)
}

// replyText is the text of an error reply; false if err is none.
func replyText(err error) (string, bool) {
	var reply redis.Error
	ok := errors.As(err, &reply)
	return string(reply), ok
}

// causeOf names an error by one of the store's causes.
func causeOf(err error) string {
	if text, ok := replyText(err); ok {
		return scriptcall.CauseOfReply(text)
	}
	if cause := scriptcall.CauseOfTransport(err); cause != store.CauseOther {
		return cause
	}
	switch {
	case errors.Is(err, errGone):
		return store.CauseClosed
	case errors.Is(err, errAnnounced):
		return store.CauseProtocol
	case errors.Is(err, redis.ErrPoolExhausted):
		return store.CausePoolExhausted
	case err != nil && strings.Contains(err.Error(), "redigo: ") && strings.Contains(err.Error(), "possible server error"):
		return store.CauseProtocol
	}
	return store.CauseOther
}
