// The alerts' table: what should wake somebody, what should be looked at in the
// morning, and what is worth knowing.

package main

var alertsTable = alerts{
	Group:   "limiters",
	Runbook: "https://github.com/hanzoai/limiters/blob/main/docs/operations.md",
	Alerts: []alert{
		{
			Name: "LimiterPartitionDownEverywhere", For: "2m", Severity: "critical",
			Expr:        "max by (job, scope, partition) (<partition_up>) == 0",
			Summary:     "No node of {{ $labels.job }} reaches partition {{ $labels.partition }}.",
			Description: "Limiter {{ $labels.scope }}: every node limits the partition's entities by its own traffic alone, so the fleet may admit up to one threshold per node. Units wait, and are dropped as stale after two windows.",
		},
		{
			Name: "LimiterPartitionDown", For: "2m", Severity: "warning",
			Expr:        "<partition_up> == 0 and on (job, scope, partition) max by (job, scope, partition) (<partition_up>) == 1",
			Summary:     "{{ $labels.instance }} does not reach partition {{ $labels.partition }}.",
			Description: "Limiter {{ $labels.scope }}: this node limits the partition's entities by its own traffic alone, and the fleet does not know what it counts. Look at its log, and at the steps and causes of its failed attempts.",
		},
		{
			Name: "LimiterSyncsFailing", For: "10m", Severity: "warning",
			Expr:        "sum without (step, cause) (rate(<error_total>[5m])) / rate(<pipeline_ms_count>[5m]) > 0.05 and min_over_time(<partition_up>[5m]) == 1",
			Summary:     "{{ $value | humanizePercentage }} of the syncs of {{ $labels.instance }} with partition {{ $labels.partition }} fail.",
			Description: "Limiter {{ $labels.scope }}: the partition is up, but the fleet learns of counts late. No unit is counted twice; one that waits for more than two windows is dropped (LimiterUnitsDropped). Mostly timeouts: Redis is slow, or its network is.",
		},
		{
			Name: "LimiterUnitsDropped", Severity: "warning",
			Expr:        `increase(<dropped_units_total{cause=~"stale|overflow|unknown"}>[10m]) > 0`,
			Summary:     "{{ $labels.instance }} dropped {{ $value | humanize }} units as {{ $labels.cause }}.",
			Description: "Limiter {{ $labels.scope }}: the fleet's totals lack these units, so more than the threshold was or will be admitted. Of unknown ones some may be in Redis.",
		},
		{
			Name: "LimiterCountsLost", Severity: "warning",
			Expr:        "increase(<forgotten_batches_total>[10m]) > 0",
			Summary:     "Partition {{ $labels.partition }} of limiter {{ $labels.scope }} lost counts that it had acknowledged.",
			Description: "{{ $labels.instance }} found it without them: its data was flushed or rolled back, a replica took over that was behind, or the limiter's keys were evicted. The fleet admits up to a threshold again.",
		},
		{
			Name: "LimiterCountersPoisoned", Severity: "warning",
			Expr:        `increase(<dropped_units_total{cause="poisoned"}>[10m]) > 0`,
			Summary:     "Counters of limiter {{ $labels.scope }} in Redis do not hold counts.",
			Description: "Something else writes to the limiter's keys. The entities concerned are limited by each node on its own ({{ $labels.instance }} dropped {{ $value | humanize }} units) until their keys expire.",
		},
		{
			Name: "LimiterTickOverloaded", For: "5m", Severity: "warning",
			Expr:        "min_over_time(<deferred_size>[5m]) > 0",
			Summary:     "The ticks of {{ $labels.instance }} leave {{ $value | humanize }} entities behind.",
			Description: "Limiter {{ $labels.scope }}: more entities have something to sync than MaxSyncKeysPerTick allows. Those that are near their threshold go first; the rest is synced late, or dropped as stale.",
		},
		{
			Name: "LimiterTickSlow", For: "10m", Severity: "warning",
			Expr:        "histogram_quantile(0.99, sum by (job, instance, scope, le) (rate(<tick_ms_bucket>[10m]))) > 1000",
			Summary:     "A tick of {{ $labels.instance }} takes {{ $value | humanize }} ms.",
			Description: "Limiter {{ $labels.scope }}: ticks are skipped when one takes longer than TickInterval, 1 s by default, and the fleet learns of counts later. Either many batches go out in one tick, or Redis or its network is slow.",
		},
		{
			Name: "LimiterClockSkew", For: "10m", Severity: "warning",
			Expr:        "abs(<clock_skew_ms>) > ignoring (partition) group_left () clamp_max(100 * <window_seconds>, 2500)",
			Summary:     "The clocks of {{ $labels.instance }} and of partition {{ $labels.partition }} differ by {{ $value | humanize }} ms.",
			Description: "Limiter {{ $labels.scope }}: counts go into the epochs of the node's clock. A node that is off counts early or late, and one that is a window off does not limit with the fleet at all.",
		},
		{
			Name: "LimiterWindowMismatch", For: "5m", Severity: "warning",
			Expr:        "increase(<window_mismatch_total>[5m]) > 0",
			Summary:     "{{ $labels.instance }} shares its keys with a limiter that has another window.",
			Description: "Limiter {{ $labels.scope }}: the two count in different keys, so each admits a whole threshold. Expected while a change of the window is rolled out, and for up to an hour after.",
		},
		{
			Name: "LimiterOverridesDiffer", For: "15m", Severity: "warning",
			Expr:        "max by (job, scope) (<overrides_checksum>) != min by (job, scope) (<overrides_checksum>)",
			Summary:     "The nodes of {{ $labels.job }} have different overrides.",
			Description: "Limiter {{ $labels.scope }}: some node did not get the last change, so an entity has different thresholds on different nodes.",
		},
		{
			Name: "LimiterOverridesNotRead", For: "15m", Severity: "warning",
			Expr:        "<overrides_refresh_ok> == 0",
			Summary:     "{{ $labels.instance }} cannot read its overrides.",
			Description: "Limiter {{ $labels.scope }}: those in force stay, so a change of a limit, or a new block, has no effect on this node. Its log says why.",
		},
		{
			Name: "LimiterPlansRefused", For: "15m", Severity: "warning",
			Expr:        "<plans_refresh_ok> == 0",
			Summary:     "{{ $labels.instance }} refuses its file of plans.",
			Description: "Plans {{ $labels.scope }}: those in force stay, so a change has no effect on this node. Its log says file, line and field; limits check says it before a roll-out.",
		},
		{
			Name: "LimiterTableTooSmall", For: "30m", Severity: "info",
			Expr:        `increase(<eviction_total{cause="size"}>[10m]) > ignoring (cause) <cache_size>`,
			Summary:     "{{ $labels.instance }} replaces its whole local table within ten minutes.",
			Description: "Limiter {{ $labels.scope }}: more entities are active than LocalCacheMaxEntries. An evicted entity's next request is a first contact, which is allowed.",
		},
		{
			Name: "LimiterEstimatesDrift", For: "30m", Severity: "info",
			Expr:        "histogram_quantile(0.9, sum by (job, scope, le) (rate(<estimate_drift_bucket>[30m]))) > 0.25",
			Summary:     "Syncs of limiter {{ $labels.scope }} correct levels by {{ $value | humanizePercentage }} of the threshold.",
			Description: "{{ $labels.job }}: what nodes decide on between syncs is far from what the fleet counted. Load on single entities is many times their threshold, or syncs come late.",
		},
	},
}
