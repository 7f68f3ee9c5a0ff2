// Tests of every bound, of the relations between fields, and of how faults are
// reported.

package ratelimit

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

const (
	msec  = time.Millisecond
	month = 30 * 24 * time.Hour
	year  = 365 * 24 * time.Hour
)

// validConfig is as far from every bound and relation as a Config gets.
func validConfig() Config {
	c := DefaultConfig()
	c.RedisURLs = []string{"memory://"}
	return c
}

// wantFault wants exactly one error, which begins with the label and says want;
// an empty want is none at all.
func wantFault(t *testing.T, what string, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("%s: %v, want no error", what, err)
	case want != "" && err == nil:
		t.Errorf("%s: no error, want %q", what, want)
	case want != "" && err.Error() != want:
		t.Errorf("%s:\n got %s\nwant %s", what, err, want)
	}
}

func TestDurationBounds(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		field, env string
		set        func(c *Config, d time.Duration)
		inside     []time.Duration
		outside    []time.Duration
		bounds     string
	}{
		{
			"WindowInterval", "WINDOW_INTERVAL_SECS", func(c *Config, d time.Duration) { c.WindowInterval = d },
			[]time.Duration{100 * msec, 101 * msec, year},
			[]time.Duration{-1, 0, 99 * msec, 100*msec - 1, 100*msec + 1, year + msec, math.MaxInt64, math.MinInt64},
			"100ms … 8760h in whole milliseconds",
		},
		{
			"SyncInterval", "SYNC_INTERVAL_SECS", func(c *Config, d time.Duration) { c.SyncInterval, c.WindowInterval = d, month },
			[]time.Duration{0, 4 * msec, 4*msec + 1, month},
			[]time.Duration{-1, 1, 4*msec - 1, year + 1, math.MaxInt64, math.MinInt64},
			"4ms … 8760h, or 0 to derive it",
		},
		{
			"TickInterval", "TICK_INTERVAL_MS", func(c *Config, d time.Duration) { c.TickInterval, c.WindowInterval = d, month },
			[]time.Duration{0, msec, msec + 1, time.Hour},
			[]time.Duration{-1, 1, msec - 1, time.Hour + 1, math.MaxInt64, math.MinInt64},
			"1ms … 1h, or 0 to derive it",
		},
		{
			"HotSyncInterval", "HOT_SYNC_INTERVAL_MS", func(c *Config, d time.Duration) { c.HotSyncInterval = d },
			[]time.Duration{0, 10 * msec, time.Second - 1},
			[]time.Duration{-1, 1, 10*msec - 1, time.Hour + 1, math.MaxInt64},
			"10ms … 1h, or 0 for off",
		},
		{
			"BurstInterval", "BURST_INTERVAL_SECS", func(c *Config, d time.Duration) { c.BurstInterval, c.WindowInterval = d, year },
			[]time.Duration{0, msec, year},
			[]time.Duration{-1, 1, msec - 1, year + 1, math.MaxInt64, math.MinInt64},
			"1ms … 8760h, or 0 for off",
		},
		{
			"MinSyncInterval", "MIN_SYNC_INTERVAL_MS", func(c *Config, d time.Duration) { c.MinSyncInterval = d },
			[]time.Duration{0, msec, time.Second},
			[]time.Duration{-1, 1, msec - 1, time.Hour + 1, math.MaxInt64},
			"1ms … 1h, or 0 to derive it",
		},
		{
			"LocalCacheTTL", "LOCAL_CACHE_TTL_SECS", func(c *Config, d time.Duration) { c.LocalCacheTTL = d; c.quick() },
			[]time.Duration{0, 100 * msec, 10 * year},
			[]time.Duration{-1, 1, 100*msec - 1, 10*year + 1, math.MaxInt64},
			"100ms … 87600h, or 0 to derive it",
		},
		{
			"LocalCacheIdleTimeout", "LOCAL_CACHE_IDLE_TIMEOUT_SECS",
			func(c *Config, d time.Duration) { c.quick(); c.LocalCacheIdleTimeout, c.LocalCacheTTL = d, 10*year },
			[]time.Duration{0, 100 * msec, 10 * year},
			[]time.Duration{-1, 1, 100*msec - 1, 10*year + 1, math.MaxInt64},
			"100ms … 87600h, or 0 to derive it",
		},
		{
			"GlobalCacheTTL", "GLOBAL_CACHE_TTL_SECS", func(c *Config, d time.Duration) { c.quick(); c.GlobalCacheTTL = d },
			[]time.Duration{0, 200 * msec, 10 * year},
			[]time.Duration{-1, 1, 200*msec - 1, 10*year + 1, math.MaxInt64},
			"200ms … 87600h, or 0 to derive it",
		},
		{
			"GlobalReadTimeout", "READ_TIMEOUT_MS", func(c *Config, d time.Duration) { c.GlobalReadTimeout = d },
			[]time.Duration{msec, time.Minute},
			[]time.Duration{-1, 0, msec - 1, time.Minute + 1, math.MaxInt64},
			"1ms … 1m",
		},
		{
			"GlobalWriteTimeout", "WRITE_TIMEOUT_MS", func(c *Config, d time.Duration) { c.GlobalWriteTimeout = d },
			[]time.Duration{msec, time.Minute},
			[]time.Duration{-1, 0, msec - 1, time.Minute + 1, math.MaxInt64},
			"1ms … 1m",
		},
		{
			"ConnectTimeout", "CONNECT_TIMEOUT_MS", func(c *Config, d time.Duration) { c.ConnectTimeout = d },
			[]time.Duration{msec, time.Minute},
			[]time.Duration{-1, 0, msec - 1, time.Minute + 1, math.MaxInt64},
			"1ms … 1m",
		},
	} {
		for _, d := range row.inside {
			c := validConfig()
			row.set(&c, d)
			wantFault(t, row.field+" "+d.String(), c.Validate(), "")
		}
		for _, d := range row.outside {
			c := validConfig()
			row.set(&c, d)
			want := "ratelimit: " + row.field + " (GLOBAL_RATE_LIMIT_" + row.env + "): " + durationText(d) + ": want " + row.bounds
			wantFault(t, row.field+" "+d.String(), c.Validate(), want)
		}
	}
}

// quick sets the shortest window there is, with an idle timeout to match. It is fixed:
// counts of the others weigh for two windows.
func (c *Config) quick() {
	c.Window, c.WindowInterval, c.SyncInterval, c.LocalCacheIdleTimeout = WindowFixed, 100*msec, 20*msec, 100*msec
}

func TestNumberBounds(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		field, env string
		set        func(c *Config, n int)
		inside     []int
		outside    map[int]string
		bounds     string
	}{
		{"LocalCacheMaxEntries", "LOCAL_CACHE_MAX_ENTRIES", func(c *Config, n int) { c.LocalCacheMaxEntries = n }, []int{1, 1_000_000_000}, map[int]string{-1: "-1", 0: "0", 1_000_000_001: "1000000001"}, "1 … 1000000000"},
		{"ChannelCapacity", "CHANNEL_CAPACITY", func(c *Config, n int) { c.ChannelCapacity = n }, []int{1, 1_000_000_000}, map[int]string{-1: "-1", 0: "0", 1_000_000_001: "1000000001"}, "1 … 1000000000"},
		{"MaxSyncKeysPerTick", "MAX_SYNC_KEYS_PER_TICK", func(c *Config, n int) { c.MaxSyncKeysPerTick = n }, []int{1, 10_000_000}, map[int]string{-1: "-1", 0: "0", 10_000_001: "10000001"}, "1 … 10000000"},
		{"WindowSlices", "WINDOW_SLICES", func(c *Config, n int) { c.WindowSlices = n }, []int{2, 1000}, map[int]string{-1: "-1", 0: "0", 1: "1", 1001: "1001"}, "2 … 1000"},
		{"MaxKeysPerScript", "MAX_KEYS_PER_SCRIPT", func(c *Config, n int) { c.MaxKeysPerScript = n }, []int{1, 10_000}, map[int]string{-1: "-1", 0: "0", 10_001: "10001"}, "1 … 10000"},
		{"MaxKeyBytes", "MAX_KEY_BYTES", func(c *Config, n int) { c.MaxKeyBytes = n }, []int{64, 65_536}, map[int]string{-1: "-1", 0: "0", 63: "63", 65_537: "65537"}, "64 … 65536"},
		{"TierScanIntervalTicks", "TIER_SCAN_INTERVAL_TICKS", func(c *Config, n int) { c.TierScanIntervalTicks = n }, []int{1, 1_000_000}, map[int]string{-1: "-1", 0: "0", 1_000_001: "1000001"}, "1 … 1000000"},
	} {
		for _, n := range row.inside {
			c := validConfig()
			row.set(&c, n)
			wantFault(t, row.field, c.Validate(), "")
		}
		for n, text := range row.outside {
			c := validConfig()
			row.set(&c, n)
			wantFault(t, row.field, c.Validate(), "ratelimit: "+row.field+" (GLOBAL_RATE_LIMIT_"+row.env+"): "+text+": want "+row.bounds)
		}
	}
	for _, threshold := range []uint64{0, 1, 1<<53 - 1, 1 << 53, math.MaxUint64} {
		c := validConfig()
		c.GlobalThreshold, c.CustomKeys = threshold, Overrides{"": threshold, "a,b": threshold}
		wantFault(t, "GlobalThreshold", c.Validate(), "")
	}
}

func TestStringBounds(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		field, env, bounds string
		max                int
		set                func(c *Config, s string)
	}{
		{"RedisKeyPrefix", "REDIS_KEY_PREFIX", "1 … 256 bytes of UTF-8 without control characters", 256, func(c *Config, s string) { c.RedisKeyPrefix = s }},
		{"Scope", "SCOPE", "1 … 128 bytes of UTF-8 without control characters", 128, func(c *Config, s string) { c.Scope = s }},
	} {
		for _, s := range []string{"a", `q"\{}:é €`, strings.Repeat("x", row.max)} {
			c := validConfig()
			row.set(&c, s)
			wantFault(t, row.field+" "+s, c.Validate(), "")
		}
		long := strings.Repeat("x", row.max+1)
		for s, text := range map[string]string{"": `""`, long: shown(long), "a\nb": `"a\nb"`, "a\xffb": `"a\xffb"`, "a\x7f": `"a\x7f"`, "\x00": `"\x00"`} {
			c := validConfig()
			row.set(&c, s)
			wantFault(t, row.field, c.Validate(), "ratelimit: "+row.field+" (GLOBAL_RATE_LIMIT_"+row.env+"): "+text+": want "+row.bounds)
		}
	}
}

func TestRedisURLs(t *testing.T) {
	t.Parallel()
	const label = "ratelimit: RedisURLs (GLOBAL_RATE_LIMIT_REDIS_URLS): "
	const accepted = "accepted: [name=] and redis://, rediss:// [user:password@]host[:port][/db], " +
		"unix://[user:password@]/path[?db=n] or memory://; percent-encode special characters in a password, a comma as %2C"
	many := func(n int) (urls []string) {
		for i := range n {
			urls = append(urls, fmt.Sprintf("redis://a:%d", 1000+i))
		}
		return urls
	}
	for _, row := range []struct {
		urls []string
		want string
	}{
		{nil, label + "not set: want 1 … 256 URLs"},
		{[]string{}, label + "not set: want 1 … 256 URLs"},
		{[]string{"redis://a"}, ""},
		{many(256), ""},
		{[]string{"redis://a", "http://wilma:hunter2@b"}, label + `element 2: "http://***@b": unknown scheme; ` + accepted},
		{[]string{"redis://a", "redis://a/0"}, label + `element 2: "redis://a/0" has the name "a:6379/0" of element 1: give one of them another as name=url`},
		{many(257), label + "257 URLs: want 1 … 256 URLs"},
		{[]string{"redis://a", "", " "}, label + `element 2: "": want a URL` + "\n" + label + `element 3: " ": want a URL`},
	} {
		c := validConfig()
		c.RedisURLs = row.urls
		wantFault(t, strings.Join(row.urls, ","), c.Validate(), row.want)
	}
	c := DefaultConfig()
	wantFault(t, "no URLs, none required", c.validate(false), "")
	c.RedisURLs = []string{""}
	wantFault(t, "a bad URL, none required", c.validate(false), label+`element 1: "": want a URL`)
}

func TestRelations(t *testing.T) {
	t.Parallel()
	const (
		s      = time.Second
		v      = "GLOBAL_RATE_LIMIT_"
		window = " (" + v + "WINDOW_INTERVAL_SECS)"
	)
	label := func(field, env string) string { return "ratelimit: " + field + " (" + v + env + "): " }
	sync, tick, idle := label("SyncInterval", "SYNC_INTERVAL_SECS"), label("TickInterval", "TICK_INTERVAL_MS"), label("LocalCacheIdleTimeout", "LOCAL_CACHE_IDLE_TIMEOUT_SECS")
	for _, row := range []struct {
		what string
		set  func(c *Config)
		want string
	}{
		{"sync = window", func(c *Config) { c.SyncInterval = 60 * s }, ""},
		{"sync > window", func(c *Config) { c.SyncInterval = 60*s + 1 }, sync + "1m0.000000001s: want ≤ WindowInterval, which is 1m" + window},
		{"tick = sync", func(c *Config) { c.SyncInterval, c.TickInterval = 2*s, 2*s }, ""},
		{"tick > sync", func(c *Config) { c.SyncInterval, c.TickInterval = 2*s, 2*s+1 }, tick + "2.000000001s: want ≤ SyncInterval, which is 2s (" + v + "SYNC_INTERVAL_SECS)"},
		{"tick = window/4", func(c *Config) { c.SyncInterval, c.TickInterval = 30*s, 15*s }, ""},
		{"tick > window/4", func(c *Config) { c.SyncInterval, c.TickInterval = 30*s, 15*s+1 }, tick + "15.000000001s: want ≤ WindowInterval / 4, which is 15s" + window},
		{"hot < tick", func(c *Config) { c.HotSyncInterval = s - 1 }, ""},
		{"hot = tick", func(c *Config) { c.HotSyncInterval = s }, label("HotSyncInterval", "HOT_SYNC_INTERVAL_MS") + "1s: want < TickInterval, which is 1s (" + v + "TICK_INTERVAL_MS)"},
		{"idle = TTL", func(c *Config) { c.LocalCacheIdleTimeout = 600 * s }, ""},
		{"idle > derived TTL", func(c *Config) { c.LocalCacheIdleTimeout = 600*s + 1 }, label("LocalCacheTTL", "LOCAL_CACHE_TTL_SECS") + "10m, derived from WindowInterval: want ≥ LocalCacheIdleTimeout, which is 10m0.000000001s (" + v + "LOCAL_CACHE_IDLE_TIMEOUT_SECS)"},
		{"idle = 2 windows", func(c *Config) { c.LocalCacheIdleTimeout = 120 * s }, ""},
		{"idle < 2 windows", func(c *Config) { c.LocalCacheIdleTimeout = 120*s - 1 }, idle + "1m59.999999999s: want ≥ 2 × WindowInterval, which is 2m" + window},
		{"sliding, idle < 2 windows", func(c *Config) { c.Window, c.LocalCacheIdleTimeout = WindowSliding, 120*s-1 }, idle + "1m59.999999999s: want ≥ 2 × WindowInterval, which is 2m" + window},
		{"fixed, idle = window", func(c *Config) { c.Window, c.SyncInterval, c.LocalCacheIdleTimeout = WindowFixed, 10*s, 60*s }, ""},
		{"fixed, idle < window", func(c *Config) { c.Window, c.SyncInterval, c.LocalCacheIdleTimeout = WindowFixed, 10*s, 60*s-1 }, idle + "59.999999999s: want ≥ WindowInterval, which is 1m" + window},
		{"idle > 4 sync", func(c *Config) { c.SyncInterval, c.LocalCacheIdleTimeout = 40*s, 160*s+1 }, ""},
		{"idle = 4 sync", func(c *Config) { c.SyncInterval, c.LocalCacheIdleTimeout = 40*s, 160*s }, idle + "2m40s: want > 4 × SyncInterval, which is 2m40s (" + v + "SYNC_INTERVAL_SECS)"},
		{"burst = window", func(c *Config) { c.BurstInterval = 60 * s }, ""},
		{"burst > window", func(c *Config) { c.BurstInterval = 60*s + 1 }, label("BurstInterval", "BURST_INTERVAL_SECS") + "1m0.000000001s: want ≤ WindowInterval, which is 1m" + window},
		{"min sync = tick", func(c *Config) { c.MinSyncInterval = s }, ""},
		{"min sync > tick", func(c *Config) { c.MinSyncInterval = s + 1 }, label("MinSyncInterval", "MIN_SYNC_INTERVAL_MS") + "1.000000001s: want ≤ TickInterval, which is 1s (" + v + "TICK_INTERVAL_MS)"},
		{"counter TTL = 2 windows", func(c *Config) { c.GlobalCacheTTL = 120 * s }, ""},
		{"counter TTL < 2 windows", func(c *Config) { c.GlobalCacheTTL = 120*s - 1 }, label("GlobalCacheTTL", "GLOBAL_CACHE_TTL_SECS") + "1m59.999999999s: want ≥ 2 × WindowInterval, which is 2m" + window},
	} {
		c := validConfig()
		row.set(&c)
		wantFault(t, row.what, c.Validate(), row.want)
	}
}

// TestNoFollowUpFaults: what depends on a bad field is not reported as well.
func TestNoFollowUpFaults(t *testing.T) {
	t.Parallel()
	c := validConfig()
	c.WindowInterval = math.MaxInt64 // 10 × it would overflow
	c.GlobalCacheTTL = time.Second
	wantFault(t, "window too large", c.Validate(), "ratelimit: WindowInterval (GLOBAL_RATE_LIMIT_WINDOW_INTERVAL_SECS): 2562047h47m16.854775807s: want 100ms … 8760h in whole milliseconds")
	c = validConfig()
	c.SyncInterval, c.TickInterval = -1, 20*time.Second // more than a quarter of the window
	wantFault(t, "sync negative", c.Validate(), `ratelimit: SyncInterval (GLOBAL_RATE_LIMIT_SYNC_INTERVAL_SECS): -1ns: want 4ms … 8760h, or 0 to derive it
ratelimit: TickInterval (GLOBAL_RATE_LIMIT_TICK_INTERVAL_MS): 20s: want ≤ WindowInterval / 4, which is 15s (GLOBAL_RATE_LIMIT_WINDOW_INTERVAL_SECS)`)
}

func TestAllFaultsAtOnceInOrder(t *testing.T) {
	t.Parallel()
	err := Config{HotSyncInterval: -1, WindowInterval: time.Second}.Validate()
	var fields []string
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		t.Fatalf("Validate = %v, want joined errors", err)
	}
	for _, err := range joined.Unwrap() {
		text := err.Error()
		if !strings.HasPrefix(text, "ratelimit: ") || !strings.Contains(text, ": want ") || errors.Unwrap(err) != nil {
			t.Errorf("error %q", text)
		}
		fields = append(fields, strings.Fields(text)[1])
	}
	want := "Window WindowSlices WindowZone HotSyncInterval LocalCacheMaxEntries RedisURLs RedisKeyPrefix GlobalReadTimeout GlobalWriteTimeout ConnectTimeout ChannelCapacity MaxSyncKeysPerTick MaxKeysPerScript MaxKeyBytes TierScanIntervalTicks Scope"
	if got := strings.Join(fields, " "); got != want {
		t.Errorf("faults of an almost empty Config:\n got %s\nwant %s", got, want)
	}
}
