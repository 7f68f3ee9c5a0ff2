// Tests of the defaults, of what derives from what, and of a Config as text.

package ratelimit

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// settingsText is every setting as "Field VARIABLE value" lines.
func settingsText(c Config) string {
	var b strings.Builder
	for _, s := range c.Settings() {
		fmt.Fprintf(&b, "%s %s %s\n", s.Field, s.Env, s.Value)
	}
	return b.String()
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	c := DefaultConfig()
	c.RedisURLs = []string{"memory://"}
	if err := c.Validate(); err != nil {
		t.Errorf("Validate of the defaults = %v", err)
	}
	want := `GlobalThreshold GLOBAL_RATE_LIMIT_THRESHOLD 1000000
WindowInterval GLOBAL_RATE_LIMIT_WINDOW_INTERVAL_SECS 1m
Window GLOBAL_RATE_LIMIT_WINDOW "leaky"
WindowSlices GLOBAL_RATE_LIMIT_WINDOW_SLICES 30
WindowStrict GLOBAL_RATE_LIMIT_WINDOW_STRICT false
WindowCalendar GLOBAL_RATE_LIMIT_WINDOW_CALENDAR ""
WindowZone GLOBAL_RATE_LIMIT_WINDOW_ZONE "UTC"
BurstInterval GLOBAL_RATE_LIMIT_BURST_INTERVAL_SECS 0s
Inclusive GLOBAL_RATE_LIMIT_INCLUSIVE false
SyncInterval GLOBAL_RATE_LIMIT_SYNC_INTERVAL_SECS 15s
TickInterval GLOBAL_RATE_LIMIT_TICK_INTERVAL_MS 1s
HotSyncInterval GLOBAL_RATE_LIMIT_HOT_SYNC_INTERVAL_MS 0s
SyncByUnits GLOBAL_RATE_LIMIT_SYNC_BY_UNITS true
MinSyncInterval GLOBAL_RATE_LIMIT_MIN_SYNC_INTERVAL_MS 20ms
CustomKeys GLOBAL_RATE_LIMIT_OVERRIDES_CSV ""
CountLimited GLOBAL_RATE_LIMIT_COUNT_LIMITED false
StrictFirstContact GLOBAL_RATE_LIMIT_STRICT_FIRST_CONTACT false
DryRun GLOBAL_RATE_LIMIT_DRY_RUN false
LocalCacheMaxEntries GLOBAL_RATE_LIMIT_LOCAL_CACHE_MAX_ENTRIES 300000
LocalCacheTTL GLOBAL_RATE_LIMIT_LOCAL_CACHE_TTL_SECS 10m
LocalCacheIdleTimeout GLOBAL_RATE_LIMIT_LOCAL_CACHE_IDLE_TIMEOUT_SECS 5m
RedisURLs GLOBAL_RATE_LIMIT_REDIS_URLS "memory://"
RedisKeyPrefix GLOBAL_RATE_LIMIT_REDIS_KEY_PREFIX "@hanzo/global_rate_limiter"
GlobalCacheTTL GLOBAL_RATE_LIMIT_GLOBAL_CACHE_TTL_SECS 2m
GlobalReadTimeout GLOBAL_RATE_LIMIT_READ_TIMEOUT_MS 100ms
GlobalWriteTimeout GLOBAL_RATE_LIMIT_WRITE_TIMEOUT_MS 100ms
ConnectTimeout GLOBAL_RATE_LIMIT_CONNECT_TIMEOUT_MS 1s
ChannelCapacity GLOBAL_RATE_LIMIT_CHANNEL_CAPACITY 1000000
MaxSyncKeysPerTick GLOBAL_RATE_LIMIT_MAX_SYNC_KEYS_PER_TICK 20000
MaxKeysPerScript GLOBAL_RATE_LIMIT_MAX_KEYS_PER_SCRIPT 500
MaxKeyBytes GLOBAL_RATE_LIMIT_MAX_KEY_BYTES 512
TierScanIntervalTicks GLOBAL_RATE_LIMIT_TIER_SCAN_INTERVAL_TICKS 30
Scope GLOBAL_RATE_LIMIT_SCOPE "default"
`
	if diff := cmp.Diff(want, settingsText(c)); diff != "" {
		t.Errorf("settings of the defaults (-want +got):\n%s", diff)
	}
	for name, d := range map[string]time.Duration{
		"SyncInterval": c.SyncInterval, "TickInterval": c.TickInterval, "LocalCacheTTL": c.LocalCacheTTL,
		"LocalCacheIdleTimeout": c.LocalCacheIdleTimeout, "GlobalCacheTTL": c.GlobalCacheTTL,
	} {
		if d != 0 {
			t.Errorf("DefaultConfig().%s = %s, want 0 for derived", name, d)
		}
	}
}

// TestDerivedDefaultsFollowTheConfiguredWindow and never the default one.
func TestDerivedDefaultsFollowTheConfiguredWindow(t *testing.T) {
	t.Parallel()
	type derived struct{ Sync, Tick, TTL, Idle, Counter time.Duration }
	for _, row := range []struct {
		window, sync, tick, idle time.Duration // as configured
		want                     derived
	}{
		{100 * time.Millisecond, 0, 0, 0, derived{25 * time.Millisecond, 6250 * time.Microsecond, time.Second, 500 * time.Millisecond, 200 * time.Millisecond}},
		{time.Second, 0, 0, 0, derived{250 * time.Millisecond, 62500 * time.Microsecond, 10 * time.Second, 5 * time.Second, 2 * time.Second}},
		{16 * time.Second, 0, 0, 0, derived{4 * time.Second, time.Second, 160 * time.Second, 80 * time.Second, 32 * time.Second}},
		{time.Hour, 0, 0, 0, derived{15 * time.Minute, time.Second, 10 * time.Hour, 5 * time.Hour, 2 * time.Hour}},
		{365 * 24 * time.Hour, 0, 0, 0, derived{2190 * time.Hour, time.Second, 87600 * time.Hour, 43800 * time.Hour, 17520 * time.Hour}},
		{time.Minute, 2 * time.Second, 0, 0, derived{2 * time.Second, 500 * time.Millisecond, 10 * time.Minute, 5 * time.Minute, 2 * time.Minute}},
		{time.Minute, 4 * time.Millisecond, 0, 0, derived{4 * time.Millisecond, time.Millisecond, 10 * time.Minute, 5 * time.Minute, 2 * time.Minute}},
		{time.Minute, 0, 3 * time.Second, 0, derived{15 * time.Second, 3 * time.Second, 10 * time.Minute, 5 * time.Minute, 2 * time.Minute}},
		{time.Minute, 0, 0, 2 * time.Minute, derived{15 * time.Second, time.Second, 10 * time.Minute, 2 * time.Minute, 2 * time.Minute}},
	} {
		c := DefaultConfig()
		c.RedisURLs = []string{"memory://"}
		c.WindowInterval, c.SyncInterval, c.TickInterval, c.LocalCacheIdleTimeout = row.window, row.sync, row.tick, row.idle
		if err := c.Validate(); err != nil {
			t.Errorf("window %s, sync %s, tick %s: Validate = %v", row.window, row.sync, row.tick, err)
		}
		r := c.Resolved()
		got := derived{r.SyncInterval, r.TickInterval, r.LocalCacheTTL, r.LocalCacheIdleTimeout, r.GlobalCacheTTL}
		if diff := cmp.Diff(row.want, got); diff != "" {
			t.Errorf("window %s, sync %s, tick %s: Resolved (-want +got):\n%s", row.window, row.sync, row.tick, diff)
		}
		if c.SyncInterval != row.sync || c.GlobalCacheTTL != 0 {
			t.Errorf("window %s: Resolved changed its receiver", row.window)
		}
		if again := r.Resolved(); again.String() != r.String() {
			t.Errorf("window %s: Resolved twice = %s, want %s", row.window, again, r)
		}
	}
}

// TestConfigTextMasksPasswords in whatever way a Config is printed.
func TestConfigTextMasksPasswords(t *testing.T) {
	t.Parallel()
	c := DefaultConfig()
	c.RedisURLs = []string{"a=redis://user:secret@one:6379/2", "rediss://:secret@two"}
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("starting", "config", c)
	for how, text := range map[string]string{
		"%v": fmt.Sprintf("%v", c), "%+v": fmt.Sprintf("%+v", c), "%#v": fmt.Sprintf("%#v", c), "String": c.String(),
		"pointer": fmt.Sprintf("%+v", &c), "slog": log.String(), "settings": settingsText(c),
	} {
		if strings.Contains(text, "secret") || strings.Contains(text, "user") {
			t.Errorf("%s shows user info: %s", how, text)
		}
		if !strings.Contains(text, "a=redis://***@one:6379/2,rediss://***@two") {
			t.Errorf("%s lacks the masked URLs: %s", how, text)
		}
	}
	if c.RedisURLs[1] != "rediss://:secret@two" {
		t.Error("masking changed the Config")
	}
}

func TestOverridesAsSetting(t *testing.T) {
	t.Parallel()
	many := Overrides{}
	for i := range 12 {
		many[fmt.Sprintf("k%02d", i)] = uint64(i)
	}
	for want, overrides := range map[string]Overrides{
		`""`:           nil,
		`"=7,a=1,b=0"`: {"b": 0, "a": 1, "": 7},
		`"k00=0,k01=1,k02=2,k03=3,k04=4,k05=5,k06=6,k07=7,k08=8,k09=9" and 2 more`: many,
	} {
		if got := valueText(overrides); got != want {
			t.Errorf("text of %v = %s, want %s", overrides, got, want)
		}
	}
}

func TestDurationText(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]time.Duration{
		"0s": 0, "1m": time.Minute, "1h": time.Hour, "8760h": 8760 * time.Hour, "1h30m": 90 * time.Minute, "1m30s": 90 * time.Second,
		"10s": 10 * time.Second, "1h0m5s": time.Hour + 5*time.Second, "250ms": 250 * time.Millisecond, "-1m": -time.Minute, "10m": 10 * time.Minute,
	} {
		if got := durationText(d); got != want {
			t.Errorf("durationText(%d) = %s, want %s", d, got, want)
		}
	}
}

func TestShown(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"":                             `""`,
		"abc":                          `"abc"`,
		"a\x00\"b":                     `"a\x00\"b"`,
		"user@example.com=x":           `"user@example.com=x"`,
		"redis://u:hunter2@h":          `"redis://***@h"`,
		"redis://u:hun,ter2@h":         `"redis://***,***@h"`,
		strings.Repeat("x", 200):       `"` + strings.Repeat("x", 200) + `"`,
		strings.Repeat("x", 201):       `"` + strings.Repeat("x", 200) + `"…`,
		strings.Repeat("x", 199) + "é": `"` + strings.Repeat("x", 199) + `"…`,
		"redis://u:" + strings.Repeat("hunter2", 100) + "@h": `"redis://***@h"`,
	} {
		if got := shown(value); got != want {
			t.Errorf("shown(%q) = %s, want %s", value, got, want)
		}
	}
}
