package throughput

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/hanzoai/limiters/cmd/bench/internal/backend"
	"github.com/hanzoai/limiters/ratelimit"
)

// settingsOf returns what the arguments configure.
func settingsOf(t *testing.T, args string) ratelimit.Config {
	t.Helper()
	o, err := parseOptions(strings.Fields(args), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	config, err := settings(o)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func TestFlagsBecomeTheConfiguration(t *testing.T) {
	t.Parallel()
	c := settingsOf(t, "-threshold 7 -window 8s -tick 500ms -redis redis://a:1,redis://b:2")
	if c.GlobalThreshold != 7 || c.WindowInterval != 8*time.Second || c.TickInterval != 500*time.Millisecond || len(c.RedisURLs) != 2 {
		t.Errorf("configuration = %v", c)
	}
	if c.GlobalReadTimeout != backend.Patience || c.GlobalWriteTimeout != backend.Patience || c.ConnectTimeout != backend.Patience {
		t.Errorf("timeouts = %v, %v, %v; want %v", c.GlobalReadTimeout, c.GlobalWriteTimeout, c.ConnectTimeout, backend.Patience)
	}
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
}

func TestTheCountsOutliveTheRun(t *testing.T) {
	t.Parallel()
	c := settingsOf(t, "-duration 1h -close-timeout 1m")
	if want := time.Hour + time.Minute + keptAfterRun; c.GlobalCacheTTL != want {
		t.Errorf("GlobalCacheTTL = %v, want %v", c.GlobalCacheTTL, want)
	}
	c = settingsOf(t, "-duration 1s -window 1h")
	if want := 2 * time.Hour; c.GlobalCacheTTL != want {
		t.Errorf("GlobalCacheTTL = %v, want two windows", c.GlobalCacheTTL)
	}
}

func TestEveryRunHasAPrefixOfItsOwn(t *testing.T) {
	t.Parallel()
	one, two := settingsOf(t, "").RedisKeyPrefix, settingsOf(t, "").RedisKeyPrefix
	begin := ratelimit.DefaultConfig().RedisKeyPrefix + ":bench-"
	if one == two || !strings.HasPrefix(one, begin) || len(one) <= len(begin) {
		t.Errorf("prefixes %q, %q", one, two)
	}
}

func TestFlagsWinOverTheEnvironmentAndDefaultsDoNot(t *testing.T) {
	t.Setenv("GLOBAL_RATE_LIMIT_REDIS_URLS", "redis://env:1")
	t.Setenv("GLOBAL_RATE_LIMIT_THRESHOLD", "77")
	t.Setenv("GLOBAL_RATE_LIMIT_WINDOW_INTERVAL_SECS", "20")
	t.Setenv("GLOBAL_RATE_LIMIT_REDIS_KEY_PREFIX", "mine")
	c := settingsOf(t, "-env -threshold 5")
	if c.GlobalThreshold != 5 || c.WindowInterval != 20*time.Second || c.RedisURLs[0] != "redis://env:1" || !strings.HasPrefix(c.RedisKeyPrefix, "mine:bench-") {
		t.Errorf("configuration = %v", c)
	}
	if want := 100 * time.Millisecond; c.GlobalReadTimeout != want {
		t.Errorf("GlobalReadTimeout = %v, want the environment's %v", c.GlobalReadTimeout, want)
	}
}

func TestSettingsArePrintedWithNamesAndWithoutSecrets(t *testing.T) {
	t.Parallel()
	c := ratelimit.DefaultConfig()
	c.RedisURLs = []string{"redis://user:secret@host:1"}
	var out bytes.Buffer
	writeSettings(&out, c)
	if strings.Contains(out.String(), "secret") {
		t.Errorf("printed a password: %s", &out)
	}
	for _, want := range []string{"GLOBAL_RATE_LIMIT_WINDOW_INTERVAL_SECS", "1m", "WindowInterval", "host:1"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("lacks %q: %s", want, &out)
		}
	}
}
