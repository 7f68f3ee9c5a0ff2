// The metrics table: the only source of every metric's name, labels, buckets
// and description.

package main

import "github.com/hanzoai/limiters/ratelimit/store"

var (
	perPartition = label{Name: "partition"}
	operations   = label{Name: "op", Values: []string{"write", "read"}}
	tiers        = []string{"idle", "low", "normal", "hot"}
)

var metricsTable = metricTable{
	Prefix: "global_rate_limiter_",
	Metrics: []metric{
		{
			Name: "eval_counts_total", Field: "eval", Kind: "counter", Form: named, Unit: "decisions",
			Labels: []label{{"result", []string{"allowed", "limited"}}},
			Help:   "Decisions by verdict: what enforcement says, in a dry run too.",
		},
		{
			Name: "dry_run_limited_total", Field: "dryRunLimited", Kind: "counter", Form: single, Unit: "decisions",
			Help: "Decisions that were limited and allowed all the same, because of the dry run.",
		},
		{
			Name: "cache_counts_total", Field: "cache", Kind: "counter", Form: named, Unit: "look-ups",
			Labels: []label{{"result", []string{"hit", "miss", "sync_queued"}}},
			Help:   "Look-ups in the local table that found the entity or not, and those that queued it for a sync.",
		},
		{
			Name: "cache_size", Field: "cacheSize", Kind: "gauge", Form: single, Unit: "entities",
			Help: "Entities in the local table; LocalCacheMaxEntries is its bound.",
		},
		{
			Name: "eviction_total", Field: "eviction", Kind: "counter", Form: named, Unit: "entities",
			Labels: []label{{"cause", []string{"size", "expired", "explicit"}}},
			Help:   "Entities evicted: for want of room, idle for too long, or forgotten on request.",
		},
		{
			Name: "sync_tier_gauge", Field: "syncTier", Kind: "gauge", Form: indexed, Unit: "entities",
			Labels: []label{{"tier", tiers}},
			Help:   "Entities in each tier, as of the last scan (every TierScanIntervalTicks).",
		},
		{
			Name: "tier_transitions_total", Field: "tierTransitions", Kind: "counter", Form: paired, Unit: "transitions",
			Labels: []label{{"from", tiers}, {"to", tiers}},
			Help:   "Entities that moved from one tier to another.",
		},
		{
			Name: "tick_ms", Field: "tickMS", Kind: "histogram", Form: single, Unit: "milliseconds",
			Buckets: []string{"1", "2", "5", "10", "25", "50", "100", "150", "250", "400", "600", "1000", "2000", "4000"},
			Help:    "Duration of a whole tick.",
		},
		{
			Name: "pipeline_ms", Field: "pipelineMS", Kind: "histogram", Form: partition, Unit: "milliseconds",
			Labels:  []label{perPartition},
			Buckets: []string{"0.5", "1", "2", "5", "10", "20", "30", "50", "75", "100", "150", "250", "500", "1000"},
			Help:    "Time from sending a batch, or a question to a partition without traffic, to its reply or its failure.",
		},
		{
			Name: "pipeline_size", Field: "pipelineSize", Kind: "histogram", Form: named, Unit: "counters",
			Labels:  []label{operations},
			Buckets: []string{"1", "10", "50", "100", "500", "1000", "2000", "5000", "10000", "20000", "50000"},
			Help:    "Counters that one acknowledged batch wrote (write), and those that it only read (read).",
		},
		{
			Name: "records_total", Field: "records", Kind: "counter", Form: crossed, Unit: "counters",
			Labels: []label{operations, perPartition},
			Help:   "Counters written and counters read in acknowledged batches.",
		},
		{
			Name: "batch_retries_total", Field: "batchRetries", Kind: "counter", Form: partition, Unit: "attempts",
			Labels: []label{perPartition},
			Help:   "Attempts at a batch that an earlier attempt may have applied; refusals and missing connections alone make none.",
		},
		{
			Name: "error_total", Field: "errorTotal", Kind: "counter", Form: failures, Unit: "attempts",
			Labels: []label{{Name: "step"}, {Name: "cause"}, perPartition},
			Help:   "Attempts at a batch, and questions to a partition without traffic, that failed, by where and why. A time series appears with its first failure.",
		},
		{
			Name: "partition_up", Field: "partitionUp", Kind: "gauge", Form: partition, Unit: "0 or 1",
			Labels: []label{perPartition},
			Help:   "1 once the partition has answered, 0 once three attempts in a row have failed over a second or more. A partition without traffic is asked every ten seconds.",
		},
		{
			Name: "clock_skew_ms", Field: "clockSkewMS", Kind: "gauge", Form: partition, Unit: "milliseconds",
			Labels: []label{perPartition},
			Help:   "How far the clock of the Redis is ahead of this node's, from the last reply.",
		},
		{
			Name: "pending_sync_size", Field: "pendingSyncSize", Kind: "gauge", Form: single, Unit: "entities",
			Help: "Entities queued for a sync, all partitions together; LocalCacheMaxEntries + ChannelCapacity is its bound.",
		},
		{
			Name: "deferred_size", Field: "deferredSize", Kind: "gauge", Form: single, Unit: "entities",
			Help: "Entities that the last tick left in the queues because MaxSyncKeysPerTick was reached.",
		},
		{
			Name: "undelivered_units", Field: "undeliveredUnits", Kind: "gauge", Form: single, Unit: "units",
			Help: "Units counted here that Redis has not acknowledged: unsent and in flight.",
		},
		{
			Name: "dropped_units_total", Field: "dropped", Kind: "counter", Form: named, Unit: "units",
			Labels: []label{{"cause", []string{"stale", "poisoned", "overflow", "closed", "unknown"}}},
			Help:   "Units given up: no read could see their epoch any more, their counter is unusable, a bound was reached, or the limiter was closed. unknown: the fate of their batch was never learned; they may be in Redis.",
		},
		{
			Name: "returned_units_total", Field: "returned", Kind: "counter", Form: named, Unit: "units",
			Labels: []label{{"result", []string{"taken", "clamped", "unknown"}}},
			Help:   "Units given back (Reservation.Commit, Cancel): taken, and so no longer counted; clamped, because their counter no longer held them or no check can see it any more. unknown: asked of Redis, whose answer was never learned.",
		},
		{
			Name: "fleet_checks_total", Field: "fleet", Kind: "counter", Form: named, Unit: "calls",
			Labels: []label{{"result", []string{"allowed", "limited", "local", "canceled"}}},
			Help:   "Calls of CheckFleet and PeekFleet: allowed or limited by the fleet's counters; local, because Redis could not be asked in time, and so decided by this node; canceled, because their context ended first.",
		},
		{
			Name: "fleet_check_ms", Field: "fleetCheckMS", Kind: "histogram", Form: single, Unit: "milliseconds",
			Buckets: []string{"0.25", "0.5", "1", "2", "5", "10", "20", "30", "50", "75", "100", "150", "250", "500", "1000"},
			Help:    "Time that a call of CheckFleet or PeekFleet took, whatever came of it.",
		},
		{
			Name: "waiting_calls", Field: "waitingCalls", Kind: "gauge", Form: single, Unit: "calls",
			Help: "Calls of Wait that wait.",
		},
		{
			Name: "estimate_drift", Field: "estimateDrift", Kind: "histogram", Form: single, Unit: "thresholds",
			Buckets: []string{"0.001", "0.005", "0.01", "0.05", "0.1", "0.25", "0.5", "1"},
			Help:    "What a sync corrected: |local level − fleet level| / threshold.",
		},
		{
			Name: "sync_staleness_ms", Field: "syncStalenessMS", Kind: "histogram", Form: single, Unit: "milliseconds",
			Buckets: []string{"100", "500", "1000", "2000", "5000", "10000", "15000", "30000", "60000", "120000"},
			Help:    "Age of the estimate that a decision used, sampled once per entity and tick.",
		},
		{
			Name: "window_seconds", Field: "windowSeconds", Kind: "gauge", Form: single, Unit: "seconds",
			Help: "The window of this limiter.",
		},
		{
			Name: "window_mismatch_total", Field: "windowMismatch", Kind: "counter", Form: single, Unit: "replies",
			Help: "Replies saying that the fleet works with another window under the same key prefix: the budget is split until they agree.",
		},
		{
			Name: "overlapping_prefixes", Field: "overlappingPrefixes", Kind: "gauge", Form: partition, Unit: "prefixes",
			Labels: []label{perPartition},
			Help:   "Shorter key prefixes in use, of limiters whose keys may share counters with this one's; those that an access list or a cluster hides are not seen.",
		},
		{
			Name: "forgotten_batches_total", Field: "forgottenBatches", Kind: "counter", Form: partition, Unit: "batches",
			Labels: []label{perPartition},
			Help:   "Batches that met a Redis without what it had acknowledged before: its data was lost or rolled back, or the limiter's sequence key evicted.",
		},
		{
			Name: "lost_totals_total", Field: "lostTotals", Kind: "counter", Form: single, Unit: "counters",
			Help: "Totals that were below what this node had delivered to their counter: Redis evicted or lost it.",
		},
		{
			Name: "overrides_loaded", Field: "overridesLoaded", Kind: "gauge", Form: single, Unit: "entity keys",
			Help: "Overrides in force.",
		},
		{
			Name: "overrides_checksum", Field: "overridesChecksum", Kind: "gauge", Form: single, Unit: "none",
			Help: "A checksum of the overrides in force, their keys and thresholds: nodes with the same have the same. 0 if there are none.",
		},
		{
			Name: "threshold", Field: "threshold", Kind: "gauge", Form: single, Unit: "units per window",
			Help: "The global threshold, of keys without one of their own.",
		},
		{
			Name: "build_info", Field: "buildInfo", Kind: "gauge", Form: described, Unit: "none",
			Labels: []label{{Name: "version"}, {Name: "go_version"}},
			Help:   "Always 1: the version of the library's module, and that of Go.",
		},
		{
			Name: "overrides_refresh_total", Kind: "counter", Form: elsewhere, Unit: "refreshes",
			Labels: []label{{"result", []string{"ok", "absent", "unreachable", "malformed"}}},
			Help:   "Refreshes of the overrides by package overrides, by result.",
		},
		{
			Name: "overrides_refresh_ok", Kind: "gauge", Form: elsewhere, Unit: "0 or 1",
			Help: "1 if the last refresh of the overrides was ok.",
		},
		{
			Name: "overrides_refresh_success_timestamp_seconds", Kind: "gauge", Form: elsewhere, Unit: "seconds",
			Help: "Unix time of the last refresh of the overrides that was ok; 0 if there was none.",
		},
		{
			Name: "plans_refresh_total", Kind: "counter", Form: elsewhere, Unit: "refreshes",
			Labels: []label{{"result", []string{"ok", "refused"}}},
			Help:   "Refreshes of a file of plans by package plans, by result.",
		},
		{
			Name: "plans_refresh_ok", Kind: "gauge", Form: elsewhere, Unit: "0 or 1",
			Help: "1 if the last refresh of the file of plans was ok.",
		},
	},
	Steps: []constant{
		{"StepConnect", store.StepConnect},
		{"StepSend", store.StepSend},
		{"StepReply", store.StepReply},
		{"StepDecode", store.StepDecode},
	},
	Causes: []constant{
		{"CauseTimeout", store.CauseTimeout},
		{"CauseClosed", store.CauseClosed},
		{"CauseUnreachable", store.CauseUnreachable},
		{"CausePoolExhausted", store.CausePoolExhausted},
		{"CauseTLS", store.CauseTLS},
		{"CauseAuth", store.CauseAuth},
		{"CausePermission", store.CausePermission},
		{"CauseReadOnly", store.CauseReadOnly},
		{"CauseLoading", store.CauseLoading},
		{"CauseMasterDown", store.CauseMasterDown},
		{"CauseOutOfMemory", store.CauseOutOfMemory},
		{"CauseNoReplicas", store.CauseNoReplicas},
		{"CauseMisconf", store.CauseMisconf},
		{"CauseBusy", store.CauseBusy},
		{"CauseMaxClients", store.CauseMaxClients},
		{"CauseCluster", store.CauseCluster},
		{"CauseProtocol", store.CauseProtocol},
		{"CauseMalformed", store.CauseMalformed},
		{"CauseCanceled", store.CauseCanceled},
		{"CauseOther", store.CauseOther},
	},
}
