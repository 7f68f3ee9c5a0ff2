package goredis

// This file says what a failed attempt tells: whether the batch can have been
// applied. Which error replies deny a batch for certain is scriptcall's knowledge.

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/hanzoai/limiters/internal/scriptcall"
	"github.com/hanzoai/limiters/ratelimit/store"
)

// failure is the error of an attempt. Nodes that redirected it before the one that
// failed refused it, so only the last error counts.
func failure(err error, sent bool) *store.Error {
	if !sent || neverSent(err) {
		return &store.Error{Fate: store.NotSent, Step: store.StepConnect, Cause: causeOf(err), Err: err}
	}
	step := store.StepReply
	var network *net.OpError
	if errors.As(err, &network) && network.Op == "write" {
		step = store.StepSend
	}
	if text, ok := replyText(err); ok {
		if r, ok := scriptcall.RefusalOf(text); ok {
			return &store.Error{Fate: store.Denied, Step: step, Cause: r.Cause, Err: err}
		}
	}
	return &store.Error{Fate: store.Unknown, Step: step, Cause: causeOf(err), Err: err}
}

// neverSent reports that an error alone tells that no connection was had: it comes
// from dialling, from this side of a TLS handshake, or from the client's pool.
func neverSent(err error) bool {
	var network *net.OpError
	if errors.As(err, &network) && network.Op == "dial" {
		return true
	}
	return errors.As(err, new(tls.RecordHeaderError)) || errors.As(err, new(*tls.CertificateVerificationError)) ||
		errors.As(err, new(x509.UnknownAuthorityError)) || errors.As(err, new(x509.HostnameError)) ||
		errors.As(err, new(x509.CertificateInvalidError)) ||
		errors.Is(err, redis.ErrPoolExhausted) || errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrClosed)
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
	if cause := scriptcall.CauseOfTransport(err); cause != store.CauseOther {
		return cause
	}
	switch {
	case errors.Is(err, redis.ErrPoolExhausted), errors.Is(err, redis.ErrPoolTimeout):
		return store.CausePoolExhausted
	case errors.Is(err, redis.ErrClosed):
		return store.CauseClosed
	case strings.HasPrefix(err.Error(), "redis: can't parse"), strings.HasPrefix(err.Error(), "redis: invalid reply"):
		return store.CauseProtocol
	}
	return store.CauseOther
}
