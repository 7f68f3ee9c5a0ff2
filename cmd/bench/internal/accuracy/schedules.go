package accuracy

// This file lists the ways to keep a fleet's counts that scenarios are run by.

import (
	"slices"
	"time"

	"github.com/hanzoai/limiters/ratelimit"
)

// A schedule names a way to keep a fleet's counts.
type schedule string

const (
	ours          schedule = "ours"             // this library as it is configured by default
	oursTick      schedule = "ours-tick"        // by the plain tick: without sync by units
	hot           schedule = "hot"              // the default, and Hot entities synced more often
	burst         schedule = "burst"            // the default, and no more than a twentieth at once
	sliding       schedule = "sliding"          // sliding windows
	slidingTick   schedule = "sliding-tick"     // by the plain tick
	slidingHot    schedule = "sliding-hot"      // with Hot entities synced more often
	strict        schedule = "strict"           // the oldest slice counts whole, and so do first contacts
	fixed         schedule = "fixed"            // fixed windows
	fixedTick     schedule = "fixed-tick"       // by the plain tick
	timedReads    schedule = "timed-reads"      // the design document's request flow, to the letter
	oneNode       schedule = "one-node"         // the default on one node without a network: the floor
	slidingNode   schedule = "one-node-sliding" // sliding windows on one node without a network
	perfect       schedule = "exact"            // a sliding log that sees all
	custom        schedule = "custom"           // what the flags ask for
	customTick    schedule = "custom-tick"      // by the plain tick
	customOneNode schedule = "one-node-custom"  // on one node without a network
)

const (
	hotSyncs  = 10 // how many times per tick Hot entities are synced, where they are synced more often
	burstPart = 20 // a burst is this part of the window, where there is a bound
)

// A plan is what a schedule does.
type plan struct {
	by    schedule
	alone bool // one node, without a network
	set   func(cfg *ratelimit.Config, s *scenario)
}

// plans are all but timedReads and perfect, which are no limiters of this library.
var plans = []plan{
	{by: ours, set: func(*ratelimit.Config, *scenario) {}},
	{by: oursTick, set: plainTick},
	{by: hot, set: hotSync},
	{by: burst, set: func(cfg *ratelimit.Config, s *scenario) { cfg.BurstInterval = s.window / burstPart }},
	{by: sliding, set: kind(ratelimit.WindowSliding)},
	{by: slidingTick, set: both(kind(ratelimit.WindowSliding), plainTick)},
	{by: slidingHot, set: both(kind(ratelimit.WindowSliding), hotSync)},
	{by: strict, set: both(kind(ratelimit.WindowSliding), func(cfg *ratelimit.Config, _ *scenario) {
		cfg.WindowStrict, cfg.StrictFirstContact = true, true
	})},
	{by: fixed, set: kind(ratelimit.WindowFixed)},
	{by: fixedTick, set: both(kind(ratelimit.WindowFixed), plainTick)},
	{by: oneNode, alone: true, set: func(*ratelimit.Config, *scenario) {}},
	{by: slidingNode, alone: true, set: kind(ratelimit.WindowSliding)},
	{by: custom, set: asAsked},
	{by: customTick, set: both(asAsked, plainTick)},
	{by: customOneNode, alone: true, set: asAsked},
}

type setter = func(*ratelimit.Config, *scenario)

func kind(k ratelimit.WindowKind) setter {
	return func(cfg *ratelimit.Config, _ *scenario) { cfg.Window = k }
}

func both(first, second setter) setter {
	return func(cfg *ratelimit.Config, s *scenario) { first(cfg, s); second(cfg, s) }
}

func plainTick(cfg *ratelimit.Config, _ *scenario) { cfg.SyncByUnits = false }

func hotSync(cfg *ratelimit.Config, s *scenario) {
	cfg.HotSyncInterval = s.ticks() / hotSyncs
}

func asAsked(cfg *ratelimit.Config, s *scenario) { cfg.Window, cfg.BurstInterval = s.kind, s.burst }

// planOf returns the plan of a schedule.
func planOf(by schedule) *plan {
	if i := slices.IndexFunc(plans, func(p plan) bool { return p.by == by }); i >= 0 {
		return &plans[i]
	}
	panic("accuracy: there is no plan " + string(by))
}

// config is the configuration of a scenario by a plan.
func (p *plan) config(s *scenario) ratelimit.Config {
	cfg := ratelimit.DefaultConfig()
	cfg.GlobalThreshold, cfg.WindowInterval, cfg.TickInterval = s.threshold, s.window, s.tick
	cfg.CustomKeys, cfg.Inclusive = s.overrides, s.inclusive
	cfg.LocalCacheMaxEntries = 16 + 2*len(s.keys) // a small table makes ticks cheap
	p.set(&cfg, s)
	return cfg
}

// ticks is the interval of the scenario's ticks.
func (s *scenario) ticks() time.Duration {
	cfg := ratelimit.DefaultConfig()
	cfg.WindowInterval, cfg.TickInterval = s.window, s.tick
	return cfg.Resolved().TickInterval
}

// The schedules of the table, in its order, and those that kinds of scenarios are run by.
var (
	schedules = []schedule{
		ours, oursTick, hot, burst, sliding, slidingTick, slidingHot, strict, timedReads, oneNode, slidingNode, perfect,
	}
	withoutSlidingHot = []schedule{ours, oursTick, hot, burst, sliding, slidingTick, strict, timedReads, oneNode, slidingNode, perfect}
	withoutHot        = []schedule{ours, oursTick, burst, sliding, slidingTick, strict, timedReads, oneNode, slidingNode, perfect}
	forBursts         = []schedule{ours, oursTick, burst, sliding, slidingTick, strict, oneNode, slidingNode, perfect}
	forTrips          = []schedule{ours, sliding, oneNode, slidingNode, perfect}
	forCosts          = []schedule{ours, oursTick, sliding, slidingTick}
	forMany           = []schedule{ours, oursTick, sliding}
	forManner         = []schedule{ours, oursTick, burst, sliding, strict}
	forAny            = []schedule{strict, perfect}
	forOwn            = []schedule{custom, customTick, customOneNode, perfect}
)
