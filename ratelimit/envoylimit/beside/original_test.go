package beside

// This file runs the original in this process: on a clock of the test's, and a Redis in memory.

import (
	"context"
	"fmt"
	"io"
	"math/rand"
	"os"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/envoyproxy/ratelimit/src/config"
	"github.com/envoyproxy/ratelimit/src/provider"
	"github.com/envoyproxy/ratelimit/src/redis"
	service "github.com/envoyproxy/ratelimit/src/service"
	"github.com/envoyproxy/ratelimit/src/settings"
	"github.com/envoyproxy/ratelimit/src/stats"
	gostats "github.com/lyft/gostats"
	"github.com/sirupsen/logrus"

	"github.com/hanzoai/limiters/ratelimit/envoylimit"
	"github.com/hanzoai/limiters/testing/ratelimittest"
)

func TestMain(m *testing.M) {
	logrus.SetOutput(io.Discard)
	os.Exit(m.Run())
}

// An original is envoyproxy/ratelimit on one configuration.
type original struct {
	service service.RateLimitServiceServer
	stats   stats.Manager
	server  *miniredis.Miniredis
}

// seconds is the test's clock as the original reads it.
type seconds struct{ clock *ratelimittest.Clock }

func (s seconds) UnixNow() int64 { return s.clock.Time().Unix() }

// update is a configuration as the original is handed it.
type update struct{ rules config.RateLimitConfig }

func (u update) GetConfig() (config.RateLimitConfig, any) { return u.rules, nil }

type silent chan provider.ConfigUpdateEvent

func (s silent) ConfigUpdateEvent() <-chan provider.ConfigUpdateEvent { return s }
func (s silent) Stop()                                                {}

// newOriginal starts one. Settings are read from the environment, as it does itself.
func newOriginal(t *testing.T, clock *ratelimittest.Clock, files []envoylimit.File, merge bool) *original {
	t.Helper()
	server := miniredis.RunT(t)
	server.SetTime(clock.Time())
	o := &original{server: server}
	store := gostats.NewStore(gostats.NewNullSink(), false)
	cfg := settings.NewSettings()
	o.stats = stats.NewStatManager(store, cfg)
	client := redis.NewClientImpl(store, false, "", "tcp", "single", server.Addr(), 1, 0, 0, nil, false, nil, 10*time.Second, "", "")
	t.Cleanup(func() { _ = client.Close() })
	cache := redis.NewFixedRateLimitCacheImpl(client, nil, seconds{clock}, rand.New(rand.NewSource(1)), 0, nil,
		cfg.NearLimitRatio, "", o.stats, cfg.StopCacheKeyIncrementWhenOverlimit)
	o.service = service.NewService(cache, silent(nil), o.stats, nil, seconds{clock}, cfg.GlobalShadowMode, true, false)
	rules, err := o.load(files, merge)
	if err != nil {
		t.Fatalf("the original rejects the configuration: %v", err)
	}
	o.service.SetConfig(update{rules}, false)
	return o
}

// load has the original read files. Its errors are panics.
func (o *original) load(files []envoylimit.File, merge bool) (rules config.RateLimitConfig, err error) {
	defer func() {
		if raised := recover(); raised != nil {
			err = fmt.Errorf("%v", raised)
		}
	}()
	var all []config.RateLimitConfigToLoad
	for _, file := range files {
		all = append(all, config.RateLimitConfigToLoad{
			Name: file.Name, ConfigYaml: config.ConfigFileContentToYaml(file.Name, string(file.Content)),
		})
	}
	return config.NewRateLimitConfigLoaderImpl().Load(all, o.stats, merge), nil
}

// ask has the original answer; raised is what it panics with.
func (o *original) ask(request *pb.RateLimitRequest) (response *pb.RateLimitResponse, raised any, err error) {
	defer func() { raised = recover() }()
	response, err = o.service.ShouldRateLimit(context.Background(), request)
	return response, nil, err
}

// hits returns what the original counted for a descriptor, by result.
func (o *original) hits(path string) map[string]uint64 {
	s := o.stats.NewStats(path)
	return map[string]uint64{
		"total": s.TotalHits.Value(), "within": s.WithinLimit.Value(), "near": s.NearLimit.Value(),
		"over": s.OverLimit.Value(), "shadow": s.ShadowMode.Value(),
	}
}
