package grpclimit

// This file tells a client where it stands: in the status of a limited call, and in trailers.

import (
	"context"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/hanzoai/limiters/internal/group"
	"github.com/hanzoai/limiters/ratelimit"
)

// The trailers. The quota is told as draft-ietf-httpapi-ratelimit-headers-11 does in HTTP; the
// pushback is gRPC's (A6: client retries), in milliseconds, negative to have a client not
// try again.
const (
	trailerPolicy   = "ratelimit-policy"
	trailerQuota    = "ratelimit"
	trailerPushback = "grpc-retry-pushback-ms"
)

// announce sets the trailers for all limits, or for those alone that refuse, and the pushback
// if one does. Trailers that are set for one stream several times pile up, so a stream that
// counts its messages tells of the one alone that is refused.
func (i *Interceptor) announce(ctx context.Context, items []group.Item, ds ratelimit.Decisions) {
	refuses := !ds.Allowed()
	if i.messages && !refuses {
		return
	}
	trailer := metadata.MD{}
	for at := range ds {
		d := &ds[at]
		if d.DryRun() || refuses && d.Allowed() {
			continue
		}
		p := &i.policies[at]
		available, more := p.Available(*d, func(n uint64) time.Duration { return items[at].Limiter.WaitFor(items[at].Key, n) })
		trailer.Append(trailerPolicy, p.Item(d.Threshold()))
		trailer.Append(trailerQuota, p.Standing(available, more))
	}
	if refuses {
		trailer.Set(trailerPushback, pushback(ds.RetryAfter()))
	}
	_ = grpc.SetTrailer(ctx, trailer) // fails where there is no stream to tell
}

// pushback is a wait in whole milliseconds, rounded up. It is an int32 to clients, who take one
// that is greater for none; what is longer than three weeks is as good as never.
func pushback(wait time.Duration) string {
	const most = 1<<31 - 1
	millis := int64(wait / time.Millisecond)
	if wait%time.Millisecond > 0 {
		millis++
	}
	if millis > most {
		return "-1"
	}
	return strconv.FormatInt(max(millis, 1), 10)
}

// refuse returns the status of a call that a limit refuses.
func (i *Interceptor) refuse(ds ratelimit.Decisions) error {
	var policies []string
	longest := -1
	for at := range ds {
		if ds[at].Allowed() {
			continue
		}
		policies = append(policies, i.limits[at].Policy)
		if longest < 0 || ds[at].RetryAfter() > ds[longest].RetryAfter() {
			longest = at
		}
	}
	if i.limited != nil {
		if err := i.limited(ds[longest]); status.Code(err) != codes.OK {
			return err
		} // a limited call never passes
	}
	text := "the rate limit is exceeded"
	if len(i.limits) > 1 {
		text += ": " + strings.Join(policies, ", ")
	}
	s := status.New(codes.ResourceExhausted, text)
	if wait := ds[longest].RetryAfter(); wait != ratelimit.Never {
		detailed, err := s.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(wait)})
		if err != nil {
			panic(err) // the code is not OK, and the detail is valid
		}
		s = detailed
	}
	return s.Err()
}
