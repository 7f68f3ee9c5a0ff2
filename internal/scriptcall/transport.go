package scriptcall

// This file names what went wrong below the protocol.

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"syscall"

	"github.com/hanzoai/limiters/ratelimit/store"
)

// CauseOfTransport names an error of the network, of TLS or of a context by one of
// the store's causes: CauseOther if it is none of these.
func CauseOfTransport(err error) string {
	var network net.Error
	switch {
	case errors.Is(err, context.Canceled):
		return store.CauseCanceled
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return store.CauseTimeout
	case isTLS(err):
		return store.CauseTLS
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
