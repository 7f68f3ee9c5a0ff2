package grpclimit

// This file is the way of a call through the interceptors.

import (
	"context"
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/hanzoai/limiters/internal/group"
	"github.com/hanzoai/limiters/internal/quota"
	"github.com/hanzoai/limiters/ratelimit"
)

// A Call is what is counted: a unary call, the opening of a stream, or a message
// received on one.
type Call struct {
	Method  string // in full: /package.Service/Method
	Message any    // the request, or the message received; nil when a stream is opened
}

// A KeyFunc says whose call it is. The key is what the limiter counts under.
type KeyFunc func(ctx context.Context, call Call) (key string, err error)

// ErrEmptyKey is what a call with an empty key is refused with.
var ErrEmptyKey = status.Error(codes.InvalidArgument, "the call has no key to be counted under")

// An Interceptor asks limiters about calls. It is immutable.
type Interceptor struct {
	*options
	limits   []Limit
	policies []quota.Policy // of the limits
}

// New returns an Interceptor that asks lim about every call, under the key that key
// answers. The error names an option whose value is wrong.
func New(lim *ratelimit.Limiter, key KeyFunc, opts ...Option) (*Interceptor, error) {
	if lim == nil || key == nil {
		return nil, errors.New("grpclimit: New needs a limiter and a key function")
	}
	return interceptorOf([]Limit{{Limiter: lim, Key: key, Policy: "default"}}, opts)
}

// Unary limits unary calls. It is a [grpc.UnaryServerInterceptor].
func (i *Interceptor) Unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	ctx, err := i.ask(ctx, Call{Method: info.FullMethod, Message: req})
	if err != nil {
		return nil, err
	}
	return handler(ctx, req)
}

// Stream limits streams. It is a [grpc.StreamServerInterceptor].
func (i *Interceptor) Stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	if i.messages {
		return handler(srv, &countedStream{ServerStream: stream, interceptor: i, method: info.FullMethod})
	}
	ctx, err := i.ask(stream.Context(), Call{Method: info.FullMethod})
	if err != nil {
		return err
	}
	return handler(srv, &decidedStream{ServerStream: stream, ctx: ctx})
}

// ask decides about a call. It returns the context for its handler, or the status
// with which the call ends.
func (i *Interceptor) ask(ctx context.Context, call Call) (context.Context, error) {
	if i.skip != nil && i.skip(ctx, call) {
		return ctx, nil
	}
	items := make([]group.Item, 0, 8)
	for at := range i.limits {
		l := &i.limits[at]
		key, err := l.Key(ctx, call)
		switch {
		case err != nil && i.keyErrors == Pass, err == nil && key == "" && i.emptyKeys == Pass:
			return ctx, nil
		case err != nil:
			return nil, refused(err)
		case key == "":
			return nil, emptyKey(ctx, l.Key, call)
		}
		units := uint64(1)
		if l.Cost != nil {
			units = l.Cost(ctx, call)
		}
		items = append(items, group.Item{Item: ratelimit.Item{Key: key, Units: units, Limiter: l.Limiter}, Fleet: l.Fleet})
	}
	ds := i.decide(ctx, items)
	if !i.dryRun {
		i.announce(ctx, items, ds)
		if !ds.Allowed() {
			return nil, i.refuse(ds)
		}
	}
	return context.WithValue(ctx, decisionKey{}, ds), nil
}

// decide answers the items. One that this node decides alone is spared what a group costs.
func (i *Interceptor) decide(ctx context.Context, items []group.Item) ratelimit.Decisions {
	if len(items) == 1 && !items[0].Fleet {
		return ratelimit.Decisions{items[0].Limiter.Check(items[0].Key, items[0].Units)}
	}
	return group.Decide(ctx, items)
}

// refused returns the status for a key function's failure: the failure's own, that of a
// context that ended, or one that does not show it.
func refused(err error) error {
	if own, ok := errors.AsType[interface {
		error
		GRPCStatus() *status.Status
	}](err); ok && own.GRPCStatus().Code() != codes.OK { // OK would end the call as if it had been served
		return own
	}
	switch {
	case errors.Is(err, context.Canceled):
		return status.FromContextError(context.Canceled).Err()
	case errors.Is(err, context.DeadlineExceeded):
		return status.FromContextError(context.DeadlineExceeded).Err()
	}
	return status.Error(codes.InvalidArgument, "whose call this is cannot be told")
}

// decisionKey is the key of a call's decisions in its context.
type decisionKey struct{}

// Decision returns the decision by which a call reached its handler: of several
// interceptors that of the innermost, of several limits that of which least is available. ok
// is false if none asked a limiter: the call was skipped, passed without a key, or is a stream
// whose messages are counted.
func Decision(ctx context.Context) (d ratelimit.Decision, ok bool) {
	for _, other := range AllDecisions(ctx) {
		if !ok || other.Remaining() < d.Remaining() {
			d, ok = other, true
		}
	}
	return d, ok
}

// AllDecisions returns the decisions by which a call reached its handler: of several
// interceptors those of the innermost, one for each of its limits, in their order. They are the
// caller's to read, not to change; none if no limiter was asked.
func AllDecisions(ctx context.Context) ratelimit.Decisions {
	ds, _ := ctx.Value(decisionKey{}).(ratelimit.Decisions)
	return ds
}

// A decidedStream is a stream whose opening was decided.
type decidedStream struct {
	grpc.ServerStream
	ctx context.Context
}

// Context returns the stream's context, with the decision.
func (s *decidedStream) Context() context.Context { return s.ctx }

// A countedStream is a stream that asks about every message it receives.
type countedStream struct {
	grpc.ServerStream
	interceptor *Interceptor
	method      string
}

// RecvMsg receives a message into m and fails if the limiter limits it; m then
// holds it all the same.
func (s *countedStream) RecvMsg(m any) error {
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	_, err := s.interceptor.ask(s.Context(), Call{Method: s.method, Message: m})
	return err
}
