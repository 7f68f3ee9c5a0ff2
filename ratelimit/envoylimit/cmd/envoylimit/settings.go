package main

// This file reads the environment, by the names that envoyproxy/ratelimit gives its settings.

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"

	"github.com/hanzoai/limiters/ratelimit/envoylimit"
)

// Settings are those of the original that mean the same here, with its defaults.
type settings struct {
	Host      string `env:"HOST" envDefault:"0.0.0.0"`
	Port      uint16 `env:"PORT" envDefault:"8080"`
	DebugHost string `env:"DEBUG_HOST" envDefault:"0.0.0.0"`
	DebugPort uint16 `env:"DEBUG_PORT" envDefault:"6070"`

	GrpcUds                   string        `env:"GRPC_UDS"`
	GrpcHost                  string        `env:"GRPC_HOST" envDefault:"0.0.0.0"`
	GrpcPort                  uint16        `env:"GRPC_PORT" envDefault:"8081"`
	GrpcMaxConnectionAge      time.Duration `env:"GRPC_MAX_CONNECTION_AGE" envDefault:"24h"`
	GrpcMaxConnectionAgeGrace time.Duration `env:"GRPC_MAX_CONNECTION_AGE_GRACE" envDefault:"1h"`
	GrpcServerUseTLS          bool          `env:"GRPC_SERVER_USE_TLS"`
	GrpcServerTLSCert         string        `env:"GRPC_SERVER_TLS_CERT"`
	GrpcServerTLSKey          string        `env:"GRPC_SERVER_TLS_KEY"`
	GrpcClientTLSCACert       string        `env:"GRPC_CLIENT_TLS_CACERT"`

	LogLevel  string `env:"LOG_LEVEL" envDefault:"WARN"`
	LogFormat string `env:"LOG_FORMAT" envDefault:"text"`

	RuntimeRoot           string `env:"RUNTIME_ROOT" envDefault:"/srv/runtime_data/current"`
	RuntimeSubdirectory   string `env:"RUNTIME_SUBDIRECTORY"`
	RuntimeAppDirectory   string `env:"RUNTIME_APPDIRECTORY" envDefault:"config"`
	RuntimeIgnoreDotFiles bool   `env:"RUNTIME_IGNOREDOTFILES"`
	MergeDomainConfig     bool   `env:"MERGE_DOMAIN_CONFIG"`
	ForceStart            bool   `env:"FORCE_START_WITHOUT_INITIAL_CONFIG"`
	HealthyWithConfig     bool   `env:"HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED"`

	UsePrometheus  bool   `env:"USE_PROMETHEUS"`
	PrometheusAddr string `env:"PROMETHEUS_ADDR" envDefault:":9090"`
	PrometheusPath string `env:"PROMETHEUS_PATH" envDefault:"/metrics"`

	NearLimitRatio  float32 `env:"NEAR_LIMIT_RATIO" envDefault:"0.8"`
	CacheKeyPrefix  string  `env:"CACHE_KEY_PREFIX"`
	StopWhenOver    bool    `env:"STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT"`
	ShadowMode      bool    `env:"SHADOW_MODE"`
	QuotaMode       bool    `env:"QUOTA_MODE"`
	DynamicMetadata bool    `env:"RESPONSE_DYNAMIC_METADATA"`

	HeadersEnabled  bool   `env:"LIMIT_RESPONSE_HEADERS_ENABLED"`
	HeaderLimit     string `env:"LIMIT_LIMIT_HEADER" envDefault:"RateLimit-Limit"`
	HeaderRemaining string `env:"LIMIT_REMAINING_HEADER" envDefault:"RateLimit-Remaining"`
	HeaderReset     string `env:"LIMIT_RESET_HEADER" envDefault:"RateLimit-Reset"`

	Redis redisSettings
}

// unsupported are the settings of the original that this service cannot follow, and why. One that
// is set to a value not in fine keeps it from starting: it would not do what it was told.
var unsupported = []struct {
	name string
	fine []string
	why  string
}{
	{"CONFIG_TYPE", []string{"FILE"}, "rules are read from files only"},
	{"BACKEND_TYPE", []string{"redis"}, "counts are shared through Redis only"},
	{"REDIS_PERSECOND", []string{"false"}, "all units share one Redis: they cost it one script per tick"},
	{"GRPC_CLIENT_TLS_SAN", []string{""}, "client certificates are verified by GRPC_CLIENT_TLS_CACERT alone"},
	{"REDIS_TLS_SKIP_HOSTNAME_VERIFICATION", []string{"false"}, "certificates of Redis are always verified"},
}

// pointless are the settings of the original without a meaning here. One that is set is
// passed over, with a word about it.
var pointless = map[string]string{
	"REDIS_POOL_SIZE":                      "each partition uses one connection",
	"REDIS_PIPELINE_WINDOW":                "a tick is one script call",
	"REDIS_PIPELINE_LIMIT":                 "a tick is one script call",
	"REDIS_POOL_ON_EMPTY_BEHAVIOR":         "no request waits for a connection",
	"REDIS_HEALTH_CHECK_ACTIVE_CONNECTION": "the service decides without Redis, too",
	"LOCAL_CACHE_SIZE_IN_BYTES":            "all counts are in memory; GLOBAL_RATE_LIMIT_LOCAL_CACHE_MAX_ENTRIES bounds them",
	"EXPIRATION_JITTER_MAX_SECONDS":        "expiries are spread by themselves",
	"DISABLE_STATS":                        "metrics cost nothing until they are asked for",
	"USE_STATSD":                           "metrics are served at /metrics of the debug port",
	"USE_DOG_STATSD":                       "metrics are served at /metrics of the debug port",
	"STATSD_HOST":                          "metrics are served at /metrics of the debug port",
	"STATSD_PORT":                          "metrics are served at /metrics of the debug port",
	"STATS_FLUSH_INTERVAL":                 "metrics are served when asked for",
	"EXTRA_TAGS":                           "add labels where metrics are collected",
	"PROMETHEUS_MAPPER_YAML":               "metrics have labels already",
	"RUNTIME_WATCH_ROOT":                   "files are looked at, however they are replaced",
	"TRACING_ENABLED":                      "there are no traces",
}

// readSettings returns the settings of an environment, or all that is wrong with it.
func readSettings(environ map[string]string) (settings, error) {
	var s settings
	var errs []error
	err := env.ParseWithOptions(&s, env.Options{Environment: environ})
	var all env.AggregateError
	if errors.As(err, &all) {
		errs = append(errs, all.Errors...)
	} else if err != nil {
		errs = append(errs, err)
	}
	for _, u := range unsupported {
		if value := environ[u.name]; value != "" && !containsFold(u.fine, value) {
			errs = append(errs, fmt.Errorf("%s=%s is not supported: %s", u.name, value, u.why))
		}
	}
	if _, err := levelOf(s.LogLevel); err != nil {
		errs = append(errs, err)
	}
	if s.GrpcServerUseTLS && (s.GrpcServerTLSCert == "" || s.GrpcServerTLSKey == "") {
		errs = append(errs, errors.New("GRPC_SERVER_USE_TLS=true needs GRPC_SERVER_TLS_CERT and GRPC_SERVER_TLS_KEY"))
	}
	return s, errors.Join(errs...)
}

// passedOver returns a line for each setting that is set and means nothing here.
func passedOver(environ map[string]string) (lines []string) {
	for name, why := range pointless {
		if value := environ[name]; value != "" && !strings.EqualFold(value, "false") {
			lines = append(lines, name+" is passed over: "+why)
		}
	}
	return lines
}

func containsFold(values []string, value string) bool {
	for _, v := range values {
		if strings.EqualFold(v, value) {
			return true
		}
	}
	return false
}

// levelOf knows the original's names of levels.
func levelOf(name string) (slog.Level, error) {
	switch strings.ToLower(name) {
	case "trace", "debug":
		return slog.LevelDebug, nil
	case "info":
		return slog.LevelInfo, nil
	case "warn", "warning":
		return slog.LevelWarn, nil
	case "error", "fatal", "panic":
		return slog.LevelError, nil
	}
	return 0, fmt.Errorf("LOG_LEVEL=%q: want trace, debug, info, warn, error, fatal or panic", name)
}

func (s *settings) folder() envoylimit.Folder {
	return envoylimit.Folder{
		Path:           filepath.Join(s.RuntimeRoot, s.RuntimeSubdirectory, s.RuntimeAppDirectory),
		IgnoreDotFiles: s.RuntimeIgnoreDotFiles, Merge: s.MergeDomainConfig,
	}
}

// config is the service's part of the settings.
func (s *settings) config() envoylimit.Config {
	cfg := envoylimit.DefaultConfig()
	cfg.ShadowMode, cfg.QuotaMode, cfg.DynamicMetadata = s.ShadowMode, s.QuotaMode, s.DynamicMetadata
	cfg.NearLimitRatio, cfg.StopWhenOver = s.NearLimitRatio, s.StopWhenOver
	if s.HeadersEnabled {
		cfg.Headers = &envoylimit.Headers{Limit: s.HeaderLimit, Remaining: s.HeaderRemaining, Reset: s.HeaderReset}
	}
	return cfg
}
