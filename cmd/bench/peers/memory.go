package main

// This file is the contestants that decide in this process. All are set so that
// they allow everything: what is measured is a decision that has to count.

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/puzpuzpuz/xsync/v4"
	gostore "github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	throttledstore "github.com/throttled/throttled/v2/store/memstore"
	"github.com/ulule/limiter/v3"
	ululestore "github.com/ulule/limiter/v3/drivers/store/memory"
	"golang.org/x/time/rate"

	"github.com/hanzoai/limiters/ratelimit"
)

// plenty is a limit per second that no loop reaches. Some of the libraries divide
// a second by it.
const plenty = 1_000_000_000

// inMemory returns the contestants, ours first.
func inMemory() []contestant {
	return append([]contestant{
		{name: ours, open: openOurs},
		{name: "xtime", open: openTime},
		{name: "throttled", open: func(int) (*instance, error) { return openThrottled(65_536) }},
		{name: "throttled_map", open: func(int) (*instance, error) { return openThrottled(0) }},
		{name: "ulule", open: openUlule},
		{name: "sethvargo", open: openSethvargo},
		{name: floor, open: openFloor},
		{name: loop, open: openLoop},
		pressed("leaky", ratelimit.WindowLeaky, threshold/5),
		pressed("sliding", ratelimit.WindowSliding, threshold/5),
		pressed("leaky_refused", ratelimit.WindowLeaky, 2*threshold),
		pressed("sliding_refused", ratelimit.WindowSliding, 2*threshold),
	}, allowing()...)
}

// openOurs opens a limiter as shipped: system clock, ticks, metrics, default
// bounds; its counts go to a store in memory.
func openOurs(int) (*instance, error) {
	l, err := newOurs(ratelimit.DefaultConfig())
	if err != nil {
		return nil, err
	}
	return &instance{
		check:  func(key string) bool { return l.Check(key, 1).Allowed() },
		settle: func() error { return l.Sync(context.Background()) },
		close:  func() error { return l.Close(context.Background()) },
	}, nil
}

// threshold is ours: no loop reaches a fifth of it.
const threshold = 1 << 50

func newOurs(config ratelimit.Config) (*ratelimit.Limiter, error) {
	return newOursAt("memory://", config)
}

func newOursAt(url string, config ratelimit.Config) (*ratelimit.Limiter, error) {
	return newOursWith(url, threshold, config)
}

func newOursWith(url string, threshold uint64, config ratelimit.Config) (*ratelimit.Limiter, error) {
	config.GlobalThreshold = threshold
	config.RedisURLs = []string{url}
	return ratelimit.New(config, ratelimit.WithLogger(slog.New(slog.DiscardHandler)))
}

// pressed is one of ours with a kind of window, in which the first check of each key has
// counted some units: under pressure a sliding window has slices. With more than the
// threshold everything is refused from then on, and check is true of refusals.
func pressed(name string, window ratelimit.WindowKind, units uint64) contestant {
	return contestant{name: name, variant: true, open: func(int) (*instance, error) {
		config := ratelimit.DefaultConfig()
		config.Window = window
		l, err := newOurs(config)
		if err != nil {
			return nil, err
		}
		first, refuses := map[string]bool{}, units > threshold
		return &instance{
			check: func(key string) bool {
				if first == nil {
					return l.Check(key, 1).Allowed() != refuses
				}
				if !first[key] {
					first[key] = true
					l.Check(key, units)
				}
				return true
			},
			settle: func() error {
				first = nil // what follows is measured, or as what is
				return l.Sync(context.Background())
			},
			close: func() error { return l.Close(context.Background()) },
		}, nil
	}}
}

// openTime opens a map of x/time limiters, as its users write it.
func openTime(int) (*instance, error) {
	var limiters sync.Map
	return &instance{check: func(key string) bool {
		l, ok := limiters.Load(key)
		if !ok {
			l, _ = limiters.LoadOrStore(key, rate.NewLimiter(plenty, plenty))
		}
		return l.(*rate.Limiter).Allow()
	}}, nil
}

// openThrottled opens throttled on its store in memory for at most so many keys,
// as its documentation does; with 0 the store is a map without a bound, which is
// faster and no peer of a table that has one.
func openThrottled(keys int) (*instance, error) {
	store, err := throttledstore.NewCtx(keys)
	if err != nil {
		return nil, err
	}
	l, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{MaxRate: throttled.PerSec(plenty), MaxBurst: plenty})
	if err != nil {
		return nil, err
	}
	l.SetMaxCASAttemptsLimit(1_000_000) // by default it gives up under contention, with an error
	return &instance{check: func(key string) bool {
		limited, _, err := l.RateLimitCtx(context.Background(), key, 1)
		return err == nil && !limited
	}}, nil
}

func openUlule(int) (*instance, error) {
	l := limiter.New(ululestore.NewStore(), limiter.Rate{Period: time.Minute, Limit: 1 << 50})
	return &instance{check: func(key string) bool {
		c, err := l.Get(context.Background(), key)
		return err == nil && !c.Reached
	}}, nil
}

func openSethvargo(keys int) (*instance, error) {
	store, err := gostore.New(&gostore.Config{Tokens: 1 << 50, Interval: time.Minute, InitialAlloc: keys})
	if err != nil {
		return nil, err
	}
	return &instance{
		check: func(key string) bool {
			_, _, _, ok, err := store.Take(context.Background(), key)
			return err == nil && ok
		},
		close: func() error { return store.Close(context.Background()) },
	}, nil
}

// openFloor opens what no limiter can do without: finding the key and counting. The
// map is xsync's, whose look-up takes no lock and writes to no shared memory. In this
// loop it takes 16 ns of a core, where haxmap and a map behind a sync.RWMutex take 27
// and sync.Map and concurrent-map 38.
func openFloor(keys int) (*instance, error) {
	counts := xsync.NewMap[string, *atomic.Uint64](xsync.WithPresize(keys))
	return &instance{check: func(key string) bool {
		count, ok := counts.Load(key)
		if !ok {
			count, _ = counts.LoadOrStore(key, new(atomic.Uint64))
		}
		return count.Add(1) > 0
	}}, nil
}

// openLoop opens nothing: what the loop itself takes. No ratio is made of it.
func openLoop(int) (*instance, error) {
	return &instance{check: func(key string) bool { return key != "" }}, nil
}

// verify checks that an instance allows, so that nobody is measured refusing.
func verify(name string, i *instance, key string) error {
	if !i.check(key) {
		return fmt.Errorf("%s refuses %q: it is not set to allow everything", name, key)
	}
	return nil
}
