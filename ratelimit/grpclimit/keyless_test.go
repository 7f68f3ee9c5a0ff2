package grpclimit

// This file makes calls that have no key, and ends others in unusual ways.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/hanzoai/limiters/ratelimit"
)

// A call that is refused names the metadata that the key would have been made of; one whose
// key function fails ends with the code that fits, never with OK.
func TestWhatAKeylessCallEndsWith(t *testing.T) {
	t.Parallel()
	lim, _ := newLimiter(t, nil)
	for i, row := range []struct {
		key  KeyFunc
		want codes.Code
		text string
	}{
		{Metadata("x-api-key"), codes.InvalidArgument, "the metadata x-api-key is missing"},
		{Prefixed("key:", Metadata("x-api-key")), codes.InvalidArgument, "the metadata x-api-key is missing"},
		{func(context.Context, Call) (string, error) { return "", nil }, codes.InvalidArgument, "no key"},
		{func(context.Context, Call) (string, error) { return "", errors.New("hunter2") }, codes.InvalidArgument, "cannot be told"},
		{func(context.Context, Call) (string, error) { return "", fmt.Errorf("x: %w", context.Canceled) }, codes.Canceled, ""},
		{func(context.Context, Call) (string, error) { return "", context.DeadlineExceeded }, codes.DeadlineExceeded, ""},
		{func(context.Context, Call) (string, error) { return "", status.Error(codes.PermissionDenied, "mine") }, codes.PermissionDenied, "mine"},
		{func(context.Context, Call) (string, error) { return "", okError{} }, codes.InvalidArgument, "cannot be told"},
	} {
		limit, err := New(lim, row.key)
		if err != nil {
			t.Fatal(err)
		}
		ctx := metadata.NewIncomingContext(t.Context(), nil)
		_, err = limit.Unary(ctx, nil, &grpc.UnaryServerInfo{FullMethod: "/a.B/C"}, func(context.Context, any) (any, error) {
			t.Errorf("row %d: the handler was called", i)
			return nil, nil
		})
		if err == nil || status.Code(err) != row.want || !strings.Contains(err.Error(), row.text) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("row %d: %v, want %v with %q", i, err, row.want, row.text)
		}
	}
	if err := error(&emptyKeyError{"x"}); !errors.Is(err, ErrEmptyKey) {
		t.Error("a call without its metadata is not ErrEmptyKey")
	}
}

// An okError is an error that says that nothing went wrong.
type okError struct{}

func (okError) Error() string              { return "ok" }
func (okError) GRPCStatus() *status.Status { return status.New(codes.OK, "") }

// Whatever WithLimited's function returns, a limited call ends with an error, and no handler
// gets a nil context.
func TestALimitedCallNeverPasses(t *testing.T) {
	t.Parallel()
	for i, limited := range []func(ratelimit.Decision) error{
		nil,
		func(ratelimit.Decision) error { return nil },
		func(ratelimit.Decision) error { return status.Error(codes.OK, "") },
		func(ratelimit.Decision) error { return okError{} },
	} {
		lim, _ := newLimiter(t, func(cfg *ratelimit.Config) { cfg.GlobalThreshold = 0 })
		limit, err := New(lim, func(context.Context, Call) (string, error) { return "k", nil }, WithLimited(limited))
		if err != nil {
			t.Fatal(err)
		}
		_, err = limit.Unary(t.Context(), nil, &grpc.UnaryServerInfo{FullMethod: "/a.B/C"}, func(context.Context, any) (any, error) {
			t.Errorf("row %d: the handler was called", i)
			return nil, nil
		})
		if status.Code(err) != codes.ResourceExhausted {
			t.Errorf("row %d: %v, want ResourceExhausted", i, err)
		}
		err = limit.Stream(nil, &openStream{ctx: t.Context()}, &grpc.StreamServerInfo{FullMethod: "/a.B/D"}, func(any, grpc.ServerStream) error {
			t.Errorf("row %d: the stream's handler was called", i)
			return nil
		})
		if status.Code(err) != codes.ResourceExhausted {
			t.Errorf("row %d: the stream ends with %v, want ResourceExhausted", i, err)
		}
	}
}

// An openStream is a stream that nothing is received on.
type openStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s *openStream) Context() context.Context   { return s.ctx }
func (*openStream) SetTrailer(metadata.MD)       {}
func (*openStream) SetHeader(metadata.MD) error  { return nil }
func (*openStream) SendHeader(metadata.MD) error { return nil }

func TestHealthChecksPass(t *testing.T) {
	t.Parallel()
	for method, want := range map[string]bool{
		"/grpc.health.v1.Health/Check": true, "/grpc.health.v1.Health/Watch": true,
		"/grpc.health.v1.HealthX/Check": false, "/grpc.health.v1/Health": false, "/mine.Health/Check": false, "": false,
	} {
		if got := Health(t.Context(), Call{Method: method}); got != want {
			t.Errorf("Health(%q) = %t", method, got)
		}
	}
}
