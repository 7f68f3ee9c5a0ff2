package scriptcall

// This file names what went wrong below the protocol, and what speaks there instead
// of Redis.

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"

	"github.com/hanzoai/limiters/ratelimit/store"
)

// What answers may be no Redis, or one that wants TLS.
var (
	ErrSpeaksHTTP = errors.New("the server speaks HTTP, not the Redis protocol: another service listens on this port")
	ErrSpeaksTLS  = errors.New("the server speaks TLS on this port, and the client does not")
)

// ForeignPeer returns the error that says what else than Redis sends these first bytes
// of an answer, nil if nothing known does. A few bytes are enough; fewer match nothing.
func ForeignPeer(first []byte) error {
	switch {
	case bytes.HasPrefix(first, []byte("HTTP/")):
		return ErrSpeaksHTTP
	case len(first) >= 2 && first[0] == 0x15 && first[1] == 3: // the record of an alert
		return ErrSpeaksTLS
	}
	return nil
}

// Explain adds to an error of making a connection what it does not say: that TLS may
// be spoken by one side only. A plain server takes a handshake for the beginning of a
// command, and waits for more; a server that expects TLS closes at the first command.
// Nothing may have been answered on the connection before.
func Explain(err error, encrypted bool) error {
	hint := ""
	switch cause := CauseOfTransport(err); {
	case errors.As(err, new(tls.RecordHeaderError)):
		hint = "the server does not speak TLS on this port"
	case encrypted && (cause == store.CauseTimeout || cause == store.CauseClosed):
		hint = "in the TLS handshake: does the server speak TLS on this port?"
	case !encrypted && cause == store.CauseClosed:
		hint = "before any answer: does the server expect TLS on this port?"
	default:
		return err
	}
	return fmt.Errorf("%w (%s)", err, hint)
}

// CauseOfTransport names an error of the network, of TLS or of a context by one of
// the store's causes: CauseOther if it is none of these.
func CauseOfTransport(err error) string {
	var network net.Error
	switch {
	case errors.Is(err, context.Canceled):
		return store.CauseCanceled
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return store.CauseTimeout
	case isTLS(err), errors.Is(err, ErrSpeaksTLS):
		return store.CauseTLS
	case errors.Is(err, ErrSpeaksHTTP):
		return store.CauseProtocol
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH),
		errors.Is(err, syscall.ENOENT), errors.As(err, new(*net.DNSError)):
		return store.CauseUnreachable
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET),
		errors.Is(err, syscall.EPIPE), errors.Is(err, net.ErrClosed), errors.Is(err, io.ErrClosedPipe):
		return store.CauseClosed
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
