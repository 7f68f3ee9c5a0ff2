// This file says what a failed attempt tells: whether the batch can have been
// applied, and whether the connection can be used again. Which error replies deny
// a batch for certain is scriptcall's knowledge.

package redisstore

import (
	"errors"
	"strings"

	"github.com/gomodule/redigo/redis"

	"github.com/hanzoai/limiters/internal/scriptcall"
	"github.com/hanzoai/limiters/ratelimit/store"
)

// failedConnect is the error of an attempt that never left this process.
func failedConnect(err error) *store.Error {
	return &store.Error{Fate: store.NotSent, Step: store.StepConnect, Cause: causeOf(err), Err: err}
}

// failedCall is the error of an attempt that was, or may have been, sent, and
// whether its connection can be kept.
func failedCall(step string, err error) (failed *store.Error, keep bool) {
	if r, ok := refusalOf(err); ok {
		return &store.Error{Fate: store.Denied, Step: step, Cause: r.Cause, Err: err}, r.Keep
	}
	return &store.Error{Fate: store.Unknown, Step: step, Cause: causeOf(err), Err: err}, false
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
	case errors.Is(err, redis.ErrPoolExhausted):
		return store.CausePoolExhausted
	case strings.HasPrefix(err.Error(), "redigo: ") && strings.Contains(err.Error(), "possible server error"):
		return store.CauseProtocol
	}
	return store.CauseOther
}
