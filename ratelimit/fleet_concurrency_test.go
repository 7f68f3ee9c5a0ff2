package ratelimit

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"github.com/hanzoai/limiters/internal/clock"
	"github.com/hanzoai/limiters/internal/memstore"
	"github.com/hanzoai/limiters/ratelimit/store"
)

// A stillWall is a clock of goroutines whose wall stands still, so that no boundary of a
// window comes up.
type stillWall struct{ system *clock.System }

func (c stillWall) Now() (wall, mono int64) {
	_, mono = c.system.Now()
	return start.UnixNano(), mono
}

// A roughStore delays what it is asked, and loses some of it.
type roughStore struct {
	store.Store
	delay time.Duration // at most
	rng   func(n int64) int64
	fails func() error // before the store
	loses func() error // after it
}

func (s *roughStore) Apply(ctx context.Context, b *store.Batch, r *store.Reply) error {
	time.Sleep(time.Duration(s.rng(int64(s.delay) + 1)))
	if s.fails != nil {
		if err := s.fails(); err != nil {
			return err
		}
	}
	if err := s.Store.Apply(ctx, b, r); err != nil {
		return err
	}
	time.Sleep(time.Duration(s.rng(int64(s.delay) + 1)))
	if s.loses != nil {
		return s.loses()
	}
	return nil
}

func safeRand(seed uint64) func(n int64) int64 {
	var mu sync.Mutex
	rng := rand.New(rand.NewPCG(seed, seed))
	return func(n int64) int64 {
		mu.Lock()
		defer mu.Unlock()
		return rng.Int64N(n)
	}
}

func realLimiter(t *testing.T, s store.Store, change func(*Config)) *Limiter {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Window, cfg.GlobalThreshold, cfg.Inclusive = WindowFixed, 50, true
	cfg.TickInterval = 50 * time.Millisecond
	cfg.GlobalReadTimeout = 5 * time.Second
	if change != nil {
		change(&cfg)
	}
	l, err := New(cfg, WithClock(stillWall{clock.NewSystem()}), WithMetricsSet(metrics.NewSet()), WithLogger(slog.New(slog.DiscardHandler)),
		WithPartitions(Partition{Name: "p", Store: s}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close(context.Background()) })
	return l
}

func TestTwentyLimitersGrantExactlyTheLimit(t *testing.T) {
	t.Parallel()
	mem := memstore.New(func() int64 { return start.UnixNano() })
	rng := safeRand(1)
	var granted atomic.Int64
	var callers sync.WaitGroup
	for range 20 {
		l := realLimiter(t, &roughStore{Store: mem, delay: 2 * time.Millisecond, rng: rng}, nil)
		for range 8 {
			callers.Go(func() {
				for range 5 {
					d, err := l.CheckFleet(context.Background(), "k", 1)
					if err != nil {
						t.Error(err)
					} else if d.Allowed() {
						granted.Add(1)
					}
				}
			})
		}
	}
	callers.Wait()
	if granted.Load() != 50 {
		t.Errorf("%d granted, want 50", granted.Load())
	}
}

// A lone caller waits for one script, a thousand share a few.
func TestCallersShareScripts(t *testing.T) {
	t.Parallel()
	mem := memstore.New(func() int64 { return start.UnixNano() })
	l := realLimiter(t, &roughStore{Store: mem, delay: 20 * time.Millisecond, rng: func(n int64) int64 { return n - 1 }},
		func(c *Config) { c.GlobalThreshold, c.TickInterval = 1000, 10*time.Second })
	before := l.Stats().Partitions[0].Scripts
	var callers sync.WaitGroup
	for range 1000 {
		callers.Go(func() {
			if d, err := l.CheckFleet(context.Background(), "k", 1); err != nil || !d.Allowed() {
				t.Errorf("%v, %v", d.Verdict(), err)
			}
		})
	}
	callers.Wait()
	// At 40 ms a script and 500 calls in each, all have come by the second.
	if scripts := l.Stats().Partitions[0].Scripts - before; scripts > 5 {
		t.Errorf("1,000 calls took %d scripts", scripts)
	}
}

func TestCallsBeyondTheBoundAreLocalAtOnce(t *testing.T) {
	t.Parallel()
	mem := memstore.New(func() int64 { return start.UnixNano() })
	release := make(chan struct{})
	l := realLimiter(t, &roughStore{Store: mem, rng: func(int64) int64 { return 0 }, fails: func() error { <-release; return nil }},
		func(c *Config) { c.GlobalReadTimeout, c.GlobalThreshold = time.Minute, 1_000_000 })
	var callers sync.WaitGroup
	call := func() {
		if _, err := l.CheckFleet(context.Background(), "k", 1); err != nil {
			t.Error(err)
		}
	}
	callers.Go(call)
	for l.Stats().Partitions[0].Asked == 0 {
		time.Sleep(time.Millisecond)
	}
	for range mostFleetCalls {
		callers.Go(call)
	}
	for l.Stats().Fleet.Waiting < mostFleetCalls {
		time.Sleep(time.Millisecond)
	}
	d, err := l.CheckFleet(context.Background(), "k", 1)
	if !errors.Is(err, ErrNotFleet) || !d.Allowed() {
		t.Errorf("beyond the bound: %v, %v", d.Verdict(), err)
	}
	close(release)
	callers.Wait()
}

func TestCallersLeaveInTime(t *testing.T) {
	t.Parallel()
	mem := memstore.New(func() int64 { return start.UnixNano() })
	release := make(chan struct{})
	l := realLimiter(t, &roughStore{Store: mem, rng: func(int64) int64 { return 0 }, fails: func() error { <-release; return nil }},
		func(c *Config) { c.GlobalReadTimeout = 500 * time.Millisecond })
	if d, err := l.CheckFleet(context.Background(), "k", 3); !errors.Is(err, errNoAnswer) || !d.Allowed() {
		t.Errorf("after the read timeout: %v, %v", d.Verdict(), err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	if d, err := l.CheckFleet(ctx, "k", 5); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, ErrNotFleet) || d.Allowed() {
		t.Errorf("after its deadline: %v, %v", d.Verdict(), err)
	}
	closed := make(chan error)
	go func() { closed <- l.Close(context.Background()) }()
	close(release)
	if err := <-closed; err != nil {
		t.Error(err)
	}
	total, _ := mem.Get(string(appendCounterKey(nil, l.cfg.RedisKeyPrefix, "k", l.number(start.UnixNano()/l.window))))
	if s := l.Stats(); total != 3 || s.Undelivered != 0 {
		t.Errorf("the store holds %d units, want 3; %+v", total, s)
	}
}

func TestCloseAnswersAllWhoWait(t *testing.T) {
	t.Parallel()
	release, asked := make(chan struct{}), make(chan struct{}, 100)
	defer close(release)
	l := realLimiter(t, &roughStore{rng: func(int64) int64 { return 0 }, fails: func() error { asked <- struct{}{}; <-release; return errTimeout }},
		func(c *Config) { c.GlobalReadTimeout = time.Minute })
	errs := make(chan error)
	call := func() {
		_, err := l.CheckFleet(context.Background(), "k", 1)
		errs <- err
	}
	go call()
	<-asked // a script is under way: the others wait for the next
	for range 19 {
		go call()
	}
	for l.Stats().Fleet.Waiting < 19 {
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	go l.Close(ctx)
	for range 20 {
		if err := <-errs; !errors.Is(err, ErrNotFleet) || !errors.Is(err, ErrClosed) {
			t.Errorf("%v, want ErrNotFleet and ErrClosed", err)
		}
	}
}

// Callers who leave, replies that come late or not at all, and Close in between: no more than
// the limit is granted, and the store holds what was counted, to the unit.
func TestFleetCallsConserveUnits(t *testing.T) {
	for _, kind := range []WindowKind{WindowFixed, WindowLeaky, WindowSliding} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			rng := safeRand(seed)
			mem := memstore.New(func() int64 { return start.UnixNano() })
			var granted atomic.Uint64
			var callers sync.WaitGroup
			var limiters []*Limiter
			for range 5 {
				fail := func() error {
					switch rng(20) {
					case 0:
						return errTimeout
					case 1:
						return errEOF
					}
					return nil
				}
				l := realLimiter(t, &roughStore{Store: mem, delay: 4 * time.Millisecond, rng: rng, fails: fail, loses: fail}, func(c *Config) {
					c.Window, c.GlobalThreshold, c.GlobalReadTimeout = kind, 500, 20*time.Millisecond
				})
				limiters = append(limiters, l)
				for range 8 {
					callers.Go(func() {
						for range 100 {
							ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rng(int64(30*time.Millisecond))))
							n := uint64(rng(4))
							if d, err := l.CheckFleet(ctx, "k", n); err == nil && d.Allowed() {
								granted.Add(n)
							} else if rng(10) == 0 {
								l.Check("k", 1)
							}
							cancel()
						}
					})
				}
			}
			callers.Wait()
			var counted, taken, unknown uint64
			for _, l := range limiters {
				ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
				if err := l.Close(ctx); err != nil {
					t.Error(err)
				}
				cancel()
				s := l.Stats()
				counted, taken, unknown = counted+s.Counted, taken+s.Returned.Taken, unknown+s.Dropped.Unknown
				if s.Undelivered != 0 || s.Returned.Waiting != 0 || s.Returned.Clamped != 0 {
					t.Errorf("after Close: %+v", s)
				}
			}
			l := limiters[0]
			total, _ := mem.Get(string(appendCounterKey(nil, l.cfg.RedisKeyPrefix, "k", l.number(start.UnixNano()/l.window))))
			if uint64(total) != counted-taken || unknown != 0 {
				t.Errorf("the store holds %d; counted are %d, taken back %d, unknown %d", total, counted, taken, unknown)
			}
			if granted.Load() > 500 { // on a machine that is too busy it may be none
				t.Errorf("%d granted of 500", granted.Load())
			}
		})
	}
}
