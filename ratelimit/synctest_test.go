package ratelimit

// This file tests the loops of production, with the system's clock, in bubbles
// where time passes only when everything waits for it.

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"github.com/hanzoai/limiters/internal/memstore"
	"github.com/hanzoai/limiters/ratelimit/store"
)

// A bubble is a limiter on the system's clock and a store that notes when attempts
// came.
type bubble struct {
	*Limiter
	*link
	set   *metrics.Set
	began time.Time

	mu sync.Mutex
	at []time.Duration // of attempts, since the limiter began; guarded by mu
}

// inBubble runs a test in a bubble, with a limiter that change configures. The test
// must close it.
func inBubble(t *testing.T, change func(*Config), test func(t *testing.T, b *bubble)) {
	synctest.Test(t, func(t *testing.T) {
		b := &bubble{link: &link{store: memstore.New(nil)}, set: metrics.NewSet(), began: time.Now()}
		cfg := DefaultConfig()
		cfg.GlobalThreshold = 1 << 40
		if change != nil {
			change(&cfg)
		}
		l, err := New(cfg, WithPartitions(Partition{Name: "memory", Store: b}), WithMetricsSet(b.set), WithLogger(slog.New(slog.DiscardHandler)))
		if err != nil {
			t.Fatal(err)
		}
		b.Limiter = l
		test(t, b)
	})
}

// Apply notes the time of the attempt.
func (b *bubble) Apply(ctx context.Context, batch *store.Batch, reply *store.Reply) error {
	b.mu.Lock()
	b.at = append(b.at, time.Since(b.began))
	b.mu.Unlock()
	return b.link.Apply(ctx, batch, reply)
}

// attempts returns when attempts came since the last call.
func (b *bubble) attempts() []time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := b.at
	b.at = nil
	return at
}

func (b *bubble) close(t *testing.T) {
	t.Helper()
	if err := b.Close(context.Background()); err != nil {
		t.Errorf("Close = %v", err)
	}
}

func TestTheLoopTicksAtARandomPhase(t *testing.T) {
	t.Parallel()
	phases := map[time.Duration]bool{}
	for range 4 {
		inBubble(t, nil, func(t *testing.T, b *bubble) {
			for range 600 {
				b.Check("a", 1)
				time.Sleep(100 * time.Millisecond)
			}
			at := b.attempts()
			if len(at) != 60 || at[0] >= time.Second {
				t.Errorf("%d attempts in a minute, the first after %v, want one per second, the first within one", len(at), at[0])
			}
			for i := 1; i < len(at); i++ {
				if gap := at[i] - at[i-1]; gap != time.Second {
					t.Fatalf("attempt %d came %v after the one before, want a second", i, gap)
				}
			}
			phases[at[0]] = true
			if got := b.metrics.evalAllowed.Get(); got < 580 {
				t.Errorf("the housekeeper published %d decisions, want those up to the last second", got)
			}
			b.close(t)
			if s := b.Stats(); s.Delivered != 600 {
				t.Errorf("%+v, want 600 delivered", s)
			}
		})
	}
	if len(phases) < 3 {
		t.Errorf("4 limiters began at %d different phases", len(phases))
	}
}

// A tick that would begin while an attempt has not returned is left out.
func TestTheLoopSkipsTicksDuringAnAttempt(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(t *testing.T, b *bubble) {
		running := 0
		b.hook(func(*store.Batch) error {
			if running++; running > 1 {
				t.Error("two attempts at once")
			}
			time.Sleep(3500 * time.Millisecond)
			running--
			return nil
		}, nil)
		for range 200 {
			b.Check("a", 1)
			time.Sleep(100 * time.Millisecond)
		}
		if got := len(b.attempts()); got < 5 || got > 6 {
			t.Errorf("%d attempts of 3.5 s in 20 s, want 5 or 6", got)
		}
		b.heals()
		b.close(t)
	})
}

// Whole ticks keep their pace whether or not the interval of hot ones divides it.
func TestHotTicksDoNotSlowWholeOnes(t *testing.T) {
	t.Parallel()
	for _, hot := range []time.Duration{300, 700} {
		inBubble(t, func(c *Config) {
			c.HotSyncInterval, c.CountLimited, c.SyncByUnits = hot*time.Millisecond, true, false
		}, func(t *testing.T, b *bubble) {
			for range 3000 {
				b.Check("idle", 1)
				time.Sleep(20 * time.Millisecond)
			}
			if got := len(b.attempts()); got < 58 || got > 60 {
				t.Errorf("hot ticks every %d ms: %d whole ticks in a minute, want one per second", hot, got)
			}
			b.SetOverrides(map[string]uint64{"hot": 1000})
			b.Check("hot", 900)
			for range 3000 {
				b.Check("hot", 1) // counts, limited or not
				time.Sleep(20 * time.Millisecond)
			}
			if got, want := len(b.attempts()), int(time.Minute/(hot*time.Millisecond)); got < want-2 || got > want+1 {
				t.Errorf("hot ticks every %d ms: %d of a hot entity in a minute, want %d", hot, got, want)
			}
			b.close(t)
		})
	}
}

func TestTheLoopBacksOff(t *testing.T) {
	t.Parallel()
	inBubble(t, func(c *Config) { c.TickInterval = 10 * time.Millisecond }, func(t *testing.T, b *bubble) {
		b.breaks(errUnreachable, nil)
		b.Check("a", 1)
		time.Sleep(10 * time.Second)
		at := b.attempts()
		if len(at) < 13 || len(at) > 16 {
			t.Errorf("%d attempts to connect in 10 s, want about one each 0.8 s", len(at))
		}
		b.heals()
		time.Sleep(time.Second)
		if s := b.Stats(); s.Delivered != 1 || !s.Partitions[0].Up {
			t.Errorf("a second after it came back: %+v", s)
		}
		b.close(t)
	})
}

func TestCloseReturnsWhenItsContextEnds(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(t *testing.T, b *bubble) {
		b.hook(func(*store.Batch) error { time.Sleep(time.Hour); return nil }, nil) // and does not heed its context
		b.Check("a", 3)
		time.Sleep(2 * time.Second) // the loop's own tick hangs
		b.Check("b", 4)
		began := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), 250*time.Millisecond)
		defer cancel()
		err := b.Close(ctx)
		var left *CloseError
		if !errors.As(err, &left) || *left != (CloseError{Undelivered: 4, Unknown: 3}) {
			t.Errorf("Close = %v, want 4 undelivered and 3 unknown", err)
		}
		if took := time.Since(began); took != 250*time.Millisecond {
			t.Errorf("Close took %v of its context's 250 ms", took)
		}
		if s := b.Stats(); s.Dropped != (Dropped{Closed: 4, Unknown: 3}) || s.Undelivered != 0 {
			t.Errorf("%+v", s)
		}
		time.Sleep(2 * time.Hour) // the attempt returns, applied; the goroutines end
		if s := b.Stats(); s.Delivered != 0 || s.Dropped != (Dropped{Closed: 4, Unknown: 3}) {
			t.Errorf("a late reply counted: %+v", s)
		}
		if names := b.set.ListMetricNames(); len(names) != 0 {
			t.Errorf("metrics left once the goroutines have ended: %q", names)
		}
	})
}

// An attempt that waits for ever, unless its context ends, is ended by Close, and
// holds no goroutine.
func TestCloseEndsAnAttemptThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hung := storeFunc(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		l, err := New(DefaultConfig(), WithPartitions(Partition{Name: "hung", Store: hung}), WithMetricsSet(metrics.NewSet()), WithLogger(nil))
		if err != nil {
			t.Fatal(err)
		}
		l.Check("a", 3)
		time.Sleep(time.Minute)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		var left *CloseError
		if err := l.Close(ctx); !errors.As(err, &left) || *left != (CloseError{Unknown: 3}) {
			t.Errorf("Close = %v, want 3 unknown", err)
		}
		synctest.Wait()
		l.running.Wait() // a goroutine that is left blocks here, and fails the bubble
	})
}

// A storeFunc is a store that fails so.
type storeFunc func(ctx context.Context) error

func (f storeFunc) Apply(ctx context.Context, _ *store.Batch, _ *store.Reply) error { return f(ctx) }

// Close ends a loop that waits for its first tick, at once.
func TestCloseDoesNotWaitForTheLoops(t *testing.T) {
	t.Parallel()
	for _, age := range []time.Duration{0, 10 * time.Millisecond, 1500 * time.Millisecond} {
		inBubble(t, func(c *Config) { c.WindowInterval = time.Hour }, func(t *testing.T, b *bubble) {
			time.Sleep(age)
			b.Check("a", 1)
			began := time.Now()
			b.close(t)
			if took := time.Since(began); took != 0 {
				t.Errorf("Close after %v took %v, want no time at all", age, took)
			}
			if s := b.Stats(); s.Delivered != 1 {
				t.Errorf("%+v, want the unit delivered", s)
			}
		})
	}
}

// The same, with the store made by New: memory:// and the default clock.
func TestAProductionLimiterFromItsConfiguration(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := DefaultConfig()
		cfg.RedisURLs = []string{"memory://"}
		cfg.GlobalThreshold = 100
		l, err := New(cfg, WithMetricsSet(metrics.NewSet()), WithLogger(nil))
		if err != nil {
			t.Fatal(err)
		}
		admitted := 0
		for i := range 10 * 60 * 4 { // twice the threshold and more, for four windows
			if l.Allow("a") {
				admitted++
			}
			if i%10 == 9 {
				time.Sleep(time.Second)
			}
			l.Allow(fmt.Sprint("k", i%7))
		}
		if admitted < 3*99 || admitted > 5*100 {
			t.Errorf("%d units admitted in four windows of 100", admitted)
		}
		if s := l.Stats(); !s.Partitions[0].Up || s.Partitions[0].Scripts < 230 || s.Undelivered > 80 {
			t.Errorf("after four minutes: %+v", s)
		}
		if err := l.Close(context.Background()); err != nil {
			t.Errorf("Close = %v", err)
		}
	})
}
