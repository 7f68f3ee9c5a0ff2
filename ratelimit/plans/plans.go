package plans

// This file holds plans in force, and puts others in their place.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/VictoriaMetrics/metrics"

	"github.com/hanzoai/limiters/internal/exposition"
	"github.com/hanzoai/limiters/ratelimit"
)

// Plans are the plans of a file, reloaded while the process runs. Make them with [Open], and
// [Plans.Close] them. They are safe for concurrent use.
type Plans struct {
	path    string
	base    ratelimit.Config  // immutable
	options *options          // immutable
	pools   *pools            // immutable; nil with WithPartitions
	gauges  *exposition.Plans // immutable
	current atomic.Pointer[rules]

	mu        sync.Mutex
	text      []byte                       // guarded by mu; of the file in force
	overrides map[string]map[string]uint64 // guarded by mu; by limit
	problem   string                       // guarded by mu; of the last reload, "" if there was none
	changes   []string                     // guarded by mu; by the last reload that changed something
	closed    bool                         // guarded by mu
}

// A limit is a limiter in force, and what it was made of. It is immutable.
type limit struct {
	made    string // the configuration, but for what changes without another limiter
	limiter *ratelimit.Limiter
	conceal func() // takes its metrics out of sight
}

// ErrClosed is what [Plans.Refresh] answers after Close.
var ErrClosed = errors.New("plans: closed")

// Open reads the file and makes a limiter of each of its limits, over the configuration
// base: that says where Redis is and how it is used, begins the prefix and the scope of each
// limiter, and bounds tables and ticks. A program that must not start without valid plans need
// check no more than the error: [Problems], with file, line and field of each, or what a
// limiter says of base. A Redis that cannot be reached is no error.
func Open(path string, base ratelimit.Config, opts ...Option) (*Plans, error) {
	p := &Plans{path: path, base: base, options: collect(opts), overrides: map[string]map[string]uint64{}}
	if p.options.partitions == nil {
		var err error
		if p.pools, err = openPools(base, p.options); err != nil {
			return nil, err
		}
	}
	p.gauges = exposition.OpenPlans(p.options.set, base.Scope)
	if err := p.Refresh(context.Background()); err != nil {
		return nil, errors.Join(err, p.Close(context.Background()))
	}
	return p, nil
}

// Refresh reads the file once. If it holds something else than what is in force, that takes its
// place, whole or not at all: an error changes nothing. Thresholds, plans, keys, routes and lists
// change under limiters that stay, and keep their counts. A limit whose other settings change gets another limiter,
// which goes on from the fleet's counters if window and name are the same; one that vanishes
// delivers what it counted, within [WithCloseTimeout]. Decisions under way end by the rules that they began with.
func (p *Plans) Refresh(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return ErrClosed
	}
	text, err := load(p.path)
	if err == nil && p.current.Load() != nil && bytes.Equal(text, p.text) {
		p.noteLocked(nil, nil)
		return nil
	}
	var changes []string
	if err == nil {
		changes, err = p.takeLocked(ctx, text)
	}
	p.noteLocked(err, changes)
	return err
}

// takeLocked puts a text in force. It requires mu.
func (p *Plans) takeLocked(ctx context.Context, text []byte) (changes []string, err error) {
	known := func(name string) bool { return p.options.keys[name] != nil }
	f, err := parse(p.path, text, known, p.base)
	if err != nil {
		return nil, err
	}
	next, made, err := p.limitersLocked(f)
	var after *rules
	if err == nil {
		after, err = compile(f, next, p.options)
	}
	if err != nil {
		p.end(ctx, made)
		return nil, err
	}
	var was *File
	before := p.current.Swap(after)
	p.text = text
	gone := map[string]*limit{}
	if before != nil {
		was = before.file
		for name, l := range before.limits {
			if next[name] != l {
				gone[name] = l
			}
		}
		before.release()
		bounded, cancel := p.options.bounded(ctx)
		before.settle(bounded)
		cancel()
	}
	p.end(ctx, gone)
	return differences(was, f, gone), nil
}

// limitersLocked returns the limits of a file: those in force that fit, and new ones, which are
// in made too. It requires mu.
func (p *Plans) limitersLocked(f *File) (next, made map[string]*limit, err error) {
	next, made = map[string]*limit{}, map[string]*limit{}
	inForce := p.inForce()
	for _, name := range slices.Sorted(maps.Keys(f.Limits)) {
		l := f.Limits[name]
		cfg := l.config(name, p.base)
		fixed := cfg
		fixed.GlobalThreshold = 0 // the resolver answers the file's
		text := fixed.String()
		if old := inForce[name]; old != nil && old.made == text {
			next[name] = old
			continue
		}
		set := metrics.NewSet()
		limiter, err := ratelimit.New(cfg, p.limiterOptions(name, set)...)
		if err != nil {
			return next, made, fmt.Errorf("plans: limit %s: %w", name, err)
		}
		if own := p.overrides[name]; own != nil {
			limiter.SetOverrides(own)
		}
		next[name] = &limit{text, limiter, exposition.ExposeIn(p.options.set, "limiter "+cfg.Scope, set)}
		made[name] = next[name]
	}
	return next, made, nil
}

func (p *Plans) limiterOptions(name string, set *metrics.Set) []ratelimit.Option {
	opts := []ratelimit.Option{
		ratelimit.WithLogger(p.options.logger), ratelimit.WithClock(p.options.clock), ratelimit.WithMetricsSet(set),
		ratelimit.WithResolver(func(key string) (uint64, bool) {
			if r := p.current.Load(); r != nil {
				if _, ok := r.file.Limits[name]; ok {
					return r.threshold(name, key), true
				}
			}
			return 0, false
		}),
	}
	if p.pools == nil {
		return append(opts, ratelimit.WithPartitions(p.options.partitions(name)...))
	}
	return append(opts, ratelimit.WithPartitions(p.pools.partitions()...))
}

// end closes limiters, all at once.
func (p *Plans) end(ctx context.Context, gone map[string]*limit) (err error) {
	bounded, cancel := p.options.bounded(ctx)
	defer cancel()
	return p.endWithin(bounded, gone)
}

// endWithin is end, until ctx ends.
func (p *Plans) endWithin(ctx context.Context, gone map[string]*limit) error {
	var closing sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	for name, l := range gone {
		closing.Go(func() {
			err := l.limiter.Close(ctx)
			l.conceal()
			if err != nil {
				p.log(slog.LevelWarn, "ratelimit: a limit that is gone lost counts", slog.String("limit", name), slog.Any("error", err))
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, fmt.Errorf("plans: limit %s: %w", name, err))
			}
		})
	}
	closing.Wait()
	return errors.Join(errs...)
}

// noteLocked says how a reload ended, if there is something new to say. It requires mu.
func (p *Plans) noteLocked(err error, changes []string) {
	p.gauges.Observe(err == nil)
	was := p.problem
	p.problem = ""
	if err != nil {
		p.problem = err.Error()
	}
	switch {
	case err != nil && p.problem != was:
		p.log(slog.LevelWarn, "ratelimit: plans cannot be read; those in force stay", slog.String("file", p.path), slog.Any("error", err))
	case len(changes) > 0:
		p.changes = changes
		p.log(slog.LevelInfo, "ratelimit: plans changed", slog.String("file", p.path), slog.String("changes", strings.Join(changes, "; ")))
	case err == nil && was != "":
		p.log(slog.LevelInfo, "ratelimit: plans can be read again", slog.String("file", p.path))
	}
}

func (p *Plans) log(level slog.Level, text string, attrs ...slog.Attr) {
	p.options.logger.LogAttrs(context.Background(), level, text, append([]slog.Attr{slog.String("scope", p.base.Scope)}, attrs...)...)
}

// Limiter returns the limiter of a limit, nil if there is none. A reload may put another in its place.
func (p *Plans) Limiter(limit string) *ratelimit.Limiter {
	if l := p.inForce()[limit]; l != nil {
		return l.limiter
	}
	return nil
}

// inForce are the limits in force, by name; none before the first file.
func (p *Plans) inForce() map[string]*limit {
	if r := p.current.Load(); r != nil {
		return r.limits
	}
	return nil
}

// Limits returns the names of the limits, sorted.
func (p *Plans) Limits() []string {
	return slices.Sorted(maps.Keys(p.inForce()))
}

// Overrides returns what package overrides can keep equal to a source: thresholds of single keys
// for a limit, which beat those of plans. They stay in force when a reload makes another limiter.
func (p *Plans) Overrides(limit string) *Target { return &Target{p, limit} }

// A Target gives thresholds of single keys to a limit.
type Target struct {
	plans *Plans
	limit string
}

// SetOverrides puts thresholds in place of all that were given to the limit before; it copies
// the map.
func (t *Target) SetOverrides(overrides map[string]uint64) {
	t.plans.mu.Lock()
	defer t.plans.mu.Unlock()
	t.plans.overrides[t.limit] = maps.Clone(overrides)
	if l := t.plans.inForce()[t.limit]; l != nil {
		l.limiter.SetOverrides(overrides)
	}
}

// use returns the rules in force, to be released once the decision is made.
func (p *Plans) use() *rules {
	for {
		if r := p.current.Load(); r.acquire() {
			return r
		}
	}
}

// Close closes the limiters, which deliver what they counted until ctx ends, and the pools. The
// error is [ratelimit.Limiter.Close]'s, of each. Requests that come later are decided by what this
// node knows. Close ends no [Plans.Run]: its context does. It may be called more than once.
func (p *Plans) Close(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	err := p.endWithin(ctx, p.inForce())
	p.gauges.Withdraw()
	if p.pools != nil {
		err = errors.Join(err, p.pools.close())
	}
	return err
}
