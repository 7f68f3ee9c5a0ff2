package envoylimit_test

// This file starts services for the tests.

import (
	"context"
	"io"
	"log/slog"
	"testing"

	"github.com/VictoriaMetrics/metrics"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/ratelimit/envoylimit"
	"github.com/hanzoai/limiters/testing/ratelimittest"
)

// newService starts one on the clock and the store. rules may be empty.
func newService(t *testing.T, clock *ratelimittest.Clock, store *ratelimittest.Store, rules string, log io.Writer) *envoylimit.Service {
	t.Helper()
	cfg := envoylimit.DefaultConfig()
	cfg.Clock, cfg.Logger = clock, slog.New(slog.NewTextHandler(log, nil))
	cfg.Options = []ratelimit.Option{ratelimittest.WithStore(store), ratelimit.WithMetricsSet(metrics.NewSet())}
	service, err := envoylimit.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := service.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if rules != "" {
		set(t, service, rules)
	}
	return service
}

func set(t *testing.T, service *envoylimit.Service, rules string) {
	t.Helper()
	read, _, err := envoylimit.ReadRules([]envoylimit.File{{Name: "rules.yaml", Content: []byte(rules)}}, false)
	if err == nil {
		err = service.SetRules(read)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// ask asks about one descriptor of one entry.
func ask(t *testing.T, service *envoylimit.Service, key, value string) *pb.RateLimitResponse {
	t.Helper()
	response, err := service.ShouldRateLimit(t.Context(), &pb.RateLimitRequest{
		Domain: "d", Descriptors: []*ratelimitv3.RateLimitDescriptor{{
			Entries: []*ratelimitv3.RateLimitDescriptor_Entry{{Key: key, Value: value}},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return response
}

// passes counts how many of n requests pass.
func passes(t *testing.T, service *envoylimit.Service, key, value string, n int) (passed int) {
	t.Helper()
	for range n {
		if ask(t, service, key, value).OverallCode == pb.RateLimitResponse_OK {
			passed++
		}
	}
	return passed
}
