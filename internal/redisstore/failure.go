// This file says what a failed attempt tells: whether the batch can have been
// applied, and whether the connection can be used again.
//
// Denied must be certain. The script sets the sequence key first, and after that
// it raises nothing; so an error that Redis itself words is of a request that had
// no effect. Any other text may be a proxy's that lost sight of one that had.

package redisstore

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/gomodule/redigo/redis"

	"github.com/hanzoai/limiters/ratelimit/store"
)

// A refusal is an error reply of which it is certain that nothing was applied.
type refusal struct {
	cause string
	keep  bool // the connection is as good as a new one would be
}

// refusals are the error codes of Redis and Valkey that deny a request as a whole.
var refusals = map[string]refusal{
	"NOSCRIPT":   {store.CauseOther, true}, // to an EVAL: a proxy's
	"OOM":        {store.CauseOutOfMemory, true},
	"NOREPLICAS": {store.CauseNoReplicas, true},
	"MISCONF":    {store.CauseMisconf, true},
	"BUSY":       {store.CauseBusy, true},
	"NOPERM":     {store.CausePermission, true},
	"NOAUTH":     {store.CauseAuth, false},
	"WRONGPASS":  {store.CauseAuth, false},
	"DENIED":     {store.CauseAuth, false}, // protected mode
	"READONLY":   {store.CauseReadOnly, false},
	"LOADING":    {store.CauseLoading, false},
	"MASTERDOWN": {store.CauseMasterDown, false},

	"CLUSTERDOWN": {store.CauseCluster, false},
	"CROSSSLOT":   {store.CauseCluster, true},
	"MOVED":       {store.CauseCluster, false},
	"ASK":         {store.CauseCluster, false},
	"TRYAGAIN":    {store.CauseCluster, true},
	"REDIRECT":    {store.CauseCluster, false},
}

// phrases are refusals that carry no code of their own.
var phrases = []struct {
	prefix string
	refusal
}{
	{"max number of clients", refusal{store.CauseMaxClients, false}},
	{"Protocol error: unauthenticated", refusal{store.CauseAuth, false}},
	{"The user executing the script can't", refusal{store.CausePermission, true}}, // Redis 6.2
	{"unknown command `EVAL", refusal{store.CauseOther, true}},
	{"unknown command 'EVAL", refusal{store.CauseOther, true}},
}

// failedConnect is the error of an attempt that never left this process.
func failedConnect(err error) *store.Error {
	return &store.Error{Fate: store.NotSent, Step: store.StepConnect, Cause: causeOf(err), Err: err}
}

// failedCall is the error of an attempt that was, or may have been, sent, and
// whether its connection can be kept.
func failedCall(step string, err error) (failed *store.Error, keep bool) {
	if r, ok := refusalOf(err); ok {
		return &store.Error{Fate: store.Denied, Step: step, Cause: r.cause, Err: err}, r.keep
	}
	return &store.Error{Fate: store.Unknown, Step: step, Cause: causeOf(err), Err: err}, false
}

// isNoScript reports that the server does not know the script.
func isNoScript(err error) bool {
	text, ok := replyText(err)
	return ok && firstWord(text) == "NOSCRIPT"
}

// refusalOf returns what kind of refusal an error reply is, if it is a known one.
func refusalOf(err error) (refusal, bool) {
	text, ok := replyText(err)
	if !ok {
		return refusal{}, false
	}
	if r, ok := refusals[firstWord(text)]; ok {
		return r, true
	}
	for _, p := range phrases {
		if strings.HasPrefix(text, p.prefix) {
			return p.refusal, true
		}
	}
	return refusal{}, false
}

// replyText is the text of an error reply without what Redis 6.2 and proxies put
// before it; false if err is no error reply.
func replyText(err error) (string, bool) {
	var reply redis.Error
	if !errors.As(err, &reply) {
		return "", false
	}
	text := strings.TrimPrefix(string(reply), "ERR ")
	// Redis 6.2: "Error running script (call to f_<sha>): @user_script:48: @user_script: 48: -OOM …"
	if rest, ok := strings.CutPrefix(text, "Error running script (call to f_"); ok {
		if _, raised, ok := strings.Cut(rest, "): "); ok {
			text = raised
		}
	}
	for strings.HasPrefix(text, "@user_script:") {
		line, rest, _ := strings.Cut(strings.TrimPrefix(text, "@user_script:"), ": ")
		if strings.Trim(line, " 0123456789") != "" {
			break
		}
		text = rest
	}
	return strings.TrimPrefix(text, "-"), true
}

// firstWord is the text up to its first space.
func firstWord(text string) string {
	word, _, _ := strings.Cut(text, " ")
	return word
}

// causeOf names an error by one of the store's causes.
func causeOf(err error) string {
	if r, ok := refusalOf(err); ok {
		return r.cause
	}
	if text, ok := replyText(err); ok {
		if strings.HasPrefix(text, "invalid password") || strings.HasPrefix(text, "AUTH") {
			return store.CauseAuth
		}
		return store.CauseOther
	}
	var network net.Error
	switch {
	case errors.Is(err, context.Canceled):
		return store.CauseCanceled
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return store.CauseTimeout
	case errors.Is(err, redis.ErrPoolExhausted):
		return store.CausePoolExhausted
	case isTLS(err):
		return store.CauseTLS
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH),
		errors.Is(err, syscall.ENOENT), errors.As(err, new(*net.DNSError)):
		return store.CauseUnreachable
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET),
		errors.Is(err, syscall.EPIPE), errors.Is(err, net.ErrClosed):
		return store.CauseClosed
	case strings.HasPrefix(err.Error(), "redigo: ") && strings.Contains(err.Error(), "possible server error"):
		return store.CauseProtocol
	}
	return store.CauseOther
}

// isTLS reports that a handshake or a certificate failed.
func isTLS(err error) bool {
	var alert *net.OpError // crypto/tls reports an alert of either side as one
	if errors.As(err, &alert) && (alert.Op == "remote error" || alert.Op == "local error") {
		return true
	}
	return errors.As(err, new(tls.RecordHeaderError)) ||
		errors.As(err, new(*tls.CertificateVerificationError)) || errors.As(err, new(x509.UnknownAuthorityError)) ||
		errors.As(err, new(x509.HostnameError)) || errors.As(err, new(x509.CertificateInvalidError))
}
