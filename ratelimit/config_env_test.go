// Tests of a Config from environment variables.

package ratelimit

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// environ is an environment of NAME=value words in which every name lacks the
// prefix. Without a REDIS_URLS of its own it has memory://.
func environ(prefix string, variables ...string) map[string]string {
	environ := map[string]string{prefix + "REDIS_URLS": "memory://"}
	for _, v := range variables {
		name, value, _ := strings.Cut(v, "=")
		environ[prefix+name] = value
	}
	return environ
}

func TestEnvironmentAllVariables(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{DefaultPrefix, "OTHER_", ""} {
		c, err := configFromEnviron(prefix, environ(prefix,
			"THRESHOLD=5000", "WINDOW_INTERVAL_SECS=120", "SYNC_INTERVAL_SECS=20", "TICK_INTERVAL_MS=500", "HOT_SYNC_INTERVAL_MS=50",
			"WINDOW=sliding", "WINDOW_SLICES=12", "WINDOW_STRICT=true", "WINDOW_CALENDAR=", "WINDOW_ZONE= UTC ", "BURST_INTERVAL_SECS=3", "INCLUSIVE=1",
			"SYNC_BY_UNITS=false", "MIN_SYNC_INTERVAL_MS=25",
			"OVERRIDES_CSV= a = 1, b=c=2,", "COUNT_LIMITED=true", "STRICT_FIRST_CONTACT=1", "DRY_RUN=T",
			"LOCAL_CACHE_MAX_ENTRIES=1000", "LOCAL_CACHE_TTL_SECS=1000", "LOCAL_CACHE_IDLE_TIMEOUT_SECS=500",
			"REDIS_URLS= redis://a , x=rediss://u:p@b/1,, ", "REDIS_KEY_PREFIX=pre fix", "GLOBAL_CACHE_TTL_SECS=300",
			"READ_TIMEOUT_MS=80", "WRITE_TIMEOUT_MS=70", "CONNECT_TIMEOUT_MS=600",
			"CHANNEL_CAPACITY=2000", "MAX_SYNC_KEYS_PER_TICK=300", "MAX_KEYS_PER_SCRIPT=100", "MAX_KEY_BYTES=256", "TIER_SCAN_INTERVAL_TICKS=10",
			"SCOPE=checkout"))
		if err != nil {
			t.Fatalf("prefix %q: %v", prefix, err)
		}
		want := Config{
			GlobalThreshold: 5000, WindowInterval: 2 * time.Minute, SyncInterval: 20 * time.Second, TickInterval: 500 * msec, HotSyncInterval: 50 * msec,
			Window: WindowSliding, WindowSlices: 12, WindowStrict: true, WindowZone: "UTC", BurstInterval: 3 * time.Second, Inclusive: true,
			MinSyncInterval: 25 * msec,
			CustomKeys:      Overrides{"a": 1, "b=c": 2}, CountLimited: true, StrictFirstContact: true, DryRun: true,
			LocalCacheMaxEntries: 1000, LocalCacheTTL: 1000 * time.Second, LocalCacheIdleTimeout: 500 * time.Second,
			RedisURLs: []string{"redis://a", "x=rediss://u:p@b/1"}, RedisKeyPrefix: "pre fix", GlobalCacheTTL: 300 * time.Second,
			GlobalReadTimeout: 80 * msec, GlobalWriteTimeout: 70 * msec, ConnectTimeout: 600 * msec,
			ChannelCapacity: 2000, MaxSyncKeysPerTick: 300, MaxKeysPerScript: 100, MaxKeyBytes: 256, TierScanIntervalTicks: 10,
			Scope: "checkout",
		}
		if prefix != DefaultPrefix {
			want.envPrefix = &prefix
		}
		if diff := cmp.Diff(want, c, cmp.AllowUnexported(Config{})); diff != "" {
			t.Errorf("prefix %q (-want +got):\n%s", prefix, diff)
		}
		if got := c.Settings()[0].Env; got != prefix+"THRESHOLD" {
			t.Errorf("prefix %q: the first setting's variable is %q", prefix, got)
		}
	}
}

func TestEnvironmentDefaults(t *testing.T) {
	t.Parallel()
	want := validConfig()
	for _, variables := range [][]string{
		nil,
		{"WINDOW_INTERVAL_SECS=", "SCOPE=", "OVERRIDES_CSV=", "DRY_RUN=", "THRESHOLD=", "REDIS_KEY_PREFIX=  "}, // empty counts as unset
		{"UNKNOWN=1", "WINDOW_INTERVAL=1"},
		{"SYNC_INTERVAL_SECS=0", "TICK_INTERVAL_MS=0s", "HOT_SYNC_INTERVAL_MS=0.000"},
	} {
		c, err := configFromEnviron(DefaultPrefix, environ(DefaultPrefix, variables...))
		if err != nil {
			t.Errorf("%q: %v", variables, err)
		}
		if diff := cmp.Diff(want, c, cmp.AllowUnexported(Config{})); diff != "" {
			t.Errorf("%q (-want +got):\n%s", variables, diff)
		}
	}
	other, err := configFromEnviron("OTHER_", environ("OTHER_", "GLOBAL_RATE_LIMIT_THRESHOLD=1"))
	if err != nil || other.GlobalThreshold != want.GlobalThreshold {
		t.Errorf("prefix OTHER_: threshold %d, %v; want the default", other.GlobalThreshold, err)
	}
}

func TestEnvironmentDurations(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]time.Duration{
		"90": 90 * time.Second, " 90\t": 90 * time.Second, "007": 7 * time.Second, "0.5": 500 * msec, "0.250000000": 250 * msec, "1.000": time.Second,
		"90s": 90 * time.Second, "1m30s": 90 * time.Second, "1.5m": 90 * time.Second, "250ms": 250 * msec, "1h": time.Hour, "+5s": 5 * time.Second,
	} {
		c, err := configFromEnviron(DefaultPrefix, environ(DefaultPrefix, "WINDOW_INTERVAL_SECS="+value))
		if err != nil || c.WindowInterval != want {
			t.Errorf("WINDOW_INTERVAL_SECS=%q: %s, %v; want %s", value, c.WindowInterval, err, want)
		}
	}
	for value, want := range map[string]time.Duration{
		"90": 90 * msec, "0.5": 500 * time.Microsecond, "1.000001": msec + 1, "1s": time.Second, "1.5s": 1500 * msec,
	} {
		c, err := configFromEnviron(DefaultPrefix, environ(DefaultPrefix, "READ_TIMEOUT_MS="+value))
		if value == "0.5" {
			wantFault(t, value, err, "ratelimit: GlobalReadTimeout (GLOBAL_RATE_LIMIT_READ_TIMEOUT_MS): 500µs: want 1ms … 1m")
			continue
		}
		if err != nil || c.GlobalReadTimeout != want {
			t.Errorf("READ_TIMEOUT_MS=%q: %s, %v; want %s", value, c.GlobalReadTimeout, err, want)
		}
	}
}

func TestEnvironmentFlags(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]bool{
		"1": true, "t": true, "T": true, "TRUE": true, "true": true, "True": true, " true ": true,
		"0": false, "f": false, "F": false, "FALSE": false, "false": false, "False": false,
	} {
		c, err := configFromEnviron(DefaultPrefix, environ(DefaultPrefix, "DRY_RUN="+value))
		if err != nil || c.DryRun != want {
			t.Errorf("DRY_RUN=%q: %t, %v; want %t", value, c.DryRun, err, want)
		}
	}
}

func TestEnvironmentFaults(t *testing.T) {
	t.Parallel()
	const (
		secs  = `: want a number of seconds or a Go duration such as 1m30s, 100ms … 8760h in whole milliseconds`
		tick  = `: want a number of milliseconds or a Go duration such as 1m30s, 1ms … 1h, or 0 to derive it`
		count = `: want a whole number in decimal digits, 1 … 10000`
		limit = `: want a whole number in decimal digits, 0 … 18446744073709551615`
		flag  = `: want true, false, 1, 0, t or f`
	)
	for _, row := range []struct {
		field, variable string
		values          []string
		want            string
	}{
		{"WindowInterval", "WINDOW_INTERVAL_SECS", []string{
			"abc", "60 s", "60sec", "1d", "60S", "1,5", "-5", "+5", "1e3", "0x10", ".5", "5.", "NaN", "Inf", "s", "60s60", "9223372036854775807", "99999999999999999999", "99999999999999999999h", "0.0000000001", "0.0000000001s", "６０", "60;",
		}, secs},
		{"TickInterval", "TICK_INTERVAL_MS", []string{"abc", "-1", "1.0000001", "1 ms", "NaN", "1m30", "0.1ns"}, tick},
		{"MaxKeysPerScript", "MAX_KEYS_PER_SCRIPT", []string{"abc", "-1", "+1", "1.0", "1e3", "1_000", "1,000", "0x10", "NaN", "500s", "9223372036854775808", "18446744073709551616"}, count},
		{"GlobalThreshold", "THRESHOLD", []string{"abc", "-1", "+1", "1.0", "1e6", "1_000", "1k", "NaN", "18446744073709551616"}, limit},
		{"DryRun", "DRY_RUN", []string{"yes", "no", "on", "off", "2", "tRUE", "-1", "true false"}, flag},
	} {
		for _, value := range row.values {
			c, err := configFromEnviron(DefaultPrefix, environ(DefaultPrefix, row.variable+"="+value))
			wantFault(t, row.variable+"="+value, err, "ratelimit: "+row.field+" (GLOBAL_RATE_LIMIT_"+row.variable+"): "+shown(value)+row.want)
			if diff := cmp.Diff(Config{}, c, cmp.AllowUnexported(Config{})); diff != "" {
				t.Errorf("%s=%s: a Config beside the error (-zero +got):\n%s", row.variable, value, diff)
			}
		}
	}
}

// TestEnvironmentBounds: a value that can be read is checked like any other.
func TestEnvironmentBounds(t *testing.T) {
	t.Parallel()
	for variable, want := range map[string]string{
		"WINDOW_INTERVAL_SECS=0":    "ratelimit: WindowInterval (X_WINDOW_INTERVAL_SECS): 0s: want 100ms … 8760h in whole milliseconds",
		"WINDOW_INTERVAL_SECS=-5s":  "ratelimit: WindowInterval (X_WINDOW_INTERVAL_SECS): -5s: want 100ms … 8760h in whole milliseconds",
		"WINDOW_INTERVAL_SECS=99ms": "ratelimit: WindowInterval (X_WINDOW_INTERVAL_SECS): 99ms: want 100ms … 8760h in whole milliseconds",
		"MAX_KEY_BYTES=63":          "ratelimit: MaxKeyBytes (X_MAX_KEY_BYTES): 63: want 64 … 65536",
		"SYNC_INTERVAL_SECS=61":     "ratelimit: SyncInterval (X_SYNC_INTERVAL_SECS): 1m1s: want ≤ WindowInterval, which is 1m (X_WINDOW_INTERVAL_SECS)",
		"REDIS_URLS=":               "ratelimit: RedisURLs (X_REDIS_URLS): not set: want 1 … 256 URLs",
		"REDIS_URLS= , ,":           "ratelimit: RedisURLs (X_REDIS_URLS): not set: want 1 … 256 URLs",
		"SCOPE=a\nb":                `ratelimit: Scope (X_SCOPE): "a\nb": want 1 … 128 bytes of UTF-8 without control characters`,
	} {
		_, err := configFromEnviron("X_", environ("X_", variable))
		wantFault(t, variable, err, want)
	}
}

// TestEnvironmentAllFaultsAtOnce: those of reading and those of checking, in the
// order of the fields, and none that only follows from another.
func TestEnvironmentAllFaultsAtOnce(t *testing.T) {
	t.Parallel()
	_, err := configFromEnviron(DefaultPrefix, environ(DefaultPrefix, "WINDOW_INTERVAL_SECS=abc", "OVERRIDES_CSV=a=1,a=x"))
	wantFault(t, "two variables", err, `ratelimit: WindowInterval (GLOBAL_RATE_LIMIT_WINDOW_INTERVAL_SECS): "abc": want a number of seconds or a Go duration such as 1m30s, 100ms … 8760h in whole milliseconds
ratelimit: CustomKeys (GLOBAL_RATE_LIMIT_OVERRIDES_CSV): element 2 "a=x": want each key once, it is in element 1 already`)

	_, err = configFromEnviron(DefaultPrefix, environ(DefaultPrefix,
		"SCOPE=\x01", "REDIS_URLS=", "MAX_KEY_BYTES=-1", "OVERRIDES_CSV=a=1,b,c=z", "GLOBAL_CACHE_TTL_SECS=1", "WINDOW_INTERVAL_SECS=1h30",
		"SYNC_INTERVAL_SECS=5h", "TICK_INTERVAL_MS=1d", "HOT_SYNC_INTERVAL_MS=2000", "DRY_RUN=yes", "LOCAL_CACHE_IDLE_TIMEOUT_SECS=20h"))
	wantFault(t, "many variables", err, `ratelimit: WindowInterval (GLOBAL_RATE_LIMIT_WINDOW_INTERVAL_SECS): "1h30": want a number of seconds or a Go duration such as 1m30s, 100ms … 8760h in whole milliseconds
ratelimit: TickInterval (GLOBAL_RATE_LIMIT_TICK_INTERVAL_MS): "1d": want a number of milliseconds or a Go duration such as 1m30s, 1ms … 1h, or 0 to derive it
ratelimit: CustomKeys (GLOBAL_RATE_LIMIT_OVERRIDES_CSV): element 2 "b": want key=limit
ratelimit: CustomKeys (GLOBAL_RATE_LIMIT_OVERRIDES_CSV): element 3 "c=z": want a limit in decimal digits, 0 … 18446744073709551615
ratelimit: DryRun (GLOBAL_RATE_LIMIT_DRY_RUN): "yes": want true, false, 1, 0, t or f
ratelimit: LocalCacheIdleTimeout (GLOBAL_RATE_LIMIT_LOCAL_CACHE_IDLE_TIMEOUT_SECS): 20h: want > 4 × SyncInterval, which is 20h (GLOBAL_RATE_LIMIT_SYNC_INTERVAL_SECS)
ratelimit: RedisURLs (GLOBAL_RATE_LIMIT_REDIS_URLS): not set: want 1 … 256 URLs
ratelimit: MaxKeyBytes (GLOBAL_RATE_LIMIT_MAX_KEY_BYTES): "-1": want a whole number in decimal digits, 64 … 65536
ratelimit: Scope (GLOBAL_RATE_LIMIT_SCOPE): "\x01": want 1 … 128 bytes of UTF-8 without control characters`)
}

// TestEnvironmentFaultsMaskPasswords, also of a URL in the wrong variable.
func TestEnvironmentFaultsMaskPasswords(t *testing.T) {
	t.Parallel()
	for id := range configFields {
		f := configFields[id]
		for _, url := range []string{"redis://wilma:hunter2@host", "redis://:hun,hunter2@host", "redis://wilma:hunter2@host\x01"} {
			_, err := configFromEnviron(DefaultPrefix, environ(DefaultPrefix, f.env+"="+url))
			if err != nil && (strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "wilma")) {
				t.Errorf("%s=%s: %v", f.env, url, err)
			}
		}
	}
}

func TestEnvironmentOfTheProcess(t *testing.T) {
	t.Setenv("GLOBAL_RATE_LIMIT_REDIS_URLS", "memory://")
	t.Setenv("GLOBAL_RATE_LIMIT_THRESHOLD", "42")
	t.Setenv("SECOND_REDIS_URLS", "memory://")
	t.Setenv("SECOND_THRESHOLD", "43")
	first, err := ConfigFromEnv()
	if err != nil || first.GlobalThreshold != 42 {
		t.Errorf("ConfigFromEnv: threshold %d, %v; want 42", first.GlobalThreshold, err)
	}
	second, err := ConfigFromEnvPrefix("SECOND_")
	if err != nil || second.GlobalThreshold != 43 {
		t.Errorf("ConfigFromEnvPrefix: threshold %d, %v; want 43", second.GlobalThreshold, err)
	}
	second.Scope = ""
	wantFault(t, "a fault made later", second.Validate(), `ratelimit: Scope (SECOND_SCOPE): "": want 1 … 128 bytes of UTF-8 without control characters`)
}

// FuzzConfigEnv: whatever a variable holds, the Config is valid or there is an
// error that names the variable, shows no password, and leaves the zero Config.
func FuzzConfigEnv(f *testing.F) {
	for _, value := range []string{"", "1", "60", "0.5", "-1", "90s", "1m30s", "abc", "true", "a=1,b=2,", "redis://u:p@h", "9223372036854775807", "1e9", "NaN", "\xff"} {
		for id := range configFields {
			f.Add(id, value)
		}
	}
	f.Fuzz(func(t *testing.T, id int, value string) {
		if id < 0 || id >= fieldCount {
			t.Skip("no such field")
		}
		name := DefaultPrefix + configFields[id].env
		variables := map[string]string{DefaultPrefix + "REDIS_URLS": "memory://"}
		maps.Copy(variables, map[string]string{name: value})
		c, err := configFromEnviron(DefaultPrefix, variables)
		if err == nil {
			if err := c.Validate(); err != nil {
				t.Fatalf("%s=%q: read without an error, then %v", name, value, err)
			}
			return
		}
		if !strings.Contains(err.Error(), name) || !strings.HasPrefix(err.Error(), "ratelimit: ") {
			t.Fatalf("%s=%q: %v", name, value, err)
		}
		if c.RedisURLs != nil {
			t.Fatalf("%s=%q: a Config beside the error", name, value)
		}
	})
}
