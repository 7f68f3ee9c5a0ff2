package grpclimit

// This file knows calls that have no key and should pass all the same.

import (
	"context"
	"strings"
)

// Health is a function for [WithSkip] that is true for calls of the service
// grpc.health.v1.Health, which probes make without a key.
func Health(_ context.Context, call Call) bool {
	return strings.HasPrefix(call.Method, "/grpc.health.v1.Health/")
}
