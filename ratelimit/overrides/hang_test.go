package overrides

// This file watches sources that hang, and reads what the log says of changes.

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hanzoai/limiters/ratelimit"
)

// A source that heeds no context holds no refresh for longer than its timeout, is not
// called twice at once, and is read anew when it is back.
func TestASourceThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var calls atomic.Int64
		source := SourceFunc(func(context.Context) (map[string]uint64, error) {
			n := calls.Add(1)
			if n == 2 {
				<-release
			}
			return map[string]uint64{"calls": uint64(n)}, nil
		})
		var g target
		w := New(&g, source, WithLogger(nil), WithTimeout(2*time.Second))
		defer w.Close()
		for i, row := range []struct {
			free  bool // the source comes back during the refresh
			want  error
			takes time.Duration
			calls int64
		}{
			{want: nil, takes: 0, calls: 1},
			{want: ErrHanging, takes: 2*time.Second + grace, calls: 2},
			{want: ErrHanging, takes: 2*time.Second + grace, calls: 2},
			{free: true, want: nil, takes: time.Second, calls: 3},
			{want: nil, takes: 0, calls: 4},
		} {
			began := time.Now()
			if row.free {
				go func() { time.Sleep(time.Second); close(release) }() // ends before the refresh
			}
			err := w.Refresh(t.Context())
			if !errors.Is(err, row.want) || row.want == nil && err != nil || time.Since(began) != row.takes || calls.Load() != row.calls {
				t.Errorf("row %d: %v after %v and %d calls, want %v after %v and %d", i, err, time.Since(began), calls.Load(), row.want, row.takes, row.calls)
			}
			if err != nil && resultOf(err) != resultUnreachable {
				t.Errorf("row %d: result %v, want unreachable", i, resultOf(err))
			}
		}
		if given := g.take(); len(given) != 3 || given[1]["calls"] != 3 {
			t.Errorf("given %v: what hung is taken, or what was read after it is not", given)
		}
	})
}

// Whoever waits for another's refresh waits no longer than its own context.
func TestARefreshThatWaitsForAnotherEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := New(new(target), SourceFunc(func(ctx context.Context) (map[string]uint64, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}), WithLogger(nil), WithTimeout(time.Hour))
		defer w.Close()
		first := make(chan error)
		go func() { first <- w.Refresh(t.Context()) }() // ends with its timeout
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if err := w.Refresh(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("Refresh = %v after %v", err, time.Since(began))
		}
		if err := <-first; !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Hour {
			t.Errorf("the first: %v after %v", err, time.Since(began))
		}
	})
}

// A source that panics does so in the goroutine that refreshes, and leaves the watcher
// usable.
func TestASourceThatPanics(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.source = SourceFunc(func(context.Context) (map[string]uint64, error) { panic("broken") })
	func() {
		defer func() {
			if got := recover(); got != "broken" {
				t.Errorf("recovered %v", got)
			}
		}()
		_ = f.Refresh(context.Background())
	}()
	f.source = SourceFunc(func(context.Context) (map[string]uint64, error) { return map[string]uint64{"a": 1}, nil })
	if err := f.Refresh(context.Background()); err != nil {
		t.Errorf("after a panic: %v", err)
	}
}

func TestTheLogSaysWhatChanged(t *testing.T) {
	t.Parallel()
	many := map[string]uint64{}
	for i := range 12 {
		many[fmt.Sprintf("k%02d", i)] = 1
	}
	f := newFixture(t)
	for i, row := range []struct {
		answer map[string]uint64
		want   string
	}{
		{map[string]uint64{"a": 1, "b": 2}, `overrides=2 added=2 changed=0 removed=0 changes="\"a\": none → 1, \"b\": none → 2"`},
		{map[string]uint64{"a": 3, "c": 0}, `overrides=2 added=1 changed=1 removed=1 changes="\"a\": 1 → 3, \"b\": 2 → none, \"c\": none → 0"`},
		{map[string]uint64{}, `overrides=0 added=0 changed=0 removed=2 changes="\"a\": 3 → none, \"c\": 0 → none"`},
		{map[string]uint64{"new\nline": 1}, `\\n`},
		{many, `overrides=12 added=12 changed=0 removed=1 changes="\"new\\nline\": 1 → none, \"k00\": none → 1, \"k01\": none → 1, \"k02\": none → 1, \"k03\": none → 1, \"k04\": none → 1, \"k05\": none → 1, \"k06\": none → 1, \"k07\": none → 1, \"k08\": none → 1, and 3 more"`},
	} {
		f.answer = row.answer
		if err := f.Refresh(context.Background()); err != nil {
			t.Fatal(err)
		}
		if got := f.logged(); strings.Count(got, "\n") != 1 || !strings.Contains(got, row.want) {
			t.Errorf("row %d: logged\n%s\nwant %s", i, got, row.want)
		}
	}
}

// The first change is told against the limiter's own overrides, and keys are shown as
// the option says.
func TestTheFirstChangeIsToldAgainstTheConfiguration(t *testing.T) {
	t.Parallel()
	cfg := ratelimit.DefaultConfig()
	cfg.RedisURLs = []string{"memory://"}
	cfg.CustomKeys = ratelimit.Overrides{"secret_1": 7, "secret_2": 8}
	lim, err := ratelimit.New(cfg, ratelimit.WithLogger(nil))
	if err != nil {
		t.Fatal(err)
	}
	defer lim.Close(t.Context())
	var log strings.Builder
	w := New(lim, SourceFunc(func(context.Context) (map[string]uint64, error) {
		return map[string]uint64{"secret_1": 9, "secret_2": 8}, nil
	}),
		WithLogger(slog.New(slog.NewTextHandler(&log, nil))), WithKeyText(func(key string) string { return key[len(key)-1:] }))
	defer w.Close()
	if err := w.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := log.String(); !strings.Contains(got, `added=0 changed=1 removed=0 changes="1: 7 → 9"`) {
		t.Errorf("logged %s", got)
	}
}
