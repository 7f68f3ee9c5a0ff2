// The configuration table: the only source of every setting's name, type,
// default, variable, bounds and description.

package main

import "time"

const (
	ms   = int64(time.Millisecond)
	sec  = int64(time.Second)
	hour = int64(time.Hour)
	year = 365 * 24 * hour
)

var configTable = config{
	Prefix: "GLOBAL_RATE_LIMIT_",
	Groups: []group{
		{Title: "Rate limiting", Fields: []field{
			{
				Name: "GlobalThreshold", Env: "THRESHOLD",
				Type: "uint64", Default: "1_000_000",
				Doc: "is the limit of an entity without an override, in units per window. 0 blocks every unit; above 2^53 − 1, where counts saturate, nothing is ever limited.",
			},
			{
				Name: "WindowInterval", Env: "WINDOW_INTERVAL_SECS",
				Type: "time.Duration", Default: "60 * time.Second", Unit: time.Second,
				Min: 100 * ms, Max: year, Step: ms,
				Doc: "is the window: the length of an epoch, and the time over which a threshold is meant. All limiters that share a Redis and a key prefix must use the same one.",
			},
			{
				Name: "Window", Env: "WINDOW",
				Type: "WindowKind", Default: "WindowLeaky", Values: []string{"leaky", "sliding", "fixed"},
				Doc: "is what counts against a threshold: a bucket that leaks (leaky), what came within the last window (sliding), or what came since the window began (fixed).",
			},
			{
				Name: "WindowSlices", Env: "WINDOW_SLICES",
				Type: "int", Default: "30", Min: 2, Max: 1000,
				Doc: "is in how many slices a sliding window keeps what it counted. At steady load the worst window holds 1 + load / (4 × slices) thresholds on one node; each slice takes 8 bytes of a busy entity.",
			},
			{
				Name: "WindowStrict", Env: "WINDOW_STRICT", Type: "bool",
				Doc: "counts the oldest slice of a sliding window whole, until the window has left it. With StrictFirstContact no window of one node then exceeds the threshold, at the price of 1 / WindowSlices of it. It is accepted for sliding only.",
			},
			{
				Name: "WindowCalendar", Env: "WINDOW_CALENDAR",
				Type: "Calendar", Values: []string{"", "hour", "day", "week", "month"},
				Doc: "makes a fixed window an hour, a day, an ISO week or a month of the calendar. Empty, windows are WindowInterval long and counted from the Unix epoch. With a calendar WindowInterval is the longest such period, whatever it is set to; unless set, SyncInterval is an eighth of it, at most 15m, LocalCacheIdleTimeout that period and LocalCacheTTL two; a counter in Redis lives until its period ends. It is accepted for fixed only.",
			},
			{
				Name: "WindowZone", Env: "WINDOW_ZONE",
				Type: "string", Default: `"UTC"`, Min: 1, Max: 128,
				Doc: "is the time zone of the calendar's days, weeks and months, by its IANA name; hours are those of UTC. Another than UTC is accepted for fixed only.",
			},
			{
				Name: "BurstInterval", Env: "BURST_INTERVAL_SECS",
				Type: "time.Duration", Unit: time.Second, Min: ms, Max: year, Off: true,
				Doc: "bounds what may come at once: threshold × BurstInterval / WindowInterval units, refilled at threshold / WindowInterval. Off, the threshold alone bounds it.",
			},
			{
				Name: "Inclusive", Env: "INCLUSIVE", Type: "bool",
				Doc: "lets a threshold of T admit T units. Without it, as in the design this library follows, the T-th unit of a window is limited.",
			},
			{
				Name: "SyncInterval", Env: "SYNC_INTERVAL_SECS",
				Type: "time.Duration", Unit: time.Second, Min: 4 * ms, Max: year,
				From: "WindowInterval", Derive: "c.WindowInterval / 4", DeriveText: "WindowInterval / 4", Usual: "15s",
				Doc: "is the time after which an entity of the Normal tier needs a read; the Low tier waits four times as long, the Hot tier half as long.",
			},
			{
				Name: "TickInterval", Env: "TICK_INTERVAL_MS",
				Type: "time.Duration", Unit: time.Millisecond, Min: ms, Max: hour,
				From: "SyncInterval", Derive: "min(time.Second, c.SyncInterval/4)", DeriveText: "the lesser of 1s and SyncInterval / 4", Usual: "1s",
				Doc: "is the time between two ticks of a partition: how long a unit counted here may wait before it is sent to the fleet.",
			},
			{
				Name: "HotSyncInterval", Env: "HOT_SYNC_INTERVAL_MS",
				Type: "time.Duration", Unit: time.Millisecond, Min: 10 * ms, Max: hour, Off: true,
				Doc: "is how often Hot entities with something unsent are synced as well, between ticks. It bounds what a large fleet admits above a threshold, at the price of more round trips.",
			},
			{
				Name: "SyncByUnits", Env: "SYNC_BY_UNITS", Type: "bool", Default: "true",
				Doc: "syncs an entity between ticks as soon as this node holds more unsent units of it than its part of what the fleet may hide, so that a burst is limited within a fraction of a tick. Without it there is one sync per tick.",
			},
			{
				Name: "MinSyncInterval", Env: "MIN_SYNC_INTERVAL_MS",
				Type: "time.Duration", Unit: time.Millisecond, Min: ms, Max: hour,
				From: "TickInterval", Derive: "max(time.Millisecond, c.TickInterval/50)", DeriveText: "the greater of 1ms and TickInterval / 50", Usual: "20ms",
				Doc: "is the least time between two scripts of a partition that SyncByUnits asks for.",
			},
			{
				Name: "CustomKeys", Env: "OVERRIDES_CSV", Type: "Overrides",
				Doc: "holds the overrides: the threshold of each entity key that has its own, in units per window.",
			},
			{
				Name: "CountLimited", Env: "COUNT_LIMITED", Type: "bool",
				Doc: "records the units of limited requests too. An entity offered twice its limit for ever is then locked out until it slows down; without it, it gets its limit.",
			},
			{
				Name: "StrictFirstContact", Env: "STRICT_FIRST_CONTACT", Type: "bool",
				Doc: "allows the first contact with an entity only if its units are below the threshold. Without it, first contact is allowed whatever it asks, except at a threshold of 0.",
			},
			{
				Name: "DryRun", Env: "DRY_RUN", Type: "bool",
				Doc: "decides and counts exactly as if limits were enforced, and allows everything; the decision and a metric tell what enforcement would have said.",
			},
		}},
		{Title: "Local table", Fields: []field{
			{
				Name: "LocalCacheMaxEntries", Env: "LOCAL_CACHE_MAX_ENTRIES",
				Type: "int", Default: "300_000", Min: 1, Max: 1_000_000_000,
				Doc: "is how many entities this process remembers. Above it entities are evicted, those that are limited last. One whose units are not delivered stays until they are: see ChannelCapacity.",
			},
			{
				Name: "LocalCacheTTL", Env: "LOCAL_CACHE_TTL_SECS",
				Type: "time.Duration", Unit: time.Second, Min: 100 * ms, Max: 10 * year,
				From: "WindowInterval", Derive: "10 * c.WindowInterval", DeriveText: "10 × WindowInterval", Usual: "10m",
				Doc: "is how long after its creation, or its last read from scratch, an entity must be read from scratch again, however busy it is.",
			},
			{
				Name: "LocalCacheIdleTimeout", Env: "LOCAL_CACHE_IDLE_TIMEOUT_SECS",
				Type: "time.Duration", Unit: time.Second, Min: 100 * ms, Max: 10 * year,
				From: "WindowInterval", Derive: "5 * c.WindowInterval", DeriveText: "5 × WindowInterval", Usual: "5m",
				Doc: "is how long an entity may go without a request before it is evicted.",
			},
		}},
		{Title: "Redis", Fields: []field{
			{
				Name: "RedisURLs", Env: "REDIS_URLS", Type: "[]string",
				Required: true, Min: 1, Max: 256,
				Doc: "are the Redis servers, one partition each: redis://, rediss:// or unix://, with user, password and database, or memory:// for one process on its own. name=url names a partition, which otherwise is called by host, port and database. A comma in a password is written %2C.",
			},
			{
				Name: "RedisKeyPrefix", Env: "REDIS_KEY_PREFIX",
				Type: "string", Default: `"@hanzo/global_rate_limiter"`, Min: 1, Max: 256,
				Doc: "begins the name of every key in Redis.",
			},
			{
				Name: "GlobalCacheTTL", Env: "GLOBAL_CACHE_TTL_SECS",
				Type: "time.Duration", Unit: time.Second, Min: 200 * ms, Max: 10 * year,
				From: "WindowInterval", Derive: "2 * c.WindowInterval", DeriveText: "2 × WindowInterval", Usual: "2m",
				Doc: "is the least time a counter lives in Redis. A margin for clocks that differ and up to a tenth of jitter come on top.",
			},
			{
				Name: "GlobalReadTimeout", Env: "READ_TIMEOUT_MS",
				Type: "time.Duration", Default: "100 * time.Millisecond", Unit: time.Millisecond, Min: ms, Max: 60 * sec,
				Doc: "bounds, with GlobalWriteTimeout, how long a sync waits for the reply of Redis: a sync reads and writes at once, so the larger of the two counts.",
			},
			{
				Name: "GlobalWriteTimeout", Env: "WRITE_TIMEOUT_MS",
				Type: "time.Duration", Default: "100 * time.Millisecond", Unit: time.Millisecond, Min: ms, Max: 60 * sec,
				Doc: "bounds how long a sync may take to send its request.",
			},
			{
				Name: "ConnectTimeout", Env: "CONNECT_TIMEOUT_MS",
				Type: "time.Duration", Default: "time.Second", Unit: time.Millisecond, Min: ms, Max: 60 * sec,
				Doc: "bounds how long a new connection to Redis may take, TLS and log-in included.",
			},
		}},
		{Title: "Bounds on work and memory", Fields: []field{
			{
				Name: "ChannelCapacity", Env: "CHANNEL_CAPACITY",
				Type: "int", Default: "1_000_000", Min: 1, Max: 1_000_000_000,
				Doc: "is how many entities more than LocalCacheMaxEntries this process remembers while they have units to deliver: in a flood of new keys, or while Redis is away. Beyond it unsent units are dropped as overflow.",
			},
			{
				Name: "MaxSyncKeysPerTick", Env: "MAX_SYNC_KEYS_PER_TICK",
				Type: "int", Default: "20_000", Min: 1, Max: 10_000_000,
				Doc: "is how many entities one tick syncs; the rest is deferred to the next one, entities with pressure first. Partitions share it evenly.",
			},
			{
				Name: "MaxKeysPerScript", Env: "MAX_KEYS_PER_SCRIPT",
				Type: "int", Default: "500", Min: 1, Max: 10_000,
				Doc: "is how many entities one script call carries, and so how long a call may hold Redis.",
			},
			{
				Name: "MaxKeyBytes", Env: "MAX_KEY_BYTES",
				Type: "int", Default: "512", Min: 64, Max: 65_536,
				Doc: "is the length of the longest entity key that is used as it is. A longer one is represented by its SHA-256; overrides and the resolver see the original.",
			},
			{
				Name: "TierScanIntervalTicks", Env: "TIER_SCAN_INTERVAL_TICKS",
				Type: "int", Default: "30", Min: 1, Max: 1_000_000,
				Doc: "is the number of ticks between two scans of the local table, which evict the idle, count the tiers and queue what a full queue turned away.",
			},
		}},
		{Title: "Metrics", Fields: []field{
			{
				Name: "Scope", Env: "SCOPE", Type: "string", Default: `"default"`, Min: 1, Max: 128,
				Doc: "is the scope label of every metric; it tells the limiters of one process apart.",
			},
		}},
	},
	Relations: []relation{
		{Left: "BurstInterval", Op: "≤", Mul: 1, Div: 1, Right: "WindowInterval", Why: "the threshold bounds what comes within a window"},
		{Left: "SyncInterval", Op: "≤", Mul: 1, Div: 1, Right: "WindowInterval", Why: "an estimate older than a window says nothing"},
		{Left: "TickInterval", Op: "≤", Mul: 1, Div: 1, Right: "SyncInterval", Why: "a read that is due waits for the next tick"},
		{Left: "TickInterval", Op: "≤", Mul: 1, Div: 4, Right: "WindowInterval", Why: "the fleet must learn of a count well within its window"},
		{Left: "HotSyncInterval", Op: "<", Mul: 1, Div: 1, Right: "TickInterval", Why: "it adds syncs between ticks"},
		{Left: "LocalCacheTTL", Op: "≥", Mul: 1, Div: 1, Right: "LocalCacheIdleTimeout", Why: "an idle entity goes before an old one"},
		{Left: "LocalCacheIdleTimeout", Op: "≥", Mul: 2, Div: 1, Fixed: 1, Right: "WindowInterval", Why: "what is evicted earlier still counts"},
		{Left: "LocalCacheIdleTimeout", Op: ">", Mul: 4, Div: 1, Right: "SyncInterval", Why: "an entity of the Low tier is read every 4 × SyncInterval"},
		{Left: "MinSyncInterval", Op: "≤", Mul: 1, Div: 1, Right: "TickInterval", Why: "it is for syncs between ticks"},
		{Left: "GlobalCacheTTL", Op: "≥", Mul: 2, Div: 1, Right: "WindowInterval", Why: "the counters of two epochs are read"},
	},
}
