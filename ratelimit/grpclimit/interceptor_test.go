package grpclimit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	echo "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/hanzoai/limiters/ratelimit"
)

const (
	ok        = codes.OK
	exhausted = codes.ResourceExhausted
	invalid   = codes.InvalidArgument
)

func TestLimitedCallsDoNotReachTheHandler(t *testing.T) {
	t.Parallel()
	lim, c := newLimiter(t, nil)
	s := &service{}
	client := serve(t, newInterceptor(t, lim), s)
	if got, want := codesOf(as(t, "ann"), client, 5), []codes.Code{ok, ok, ok, exhausted, exhausted}; !slices.Equal(got, want) {
		t.Errorf("codes %v, want %v", got, want)
	}
	if want := []string{"allowed", "allowed", "allowed"}; !slices.Equal(s.verdicts, want) {
		t.Errorf("the handler saw %v, want %v", s.verdicts, want)
	}
	if got := codesOf(as(t, "bob"), client, 1)[0]; got != ok {
		t.Errorf("another user: %v", got)
	}
	c.Advance(2 * time.Minute)
	if got := codesOf(as(t, "ann"), client, 1)[0]; got != ok {
		t.Errorf("two windows later: %v", got)
	}
}

func TestRetryInfoIsTheWait(t *testing.T) {
	t.Parallel()
	lim, c := newLimiter(t, nil)
	client := serve(t, newInterceptor(t, lim), &service{})
	codesOf(as(t, "ann"), client, 3)
	_, err := client.EmptyCall(as(t, "ann"), &echo.Empty{})
	info := retryInfo(err)
	if info == nil {
		t.Fatalf("%v has no RetryInfo", err)
	}
	wait := info.GetRetryDelay().AsDuration()
	if want := lim.Check("ann", 1).RetryAfter(); wait != want || wait <= 0 {
		t.Errorf("RetryInfo %v, want %v", wait, want)
	}
	c.Advance(wait)
	if got := codesOf(as(t, "ann"), client, 1)[0]; got != ok {
		t.Errorf("after the wait: %v", got)
	}
}

func TestACostThatNeverPassesHasNoRetryInfo(t *testing.T) {
	t.Parallel()
	lim, _ := newLimiter(t, func(cfg *ratelimit.Config) { cfg.GlobalThreshold = 0 })
	client := serve(t, newInterceptor(t, lim), &service{})
	_, err := client.EmptyCall(as(t, "ann"), &echo.Empty{})
	if status.Code(err) != exhausted || len(status.Convert(err).Details()) != 0 {
		t.Errorf("%v with details %v", err, status.Convert(err).Details())
	}
}

func TestCostAndSkip(t *testing.T) {
	t.Parallel()
	lim, _ := newLimiter(t, nil)
	client := serve(t, newInterceptor(t, lim,
		WithCost(func(_ context.Context, c Call) uint64 { return uint64(proto.Size(c.Message.(proto.Message))) }),
		WithSkip(func(_ context.Context, c Call) bool { return strings.HasSuffix(c.Method, "/EmptyCall") }),
	), &service{})
	send := func(size int32) codes.Code { // a message of some bytes
		_, err := client.UnaryCall(as(t, "ann"), &echo.SimpleRequest{ResponseSize: size})
		return status.Code(err)
	}
	for i, row := range []struct {
		size int32
		want codes.Code
	}{
		{1, ok},          // two bytes
		{1, exhausted},   // two more
		{0, ok},          // none
		{300, exhausted}, // three
	} {
		if got := send(row.size); got != row.want {
			t.Errorf("row %d: %v, want %v", i, got, row.want)
		}
	}
	if got := codesOf(as(t, "ann"), client, 1)[0]; got != ok {
		t.Errorf("a call that is skipped: %v", got)
	}
	if got := lim.Stats(); got.Counted != 2 || got.Allowed != 2 || got.Limited != 2 {
		t.Errorf("counted %d in %d + %d decisions, want 2 in 2 + 2", got.Counted, got.Allowed, got.Limited)
	}
}

func TestCallsWithoutAKey(t *testing.T) {
	t.Parallel()
	own := fmt.Errorf("who is this: %w", status.Error(codes.Unauthenticated, "no token"))
	for _, row := range []struct {
		name string
		err  error
		opts []Option
		want codes.Code
		text string
	}{
		{"empty", nil, nil, invalid, "no key"},
		{"empty, passed", nil, []Option{WithEmptyKeys(Pass)}, ok, ""},
		{"empty, errors passed", nil, []Option{WithKeyErrors(Pass)}, invalid, "no key"},
		{"error", errors.New("secret"), nil, invalid, "cannot be told"},
		{"error with a status", own, nil, codes.Unauthenticated, "no token"},
		{"error, passed", own, []Option{WithKeyErrors(Pass)}, ok, ""},
		{"error, empty keys passed", own, []Option{WithEmptyKeys(Pass)}, codes.Unauthenticated, "no token"},
	} {
		lim, _ := newLimiter(t, nil)
		i, err := New(lim, func(context.Context, Call) (string, error) { return "", row.err }, row.opts...)
		if err != nil {
			t.Fatal(err)
		}
		client := serve(t, i, &service{})
		for range 6 {
			_, err := client.EmptyCall(t.Context(), &echo.Empty{})
			if status.Code(err) != row.want || !strings.Contains(status.Convert(err).Message(), row.text) || strings.Contains(fmt.Sprint(err), "secret") {
				t.Errorf("%s: %v, want %v with %q", row.name, err, row.want, row.text)
			}
		}
		if s := lim.Stats(); s.Allowed+s.Limited != 0 {
			t.Errorf("%s: %d decisions", row.name, s.Allowed+s.Limited)
		}
	}
}

func TestDryRunPasses(t *testing.T) {
	t.Parallel()
	lim, _ := newLimiter(t, func(cfg *ratelimit.Config) { cfg.DryRun = true })
	s := &service{}
	client := serve(t, newInterceptor(t, lim), s)
	if got, want := codesOf(as(t, "ann"), client, 5), []codes.Code{ok, ok, ok, ok, ok}; !slices.Equal(got, want) {
		t.Errorf("codes %v, want %v", got, want)
	}
	if got, want := strings.Join(s.verdicts, " "), "allowed allowed allowed limited limited"; got != want {
		t.Errorf("the handler saw %s, want %s", got, want)
	}
}

func TestErrorsOfTheCallers(t *testing.T) {
	t.Parallel()
	lim, _ := newLimiter(t, func(cfg *ratelimit.Config) { cfg.GlobalThreshold = 0 })
	for _, row := range []struct {
		f    func(ratelimit.Decision) error
		want codes.Code
	}{
		{func(ratelimit.Decision) error { return status.Error(codes.Unavailable, "later") }, codes.Unavailable},
		{nil, exhausted},
	} {
		client := serve(t, newInterceptor(t, lim, WithLimited(row.f)), &service{})
		if got := codesOf(as(t, "ann"), client, 1)[0]; got != row.want {
			t.Errorf("%v, want %v", got, row.want)
		}
	}
}

// No number of calls at once gets one too many through.
func TestCallsAtOnce(t *testing.T) {
	t.Parallel()
	lim, _ := newLimiter(t, func(cfg *ratelimit.Config) { cfg.GlobalThreshold = 26 })
	client := serve(t, newInterceptor(t, lim), &service{})
	var callers sync.WaitGroup
	var passed, refused atomic.Int64
	ctx := as(t, "ann")
	for range 8 {
		callers.Go(func() {
			for range 20 {
				// A method that the service leaves out, so that no two handlers share a field.
				switch _, err := client.UnimplementedCall(ctx, &echo.Empty{}); status.Code(err) {
				case codes.Unimplemented:
					passed.Add(1)
				case exhausted:
					refused.Add(1)
				}
			}
		})
	}
	callers.Wait()
	if passed.Load() != 25 || refused.Load() != 135 {
		t.Errorf("%d passed, %d were refused; want 25, 135", passed.Load(), refused.Load())
	}
}

func TestNewNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	lim, _ := newLimiter(t, nil)
	for _, row := range []struct {
		lim  *ratelimit.Limiter
		key  KeyFunc
		opts []Option
		want string
	}{
		{nil, Metadata("x"), nil, "needs a limiter"},
		{lim, nil, nil, "a key function"},
		{lim, Metadata("x"), []Option{WithKeyErrors(7)}, "action 7"},
		{lim, Metadata("x"), []Option{WithEmptyKeys(8)}, "action 8"},
	} {
		if _, err := New(row.lim, row.key, row.opts...); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("New: %v, want an error with %q", err, row.want)
		}
	}
}

// The methods are what grpc wants them to be.
var (
	_ grpc.UnaryServerInterceptor  = (*Interceptor)(nil).Unary
	_ grpc.StreamServerInterceptor = (*Interceptor)(nil).Stream
)
