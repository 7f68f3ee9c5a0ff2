// The dashboard's table: what an operator looks at, from what users notice down to
// what explains it.

package main

var dashboardTable = dashboard{
	UID:   "limiters",
	Title: "Limiters",
	Pick:  "window_seconds",
	Rows: []row{
		{Title: "What is decided", Panels: []panel{
			{
				Title: "Decisions", Unit: "ops", Stacked: true,
				Doc:     "Decisions per second by verdict, all nodes together. In a dry run limited ones are allowed all the same.",
				Queries: []query{{"sum by (job, scope, result) (rate(<eval_counts_total>[$__rate_interval]))", "{{job}} {{scope}} {{result}}"}},
			},
			{
				Title: "Share limited", Unit: "percentunit",
				Doc:     "The part of the decisions that are limited.",
				Queries: []query{{`sum by (job, scope) (rate(<eval_counts_total{result="limited"}>[$__rate_interval])) / sum by (job, scope) (rate(<eval_counts_total>[$__rate_interval]))`, "{{job}} {{scope}}"}},
			},
			{
				Title: "Limited in the dry run", Unit: "ops",
				Doc:     "Decisions per second that a limiter in dry run allowed and would have limited. What enforcing would refuse.",
				Queries: []query{{"sum by (job, scope) (rate(<dry_run_limited_total>[$__rate_interval]))", "{{job}} {{scope}}"}},
			},
			{
				Title: "Entities by tier", Unit: "short", Stacked: true,
				Doc:     "Entities in the local tables by how close they are to their threshold: idle below 10 %, low below 50 %, normal below 80 %, hot from there. An entity is counted on every node that knows it.",
				Queries: []query{{"sum by (job, scope, tier) (<sync_tier_gauge>)", "{{job}} {{scope}} {{tier}}"}},
			},
			{
				Title: "Moves between tiers", Unit: "ops",
				Doc:     "Entities per second that moved to another tier.",
				Queries: []query{{"sum by (job, scope, from, to) (rate(<tier_transitions_total>[$__rate_interval]))", "{{job}} {{scope}} {{from}} → {{to}}"}},
			},
			{
				Title: "Overrides in force", Unit: "short",
				Doc: "The most and the fewest overrides that a node has. The two lines differ while nodes disagree.",
				Queries: []query{
					{"max by (job, scope) (<overrides_loaded>)", "most {{job}} {{scope}}"},
					{"min by (job, scope) (<overrides_loaded>)", "fewest {{job}} {{scope}}"},
				},
			},
			{
				Title: "Checksum of the overrides", Unit: "short",
				Doc: "The highest and the lowest checksum of a node's overrides. The two lines differ while nodes have different ones, which they may for an interval after a change.",
				Queries: []query{
					{"max by (job, scope) (<overrides_checksum>)", "highest {{job}} {{scope}}"},
					{"min by (job, scope) (<overrides_checksum>)", "lowest {{job}} {{scope}}"},
				},
			},
			{
				Title: "Overrides read", Unit: "ops",
				Doc:     "Refreshes of the overrides per second, by result. What is not ok leaves those in force as they are.",
				Queries: []query{{"sum by (job, scope, result) (rate(<overrides_refresh_total>[$__rate_interval]))", "{{job}} {{scope}} {{result}}"}},
			},
			{
				Title: "Age of the overrides", Unit: "s",
				Doc: "How long ago the node that is worst off read its overrides, and how many nodes failed to the last time. Above a few intervals, a change has no effect there.",
				Queries: []query{
					{"time() - min by (job, scope) (<overrides_refresh_success_timestamp_seconds> > 0)", "age {{job}} {{scope}}"},
					{"count by (job, scope) (<overrides_refresh_ok> == 0)", "nodes that fail {{job}} {{scope}}"},
				},
			},
			{
				Title: "Plans read", Unit: "ops",
				Doc: "Refreshes of files of plans per second, by result, and how many nodes refuse theirs: it is gone or wrong, and what was in force before stays.",
				Queries: []query{
					{"sum by (job, scope, result) (rate(<plans_refresh_total>[$__rate_interval]))", "{{job}} {{scope}} {{result}}"},
					{"count by (job, scope) (<plans_refresh_ok> == 0)", "nodes that refuse {{job}} {{scope}}"},
				},
			},
			{
				Title: "Global threshold", Unit: "short",
				Doc: "The highest and the lowest global threshold of a node. The two lines must be one, except while a change is rolled out.",
				Queries: []query{
					{"max by (job, scope) (<threshold>)", "highest {{job}} {{scope}}"},
					{"min by (job, scope) (<threshold>)", "lowest {{job}} {{scope}}"},
				},
			},
			{
				Title: "Builds", Unit: "short", Stacked: true,
				Doc:     "Nodes by the version of the library and of Go.",
				Queries: []query{{"count by (job, scope, version, go_version) (<build_info>)", "{{job}} {{scope}} {{version}} {{go_version}}"}},
			},
		}},
		{Title: "Are counts delivered", Panels: []panel{
			{
				Title: "Partitions reached", Unit: "percentunit",
				Doc:     "The part of the nodes whose last attempt at a batch was answered, by partition. A node that never had anything to sync does not count as reaching it.",
				Queries: []query{{"avg by (job, scope, partition) (<partition_up>)", "{{job}} {{scope}} {{partition}}"}},
			},
			{
				Title: "Failed attempts", Unit: "ops",
				Doc:     "Attempts per second that got no valid reply, by where they ended and why.",
				Queries: []query{{"sum by (job, scope, partition, step, cause) (rate(<error_total>[$__rate_interval]))", "{{job}} {{scope}} {{partition}} {{step}}: {{cause}}"}},
			},
			{
				Title: "Batches sent again", Unit: "ops",
				Doc:     "Attempts per second at batches that an earlier attempt may have delivered. None is counted twice.",
				Queries: []query{{"sum by (job, scope, partition) (rate(<batch_retries_total>[$__rate_interval]))", "{{job}} {{scope}} {{partition}}"}},
			},
			{
				Title: "Undelivered units", Unit: "short",
				Doc:     "Units that Redis has not acknowledged. About a tick's worth is normal; a slope means that a partition takes none.",
				Queries: []query{{"sum by (job, scope, instance) (<undelivered_units>)", "{{job}} {{scope}} {{instance}}"}},
			},
			{
				Title: "Dropped units", Unit: "ops",
				Doc:     "Units per second given up, by cause. docs/operations.md says what each one asks for.",
				Queries: []query{{"sum by (job, scope, cause) (rate(<dropped_units_total>[$__rate_interval]))", "{{job}} {{scope}} {{cause}}"}},
			},
			{
				Title: "Units given back", Unit: "ops",
				Doc:     "Units per second that reservations gave back. Clamped ones came too late, or their counter lost them: they stay counted, or never were.",
				Queries: []query{{"sum by (job, scope, result) (rate(<returned_units_total>[$__rate_interval]))", "{{job}} {{scope}} {{result}}"}},
			},
			{
				Title: "Calls that ask the fleet", Unit: "ops",
				Doc:     "Calls of CheckFleet and PeekFleet per second, by what came of them. Local ones were decided by the node, because Redis could not be asked in time.",
				Queries: []query{{"sum by (job, scope, result) (rate(<fleet_checks_total>[$__rate_interval]))", "{{job}} {{scope}} {{result}}"}},
			},
			{
				Title: "Time to ask the fleet", Unit: "ms",
				Doc:     "Time that a call of CheckFleet or PeekFleet took. It ends at GlobalReadTimeout, 100 ms by default.",
				Queries: quantiles("fleet_check_ms", "job, scope"),
			},
			{
				Title: "Calls that wait", Unit: "short",
				Doc:     "Calls of Wait under way. A number that only grows is demand beyond the limit.",
				Queries: []query{{"sum by (job, scope, instance) (<waiting_calls>)", "{{job}} {{scope}} {{instance}}"}},
			},
			{
				Title: "Queued and deferred", Unit: "short",
				Doc: "Entities that wait for a sync, and those of them that a tick had to leave for the next one because of its bound.",
				Queries: []query{
					{"sum by (job, scope, instance) (<pending_sync_size>)", "queued {{job}} {{scope}} {{instance}}"},
					{"sum by (job, scope, instance) (<deferred_size>)", "deferred {{job}} {{scope}} {{instance}}"},
				},
			},
		}},
		{Title: "What Redis is asked", Panels: []panel{
			{
				Title: "Script calls", Unit: "ops",
				Doc:     "Attempts at a batch per second: one script call each, if it reached Redis.",
				Queries: []query{{"sum by (job, scope, partition) (rate(<pipeline_ms_count>[$__rate_interval]))", "{{job}} {{scope}} {{partition}}"}},
			},
			{
				Title: "Counters", Unit: "ops",
				Doc:     "Counters per second that scripts wrote and read.",
				Queries: []query{{"sum by (job, scope, partition, op) (rate(<records_total>[$__rate_interval]))", "{{job}} {{scope}} {{partition}} {{op}}"}},
			},
			{
				Title: "Round trip", Unit: "ms",
				Doc:     "Time from sending a batch to its reply or failure. Timeouts end at the larger of GlobalReadTimeout and GlobalWriteTimeout, 100 ms by default.",
				Queries: quantiles("pipeline_ms", "job, scope, partition"),
			},
			{
				Title: "Batch size", Unit: "short",
				Doc:     "Counters that a batch writes (write) and those that it only reads (read).",
				Queries: quantiles("pipeline_size", "job, scope, op"),
			},
			{
				Title: "Tick", Unit: "ms",
				Doc:     "Duration of a partition's tick. At TickInterval and above, ticks are skipped.",
				Queries: quantiles("tick_ms", "job, scope"),
			},
			{
				Title: "Counts that Redis lost", Unit: "short",
				Doc: "Batches that met a Redis without what it had acknowledged before (flushed, rolled back, failed over), and counters that held less than a node had delivered (evicted), in the last five minutes.",
				Queries: []query{
					{"sum by (job, scope, partition) (increase(<forgotten_batches_total>[5m]))", "batches {{job}} {{scope}} {{partition}}"},
					{"sum by (job, scope) (increase(<lost_totals_total>[5m]))", "counters {{job}} {{scope}}"},
				},
			},
			{
				Title: "Clock skew", Unit: "ms",
				Doc:     "The largest difference between a node's clock and that of the Redis, either way.",
				Queries: []query{{"max by (job, scope, partition) (abs(<clock_skew_ms>))", "{{job}} {{scope}} {{partition}}"}},
			},
		}},
		{Title: "How good local knowledge is", Panels: []panel{
			{
				Title: "Correction by a sync", Unit: "percentunit",
				Doc:     "How far the local level was from the fleet's, as a part of the threshold. Values above the last bucket show as 100 %.",
				Queries: quantiles("estimate_drift", "job, scope"),
			},
			{
				Title: "Age of the estimate", Unit: "ms",
				Doc:     "How old the estimate was that a decision used. Idle entities are synced only by their own traffic, so theirs may be old.",
				Queries: quantiles("sync_staleness_ms", "job, scope"),
			},
			{
				Title: "Window", Unit: "s",
				Doc: "The longest and the shortest window of a node. The two lines must be one, except while a change is rolled out.",
				Queries: []query{
					{"max by (job, scope) (<window_seconds>)", "longest {{job}} {{scope}}"},
					{"min by (job, scope) (<window_seconds>)", "shortest {{job}} {{scope}}"},
				},
			},
			{
				Title: "Replies with another window", Unit: "ops",
				Doc:     "Replies per second saying that another window is in use under the same key prefix: the budget is split.",
				Queries: []query{{"sum by (job, scope, instance) (rate(<window_mismatch_total>[$__rate_interval]))", "{{job}} {{scope}} {{instance}}"}},
			},
			{
				Title: "Overlapping prefixes", Unit: "short",
				Doc:     "Shorter key prefixes in use that a limiter's own extends: keys of theirs may share its counters. Must be 0.",
				Queries: []query{{"max by (job, scope, partition) (<overlapping_prefixes>)", "{{job}} {{scope}} {{partition}}"}},
			},
			{
				Title: "Entities in the local table", Unit: "short",
				Doc:     "Entities that a node remembers, at most LocalCacheMaxEntries.",
				Queries: []query{{"sum by (job, scope, instance) (<cache_size>)", "{{job}} {{scope}} {{instance}}"}},
			},
			{
				Title: "Evictions", Unit: "ops",
				Doc:     "Entities per second that left the local table: for want of room, idle for too long, or forgotten on request.",
				Queries: []query{{"sum by (job, scope, cause) (rate(<eviction_total>[$__rate_interval]))", "{{job}} {{scope}} {{cause}}"}},
			},
			{
				Title: "Look-ups", Unit: "ops",
				Doc:     "Look-ups per second that found the entity or not, and those that queued it for a sync.",
				Queries: []query{{"sum by (job, scope, result) (rate(<cache_counts_total>[$__rate_interval]))", "{{job}} {{scope}} {{result}}"}},
			},
		}},
	},
}
