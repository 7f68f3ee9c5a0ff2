package grpclimit

// This file makes keys of what a call says about its sender.

import (
	"context"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/hanzoai/limiters/ratelimit/httplimit"
)

// Metadata returns a key function that answers a value of the call's metadata,
// without space around it: empty if there is none, and an error with the code
// InvalidArgument if there are several.
//
// What clients can make up, they can vary to escape the limit: use a value that was
// verified before, or that a proxy of yours sets.
func Metadata(name string) KeyFunc {
	return func(ctx context.Context, _ Call) (string, error) {
		switch values := metadata.ValueFromIncomingContext(ctx, name); len(values) {
		case 0:
			if missing, ok := ctx.Value(missingKey{}).(*string); ok {
				*missing = name
			}
			return "", nil
		case 1:
			return strings.TrimSpace(values[0]), nil
		default:
			return "", status.Errorf(codes.InvalidArgument, "more than one value of %s", name)
		}
	}
}

// ClientIP returns a key function that answers the client's IP address, as
// [httplimit.ClientIP] does: of IPv4 the whole address, of IPv6 its network. Proxies
// that are trusted pass the client's on in the metadata x-forwarded-for,
// forwarded or x-real-ip. The error names what is wrong with p.
func ClientIP(p httplimit.Proxies) (KeyFunc, error) {
	clients, err := httplimit.NewClients(p)
	if err != nil {
		return nil, err
	}
	name := strings.ToLower(p.Forwarding.Field())
	return func(ctx context.Context, _ Call) (string, error) {
		remote := ""
		if who, ok := peer.FromContext(ctx); ok && who.Addr != nil {
			remote = who.Addr.String()
		}
		return clients.Key(remote, metadata.ValueFromIncomingContext(ctx, name))
	}, nil
}

// Prefixed returns a key function that puts prefix before the keys of key, so that
// one limiter can count users and addresses, say, without mixing them up. An empty
// key stays empty. Overrides are by the whole key, the prefix included.
func Prefixed(prefix string, key KeyFunc) KeyFunc {
	return func(ctx context.Context, call Call) (string, error) {
		k, err := key(ctx, call)
		if err != nil || k == "" {
			return "", err
		}
		return prefix + k, nil
	}
}

// missingKey is the key of a *string in a context: the metadata that was not there.
type missingKey struct{}

// An emptyKeyError is an [ErrEmptyKey] that says what the key is made of. It shows the name,
// no value.
type emptyKeyError struct{ missing string }

func (e *emptyKeyError) Error() string { return e.GRPCStatus().String() }

// GRPCStatus is the status with which the call ends.
func (e *emptyKeyError) GRPCStatus() *status.Status {
	return status.New(codes.InvalidArgument, "the call has no key to be counted under: the metadata "+e.missing+" is missing")
}

// Is reports whether target is [ErrEmptyKey].
func (e *emptyKeyError) Is(target error) bool { return target == ErrEmptyKey }

// emptyKey returns why a call's key is empty. It asks the key function again: only calls that
// are refused pay for that.
func emptyKey(ctx context.Context, key KeyFunc, call Call) error {
	missing := ""
	if k, err := key(context.WithValue(ctx, missingKey{}, &missing), call); err != nil || k != "" || missing == "" {
		return ErrEmptyKey
	}
	return &emptyKeyError{missing}
}
