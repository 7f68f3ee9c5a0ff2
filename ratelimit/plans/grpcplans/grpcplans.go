// Package grpcplans limits gRPC calls by the plans of package plans. A route's pattern names
// calls by their path: POST /package.Service/Method, or /package.Service/ for all of a service.
//
//	limit, err := grpcplans.New(p, map[string]grpclimit.KeyFunc{"user": userOf})
//	…
//	server := grpc.NewServer(
//		grpc.ChainUnaryInterceptor(limit.Unary),
//		grpc.ChainStreamInterceptor(limit.Stream),
//	)
//
// It is a module of its own, so that plans do not bring gRPC with them.
package grpcplans

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/hanzoai/limiters/ratelimit/grpclimit"
	"github.com/hanzoai/limiters/ratelimit/httplimit"
	"github.com/hanzoai/limiters/ratelimit/plans"
)

// An Interceptor asks the plans in force about calls. It is immutable, and safe for concurrent use.
type Interceptor struct {
	plans *plans.Plans
	keys  map[string]grpclimit.KeyFunc
	opts  []grpclimit.Option
}

// ErrBlocked is what a call of a blocked key ends with.
var ErrBlocked = status.Error(codes.PermissionDenied, "the key is blocked")

// New returns an Interceptor for plans. keys are the functions that the file names, beside
// header:NAME (the metadata of that name), ip (the peer's address) and everybody; it may replace ip.
// Calls of a route whose key function is not among them end with Internal. opts are those of
// each route's interceptor; with WithMessages a stream counts its messages by the rules that were in
// force when it began: those of a limiter that a reload closed meanwhile count for this process alone.
func New(p *plans.Plans, keys map[string]grpclimit.KeyFunc, opts ...grpclimit.Option) (*Interceptor, error) {
	if p == nil {
		return nil, errors.New("grpcplans: New needs plans")
	}
	ip, err := grpclimit.ClientIP(httplimit.Proxies{})
	if err != nil {
		return nil, err
	}
	all := map[string]grpclimit.KeyFunc{
		"ip":        ip,
		"everybody": func(context.Context, grpclimit.Call) (string, error) { return "everybody", nil },
	}
	for name, key := range keys {
		if key == nil {
			return nil, fmt.Errorf("grpcplans: the key function %q is nil", name)
		}
		all[name] = key
	}
	return &Interceptor{plans: p, keys: all, opts: opts}, nil
}

// key returns the key function of a name, nil if there is none.
func (i *Interceptor) key(name string) grpclimit.KeyFunc {
	if header, ok := strings.CutPrefix(name, "header:"); ok {
		return grpclimit.Metadata(strings.ToLower(header))
	}
	return i.keys[name]
}

// Unary limits unary calls. It is a [grpc.UnaryServerInterceptor].
func (i *Interceptor) Unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	limit, release, err := i.passage(ctx, grpclimit.Call{Method: info.FullMethod, Message: req})
	defer release()
	if err != nil {
		return nil, err
	}
	if limit == nil {
		release()
		return handler(ctx, req)
	}
	return limit.Unary(ctx, req, info, func(ctx context.Context, req any) (any, error) {
		release()
		return handler(ctx, req)
	})
}

// Stream limits streams. It is a [grpc.StreamServerInterceptor].
func (i *Interceptor) Stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	limit, release, err := i.passage(stream.Context(), grpclimit.Call{Method: info.FullMethod})
	defer release()
	if err != nil {
		return err
	}
	if limit == nil {
		release()
		return handler(srv, stream)
	}
	return limit.Stream(srv, stream, info, func(srv any, stream grpc.ServerStream) error {
		release()
		return handler(srv, stream)
	})
}

// made is what is made of a route.
type made struct {
	limit *grpclimit.Interceptor // nil: it has no limits
	err   error
}

// passage returns the interceptor for a call, nil if it is not limited, and what ends the
// decision, which may be called more than once.
func (i *Interceptor) passage(ctx context.Context, call grpclimit.Call) (limit *grpclimit.Interceptor, release func(), err error) {
	host := ""
	if values := metadata.ValueFromIncomingContext(ctx, ":authority"); len(values) > 0 {
		host = values[0]
	}
	p := i.plans.Match("POST", host, call.Method)
	released := false
	release = func() {
		if !released {
			released = true
			p.Release()
		}
	}
	if !p.Found() {
		return nil, release, nil
	}
	for _, name := range p.Keys() {
		f := i.key(name)
		if f == nil {
			continue
		}
		key, err := f(ctx, call)
		if err != nil || key == "" {
			continue // its limits say what happens to the call
		}
		if allow, block, _ := p.Listed(name, key); block {
			return nil, release, ErrBlocked
		} else if allow {
			return nil, release, nil
		}
	}
	m := p.Made(i, i.compile).(made)
	return m.limit, release, m.err
}

// compile makes the interceptor of a route.
func (i *Interceptor) compile(required []plans.Required, dryRun bool) any {
	var limits []grpclimit.Limit
	for _, r := range required {
		key := i.key(r.Key)
		if key == nil {
			return made{err: status.Errorf(codes.Internal, "the limit %s counts by %s, which is no key function of gRPC here", r.Policy, r.Key)}
		}
		l := grpclimit.Limit{Limiter: r.Limiter, Key: key, Policy: r.Policy, Unit: r.Unit, Fleet: r.Fleet}
		if r.Cost != nil {
			cost := *r.Cost
			l.Cost = func(context.Context, grpclimit.Call) uint64 { return cost }
		}
		limits = append(limits, l)
	}
	if len(limits) == 0 {
		return made{}
	}
	opts := i.opts
	if dryRun {
		opts = append(opts[:len(opts):len(opts)], grpclimit.WithDryRun())
	}
	limit, err := grpclimit.NewAll(limits, opts...)
	return made{limit, err}
}
