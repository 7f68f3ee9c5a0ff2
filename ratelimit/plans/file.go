package plans

// This file is what a file of plans may hold. The schema and the decoder are made from
// these types: a field's yaml tag is its name, with ",required" if it may not be missing, and
// its doc tag says what it is for.

import "time"

// A File is the content of a file of plans.
type File struct {
	Limits      map[string]Limit             `yaml:"limits,required" doc:"the limits, by name"`
	Routes      []Route                      `yaml:"routes,required" doc:"which limits apply to which requests"`
	Plans       map[string]map[string]uint64 `yaml:"plans" doc:"thresholds of limits, by plan and limit; a limit that a plan leaves out keeps its own"`
	DefaultPlan string                       `yaml:"default_plan" doc:"the plan of keys that have none; without it they have the limits' own thresholds"`
	Keys        map[string]string            `yaml:"keys" doc:"plans by key"`
	Allow       []Entry                      `yaml:"allow" doc:"keys that pass every route, uncounted"`
	Block       []Entry                      `yaml:"block" doc:"keys that no route lets pass"`
}

// A Limit is one limit, which becomes a limiter.
type Limit struct {
	Threshold    uint64        `yaml:"threshold,required" doc:"units per window; 0 blocks"`
	Window       time.Duration `yaml:"window" doc:"the window, as 10s, 1m or 24h; 1m without it"`
	Kind         string        `yaml:"kind" doc:"leaky, sliding or fixed; sliding without it, fixed with a calendar" enum:"leaky,sliding,fixed"`
	Calendar     string        `yaml:"calendar" doc:"windows of the calendar instead: hour, day, week or month" enum:"hour,day,week,month"`
	Zone         string        `yaml:"zone" doc:"the calendar's time zone, as Europe/Berlin; UTC without it"`
	Strict       bool          `yaml:"strict" doc:"in no window more than the threshold passes on one node (sliding)"`
	Burst        time.Duration `yaml:"burst" doc:"at most threshold × burst / window pass at once"`
	Exclusive    bool          `yaml:"exclusive" doc:"the request that reaches the threshold is refused: a threshold of 10 lets 9 pass"`
	CountLimited bool          `yaml:"count_limited" doc:"refused requests count, too"`
	StrictFirst  bool          `yaml:"strict_first_contact" doc:"the first request of a key passes only if it fits"`
	Ask          string        `yaml:"ask" doc:"local decides in memory; fleet asks Redis for each request, exactly; local without it" enum:"local,fleet"`
	Key          string        `yaml:"key" doc:"the key function that this limit counts by, if not the route's"`
	Unit         string        `yaml:"unit" doc:"what it counts, for clients; requests without it"`
	DryRun       bool          `yaml:"dry_run" doc:"it decides and counts, and refuses nobody"`
}

// A Route says which limits a request has to pass.
type Route struct {
	Pattern string   `yaml:"pattern,required" doc:"as of net/http: [METHOD ][HOST]/path/{wildcard}"`
	Key     string   `yaml:"key" doc:"the key function: header:NAME, ip, everybody, or one that the program names"`
	Cost    *uint64  `yaml:"cost" doc:"units that a request counts as; 1 without it"`
	Limits  []string `yaml:"limits,required" doc:"names of limits; none: the route is not limited"`
	DryRun  bool     `yaml:"dry_run" doc:"it is decided and counted, and nobody is refused"`
}

// An Entry is a key of the allow list or the block list.
type Entry struct {
	Key    string    `yaml:"key,required" doc:"the key"`
	By     string    `yaml:"by" doc:"the key function whose key it is; any without it"`
	Until  time.Time `yaml:"until" doc:"when the entry ends, as 2026-12-31T00:00:00Z; never without it"`
	Reason string    `yaml:"reason" doc:"for people who read the file"`
}
