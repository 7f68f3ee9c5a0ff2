package envoylimit

// This file tells clients of their limit.

import (
	"strconv"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/durationpb"
)

// of returns the headers that tell of one status, at a time in Unix seconds.
func (h *Headers) of(status *pb.RateLimitResponse_DescriptorStatus, now int64) []*core.HeaderValue {
	limit := status.GetCurrentLimit()
	return []*core.HeaderValue{
		{Key: h.Limit, Value: strconv.FormatUint(uint64(limit.GetRequestsPerUnit()), 10)},
		{Key: h.Remaining, Value: strconv.FormatUint(uint64(status.GetLimitRemaining()), 10)},
		{Key: h.Reset, Value: strconv.FormatInt(untilReset(limit.GetUnit(), now).GetSeconds(), 10)},
	}
}

// untilReset is how long the current unit lasts, from a time in Unix seconds: one second at least.
func untilReset(unit pb.RateLimitResponse_RateLimit_Unit, now int64) *durationpb.Duration {
	seconds := int64(lengthOf(unit) / time.Second)
	return &durationpb.Duration{Seconds: seconds - now%seconds}
}
