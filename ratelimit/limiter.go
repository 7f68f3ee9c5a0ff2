package ratelimit

// This file makes a limiter and holds its parts together.

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/hanzoai/limiters/internal/clock"
	"github.com/hanzoai/limiters/internal/hashring"
)

// A Limiter decides, for one process, what a fleet of processes may do. Make one
// with [New], share it, and [Limiter.Close] it. All its methods may be called from
// any goroutine at any time.
type Limiter struct {
	constants           // immutable
	calendar  *calendar // immutable; nil if windows are all as long
	order     uint64    // immutable; in which CheckAll takes locks

	cfg          Config        // immutable; resolved
	clock        Clock         // immutable
	system       *clock.System // immutable; clock, if it is the system's, else nil
	logger       *slog.Logger  // immutable
	maxKeyBytes  int           // immutable; −1 if no key stands for itself
	keySecret    []byte        // immutable; nil if keys are not hidden
	keysPerTick  int           // immutable; of one partition
	countLimited bool          // immutable
	strict       bool          // immutable
	dryRun       bool          // immutable
	grants       bool          // immutable; Allow is given allowances
	jitter       int64         // immutable; see course.go

	thresholds *thresholds
	table      *table
	ledger     ledger
	partitions []*partition // immutable
	metrics    *limiterMetrics
	waits      waitLines
	publisher  publisher
	scan       scan

	life       context.Context              // immutable; of the loops, their attempts and the clock
	end        context.CancelFunc           // immutable; of life
	running    sync.WaitGroup               // the loops and the clock
	unregister func()                       // takes the metrics out of sight
	stores     []interface{ Close() error } // immutable; those that New made
	closing    closing

	fleetCounts [fleetResults]atomic.Uint64 // calls of CheckFleet, by what came of them
}

// ErrClosed is what [Limiter.Sync] and [Limiter.Ping] answer after Close, and what errors of
// [Limiter.CheckFleet] wrap then.
var ErrClosed = errors.New("ratelimit: the limiter is closed")

// New returns a limiter that decides at once and, unless its clock drives it (see
// [WithClock]), syncs in goroutines of its own until it is closed. A Redis that
// cannot be reached is no error: the limiter decides on what this node knows until
// it can.
//
// The error names every field of cfg that is wrong, with its environment variable.
func New(cfg Config, opts ...Option) (*Limiter, error) {
	o := collect(opts)
	if err := cfg.validate(!o.hasStores()); err != nil {
		return nil, err
	}
	cfg = cfg.Resolved()
	parts, made, err := openStores(cfg, o)
	if err != nil {
		return nil, err
	}
	l, err := assemble(cfg, o, parts)
	if err != nil {
		return nil, errors.Join(err, closeAll(made))
	}
	l.stores = made
	l.start()
	return l, nil
}

// assemble makes a limiter that does nothing on its own yet.
func assemble(cfg Config, o *options, parts []Partition) (*Limiter, error) {
	names := make([]string, len(parts))
	for i, p := range parts {
		names[i] = p.Name
	}
	ring, err := hashring.New(names)
	if err != nil {
		return nil, fmt.Errorf("ratelimit: %w", err)
	}
	secret, err := o.keyHash()
	if err != nil {
		return nil, err
	}
	metrics, unregister, err := openMetrics(o.metricsSet, cfg.Scope, names, o.logger)
	if err != nil {
		return nil, err
	}
	l := &Limiter{
		constants: constantsOf(cfg), cfg: cfg, clock: o.clock, logger: o.logger,
		maxKeyBytes: cfg.MaxKeyBytes, keySecret: secret, keysPerTick: share(cfg.MaxSyncKeysPerTick, len(parts)),
		countLimited: cfg.CountLimited, strict: cfg.StrictFirstContact, dryRun: cfg.DryRun,
		thresholds: newThresholds(cfg.GlobalThreshold, cfg.CustomKeys, o.resolver),
		metrics:    metrics, unregister: unregister,
		closing: closing{done: make(chan struct{})},
	}
	if l.keySecret != nil {
		l.maxKeyBytes = -1
	}
	l.calendar, l.order = newCalendar(cfg), lockOrders.Add(1)
	l.life, l.end = context.WithCancel(context.Background())
	for i, p := range parts {
		l.partitions = append(l.partitions, newPartition(l, i, p))
	}
	l.system, _ = o.clock.(*clock.System)
	l.table = newTable(l.constants, cfg.LocalCacheMaxEntries, cfg.ChannelCapacity, l.driven(), &l.ledger, func(key string) *partition {
		return l.partitions[ring.Owner(key)]
	})
	l.grants = o.resolver == nil && !cfg.DryRun && !l.bursts
	if !l.driven() {
		l.jitter = jitter
	}
	r := l.readNow()
	l.thresholds.steer(r.wall, r.mono, l.jitter)
	l.publish(r)
	return l, nil
}

// share is what one of n partitions has of a bound, rounded up.
func share(bound, n int) int { return (bound + n - 1) / n }

// SetOverrides puts thresholds in place of all overrides before, for every key that
// is checked from now on; it copies the map. nil or empty removes all.
func (l *Limiter) SetOverrides(overrides map[string]uint64) {
	l.thresholds.swap(overrides)
}

// Forget takes the key out of the local table: its next check is a first contact.
// Units of it that are not delivered yet are not lost: until they are, the key is
// remembered all the same, and a check finds it as it was.
func (l *Limiter) Forget(key string) {
	r := l.read()
	name := l.KeyName(key)
	hash := l.table.hash(name)
	s := l.table.shardOf(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.entries.find(hash, name); e != nil {
		e.lock()
		defer e.unlock()
		e.advanceLocked(&r)
		if e.usedAt = forgotten; !e.heldLocked() {
			s.evictLocked(e, evictExplicit)
		}
	}
}

// Sync runs one tick now: every partition once, one after the other, and then what
// a tick publishes. It waits for ticks under way, until ctx ends; ctx also bounds
// the calls to the stores, in addition to the configured timeouts. The error joins
// those of the partitions whose batch stayed without an answer; it will be sent
// again. A partition for which there is nothing to sync is asked whether it is there. After
// Close the error is [ErrClosed].
func (l *Limiter) Sync(ctx context.Context) error {
	if l.closing.begun() {
		return ErrClosed
	}
	var errs []error
	for _, p := range l.partitions {
		if err := p.syncOnce(ctx); err != nil {
			errs = append(errs, &PartitionError{Partition: p.name, Err: err})
		}
	}
	l.housekeep()
	return errors.Join(errs...)
}

// A PartitionError is the failure of one partition's tick. It is safe to log: it
// holds no secrets.
type PartitionError struct {
	Partition string
	Err       error
}

// Error returns the partition and its failure.
func (e *PartitionError) Error() string {
	return "ratelimit: partition " + e.Partition + ": " + e.Err.Error()
}

// Unwrap returns Err.
func (e *PartitionError) Unwrap() error { return e.Err }

// start begins to tick: on the clock's own account if it offers that, else in one
// goroutine for each partition, one that keeps house, and one for the clock. Close
// stops them.
func (l *Limiter) start() {
	if d, ok := l.clock.(driver); ok {
		l.drive(d)
		return
	}
	if l.system != nil {
		l.running.Go(func() { l.system.Run(l.life.Done()) })
	}
	for _, p := range l.partitions {
		l.running.Go(p.loop)
	}
	l.running.Go(l.houseLoop)
}
