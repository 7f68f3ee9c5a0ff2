package beside

// This file runs our service in this process, on a clock of the test's.

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/VictoriaMetrics/metrics"

	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/ratelimit/envoylimit"
	"github.com/hanzoai/limiters/testing/ratelimittest"
)

// A scenario is a configuration: files, and settings by the original's variables.
type scenario struct {
	name  string
	files []string // of testdata/rules; nil: the one of that name
	env   map[string]string
}

var scenarios = []scenario{
	{name: "unit-second"},
	{name: "unit-minute"},
	{name: "unit-hour"},
	{name: "unit-day"},
	{name: "unit-week"},
	{name: "unit-month"},
	{name: "unit-year"},
	{name: "nested"},
	{name: "whitelist"},
	{name: "wildcard"},
	{name: "share"},
	{name: "unlimited"},
	{name: "zero"},
	{name: "large"},
	{name: "replaces"},
	{name: "shadow"},
	{name: "quota", env: map[string]string{"RESPONSE_DYNAMIC_METADATA": "true"}},
	{name: "metrics", env: map[string]string{"NEAR_LIMIT_RATIO": "0.5"}},
	{name: "words"},
	{name: "anchors"},
	{name: "misplaced"},
	{name: "headers", env: map[string]string{"LIMIT_RESPONSE_HEADERS_ENABLED": "true"}},
	{name: "headers-shadow", env: map[string]string{
		"LIMIT_RESPONSE_HEADERS_ENABLED": "true", "SHADOW_MODE": "true",
		"LIMIT_LIMIT_HEADER": "X-Limit", "LIMIT_REMAINING_HEADER": "X-Left", "LIMIT_RESET_HEADER": "X-Reset",
	}},
	{name: "headers-quota", env: map[string]string{
		"LIMIT_RESPONSE_HEADERS_ENABLED": "true", "QUOTA_MODE": "true", "RESPONSE_DYNAMIC_METADATA": "true",
	}},
	{name: "stop", env: map[string]string{"STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT": "true"}},
	{name: "merge", files: []string{"merge-1", "merge-2"}, env: map[string]string{"MERGE_DOMAIN_CONFIG": "true"}},
	{name: "domains", files: []string{"domains-1", "domains-2"}},
}

// read returns the scenario's files.
func (s scenario) read(t *testing.T) (files []envoylimit.File) {
	t.Helper()
	names := s.files
	if names == nil {
		names = []string{s.name}
	}
	for _, name := range names {
		content, err := os.ReadFile(filepath.Join("testdata", "rules", name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, envoylimit.File{Name: name, Content: content})
	}
	return files
}

func (s scenario) on(variable string) bool { return s.env[variable] == "true" }

// configOf is what the scenario's variables mean.
func (s scenario) config(t *testing.T) envoylimit.Config {
	t.Helper()
	cfg := envoylimit.DefaultConfig()
	cfg.ShadowMode, cfg.QuotaMode = s.on("SHADOW_MODE"), s.on("QUOTA_MODE")
	cfg.DynamicMetadata, cfg.StopWhenOver = s.on("RESPONSE_DYNAMIC_METADATA"), s.on("STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT")
	if s.on("LIMIT_RESPONSE_HEADERS_ENABLED") {
		headers := envoylimit.DefaultHeaders
		if name := s.env["LIMIT_LIMIT_HEADER"]; name != "" {
			headers = envoylimit.Headers{Limit: name, Remaining: s.env["LIMIT_REMAINING_HEADER"], Reset: s.env["LIMIT_RESET_HEADER"]}
		}
		cfg.Headers = &headers
	}
	if text := s.env["NEAR_LIMIT_RATIO"]; text != "" {
		ratio, err := strconv.ParseFloat(text, 32)
		if err != nil {
			t.Fatal(err)
		}
		cfg.NearLimitRatio = float32(ratio)
	}
	return cfg
}

// newOurs starts our service on the clock.
func newOurs(t *testing.T, clock *ratelimittest.Clock, cfg envoylimit.Config, files []envoylimit.File, merge bool, store *ratelimittest.Store) *envoylimit.Service {
	t.Helper()
	cfg.Clock, cfg.Logger = clock, slog.New(slog.DiscardHandler)
	cfg.Options = []ratelimit.Option{
		ratelimittest.WithStore(store), ratelimit.WithMetricsSet(metrics.NewSet()),
	}
	service, err := envoylimit.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := service.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	rules, _, err := envoylimit.ReadRules(files, merge)
	if err != nil {
		t.Fatalf("we reject the configuration: %v", err)
	}
	if err := service.SetRules(rules); err != nil {
		t.Fatal(err)
	}
	return service
}

var hitsLine = regexp.MustCompile(`(?m)^envoylimit_hits_total\{descriptor="(.*)",result="(\w+)"\} (\d+)$`)

// hitsOf returns what our service counted, by descriptor and result.
func hitsOf(t *testing.T, service *envoylimit.Service) map[string]map[string]uint64 {
	t.Helper()
	var text bytes.Buffer
	service.WritePrometheus(&text)
	all := map[string]map[string]uint64{}
	for _, line := range hitsLine.FindAllStringSubmatch(text.String(), -1) {
		path := strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\"`, `"`).Replace(line[1])
		if all[path] == nil {
			all[path] = map[string]uint64{}
		}
		value, err := strconv.ParseUint(line[3], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		all[path][line[2]] = value
	}
	return all
}
