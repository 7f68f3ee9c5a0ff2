package statuspage

// This file is what the page says, whatever it looks like.

import (
	"maps"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/hanzoai/limiters/ratelimit"
)

// A document is the page's content. Its JSON names are stable within a major
// version; more may come.
type document struct {
	Scope           string    `json:"scope"`
	Time            time.Time `json:"time"` // of this answer, by this machine
	DryRun          bool      `json:"dry_run"`
	CountLimited    bool      `json:"count_limited"`
	GlobalThreshold uint64    `json:"global_threshold"`
	WindowSeconds   float64   `json:"window_seconds"`

	Process process `json:"process"`

	Decisions  decisions   `json:"decisions"`
	Units      units       `json:"units"`
	Entities   entities    `json:"entities"`
	Partitions []partition `json:"partitions"`
	Top        *top        `json:"top,omitempty"`
	Refused    []refused   `json:"refused,omitempty"` // the most units first
	Overrides  overrides   `json:"overrides"`
	Looked     *looked     `json:"looked_up,omitempty"`
	Settings   []setting   `json:"settings"`
}

type process struct {
	Host          string  `json:"host"`
	ID            int     `json:"pid"`
	Version       string  `json:"version"`        // of the library
	UptimeSeconds float64 `json:"uptime_seconds"` // of the page
}

type decisions struct {
	Allowed uint64 `json:"allowed"`
	Limited uint64 `json:"limited"` // in a dry run what would have been limited
	Waiting int    `json:"waiting"` // calls of Wait
	Fleet   fleet  `json:"fleet"`   // calls of CheckFleet and PeekFleet
}

type fleet struct {
	Allowed  uint64 `json:"allowed"`
	Limited  uint64 `json:"limited"`
	Local    uint64 `json:"local"` // Redis could not be asked
	Canceled uint64 `json:"canceled"`
	Waiting  int    `json:"waiting"`
}

// Counted − Returned.Taken = Delivered + Undelivered + all of Dropped.
type units struct {
	Counted     uint64   `json:"counted"`
	Delivered   uint64   `json:"delivered"`
	Undelivered uint64   `json:"undelivered"`
	Dropped     dropped  `json:"dropped"`
	Returned    returned `json:"returned"`
}

type returned struct {
	Taken   uint64 `json:"taken"`
	Clamped uint64 `json:"clamped"`
	Unknown uint64 `json:"unknown"`
	Waiting uint64 `json:"waiting"`
}

type dropped struct {
	Stale    uint64 `json:"stale"`
	Poisoned uint64 `json:"poisoned"`
	Overflow uint64 `json:"overflow"`
	Closed   uint64 `json:"closed"`
	Unknown  uint64 `json:"unknown"`
}

type entities struct {
	Held      int   `json:"held"`
	Max       int   `json:"max"`
	Tiers     tiers `json:"tiers"` // as of the last scan
	Overrides int   `json:"overrides"`
	Queued    int   `json:"queued"`
	Deferred  int   `json:"deferred"`
}

type tiers struct {
	Idle   int `json:"idle"`
	Low    int `json:"low"`
	Normal int `json:"normal"`
	Hot    int `json:"hot"`
}

type partition struct {
	Name            string     `json:"name"`
	Up              bool       `json:"up"`
	LastSync        *time.Time `json:"last_sync"` // null if there was none
	Queued          int        `json:"queued"`
	InFlight        uint64     `json:"in_flight_units"`
	Scripts         uint64     `json:"scripts"`
	RoundTrips      uint64     `json:"round_trips"`
	Retries         uint64     `json:"retries"`
	Writes          uint64     `json:"writes"`
	Reads           uint64     `json:"reads"`
	ClockSkewMillis float64    `json:"clock_skew_ms"`
	Failure         *failure   `json:"failure"` // null if the last attempt was answered
}

type failure struct {
	Since time.Time `json:"since"`
	Step  string    `json:"step"`
	Cause string    `json:"cause"`
	Text  string    `json:"text"`
}

type top struct {
	LookedAt int      `json:"looked_at"` // entities
	Entities []entity `json:"entities"`  // the highest pressure first
}

type entity struct {
	Key            string   `json:"key"`
	Level          float64  `json:"level"`
	Threshold      uint64   `json:"threshold"`
	Custom         bool     `json:"custom"`
	Pressure       float64  `json:"pressure"`
	Tier           string   `json:"tier"`
	Basis          string   `json:"basis"`
	SyncAgeSeconds *float64 `json:"sync_age_seconds"` // null if there was no sync
	Partition      string   `json:"partition"`
}

type refused struct {
	Key   string `json:"key"`
	Units uint64 `json:"units"`
	Over  uint64 `json:"over"` // of units, at most how many may be another entity's
}

type overrides struct {
	InForce int        `json:"in_force"`
	First   []override `json:"first"` // by key
}

type override struct {
	Key       string `json:"key"`
	Threshold uint64 `json:"threshold"`
}

type looked struct {
	Known bool `json:"known"` // to this node
	entity
}

type setting struct {
	Field string `json:"field"`
	Env   string `json:"env"`
	Value string `json:"value"`
}

// A view is what the limiter says, before keys become text: that is the caller's function,
// and whose turn it is must not depend on it.
type view struct {
	doc       *document
	top       []ratelimit.EntityStats
	refused   []ratelimit.Refused
	overrides map[string]uint64
	looked    *ratelimit.EntityStats
}

// shownOverrides is how many overrides the page lists.
const shownOverrides = 50

// look asks the limiter, about the key too if there is one.
func (p *page) look(key *string) *view {
	cfg, s := p.lim.Config(), p.lim.Stats()
	host, _ := os.Hostname() // without one the page shows none
	d := &document{
		Process: process{host, os.Getpid(), ratelimit.Version(), max(0, p.now().Sub(p.born).Seconds())},
		Scope:   cfg.Scope, Time: p.now().UTC(), DryRun: cfg.DryRun, CountLimited: cfg.CountLimited,
		GlobalThreshold: cfg.GlobalThreshold, WindowSeconds: cfg.WindowInterval.Seconds(),
		Decisions: decisions{s.Allowed, s.Limited, s.Waiting, fleet(s.Fleet)},
		Units:     units{s.Counted, s.Delivered, s.Undelivered, dropped(s.Dropped), returned(s.Returned)},
		Entities: entities{
			Held: s.Entities, Max: cfg.LocalCacheMaxEntries,
			Tiers: tiers{
				Idle: s.Tiers[ratelimit.Idle], Low: s.Tiers[ratelimit.Low],
				Normal: s.Tiers[ratelimit.Normal], Hot: s.Tiers[ratelimit.Hot],
			},
			Overrides: s.Overrides, Queued: s.Queued, Deferred: s.Deferred,
		},
		Partitions: make([]partition, len(s.Partitions)),
	}
	for i, ps := range s.Partitions {
		d.Partitions[i] = partition{
			Name: ps.Name, Up: ps.Up, Queued: ps.Queued, InFlight: ps.InFlight, Scripts: ps.Scripts,
			RoundTrips: ps.RoundTrips, Retries: ps.Retries, Writes: ps.Writes, Reads: ps.Reads,
			ClockSkewMillis: float64(ps.ClockSkew) / float64(time.Millisecond),
		}
		if f := ps.Failure; f != nil {
			d.Partitions[i].Failure = &failure{f.Since, f.Step, f.Cause, f.Text}
		}
		if !ps.LastSync.IsZero() {
			d.Partitions[i].LastSync = &ps.LastSync
		}
	}
	v := &view{doc: d, overrides: p.lim.Overrides()}
	if p.top > 0 {
		d.Top = &top{}
		v.top, d.Top.LookedAt = p.lim.TopByPressure(p.top)
		v.refused = p.lim.MostRefused(p.top)
	}
	if key != nil {
		st, known := p.lim.Look(*key)
		d.Looked, v.looked = &looked{Known: known}, &st
	}
	for _, st := range cfg.Settings() {
		if st.Field == "CustomKeys" && p.hidesKeys() {
			st.Value = strconv.Itoa(len(cfg.CustomKeys)) + " at the start"
		}
		d.Settings = append(d.Settings, setting(st))
	}
	return v
}

// hidesKeys reports whether something else stands for keys.
func (p *page) hidesKeys() bool { return p.keyText != nil || p.lim.KeyName("k") != "k" }

// complete gives the keys of a view their text. No lock is held and nobody waits.
func (p *page) complete(v *view) *document {
	d := v.doc
	if d.Top != nil {
		d.Top.Entities = make([]entity, len(v.top))
		for i := range v.top {
			d.Top.Entities[i] = p.entity(&v.top[i])
		}
	}
	for _, r := range v.refused {
		d.Refused = append(d.Refused, refused{p.text(r.Key), r.Units, r.Over})
	}
	if v.looked != nil {
		d.Looked.entity = p.entity(v.looked)
	}
	d.Overrides = overrides{InForce: len(v.overrides), First: []override{}}
	if p.keyText == nil { // which is made for what the limiter calls keys
		keys := slices.Sorted(maps.Keys(v.overrides))
		for _, key := range keys[:min(len(keys), shownOverrides)] {
			d.Overrides.First = append(d.Overrides.First, override{p.text(p.lim.KeyName(key)), v.overrides[key]})
		}
	}
	return d
}

func (p *page) entity(e *ratelimit.EntityStats) entity {
	shown := entity{
		Key: p.text(e.Key), Level: e.Level, Threshold: e.Threshold, Custom: e.Custom, Pressure: e.Pressure,
		Tier: e.Tier.String(), Basis: e.Basis.String(), Partition: e.Partition,
	}
	if e.Synced {
		age := e.SyncAge.Seconds()
		shown.SyncAgeSeconds = &age
	}
	return shown
}

// text is what stands for a key. What a key holds beside printable characters, a
// change of direction for instance, is not let loose on the page.
func (p *page) text(key string) string {
	if p.keyText != nil {
		return p.keyText(key)
	}
	if quoted := strconv.Quote(key); quoted != `"`+key+`"` || key == "" {
		return quoted
	}
	return key
}
