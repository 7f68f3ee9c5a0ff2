package grpclimit

// This file tests several limits of one call, and what trailers say.

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	echo "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/VictoriaMetrics/metrics"

	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/testing/ratelimittest"
)

// limiterOn returns a limiter of fixed windows on a clock that several share.
func limiterOn(t *testing.T, c *ratelimittest.Clock, threshold uint64, window time.Duration, dry bool) *ratelimit.Limiter {
	t.Helper()
	cfg := ratelimit.DefaultConfig()
	cfg.GlobalThreshold, cfg.WindowInterval, cfg.Inclusive, cfg.Window, cfg.DryRun = threshold, window, true, ratelimit.WindowFixed, dry
	cfg.RedisURLs = []string{"memory://"}
	lim, err := ratelimit.New(cfg, ratelimit.WithClock(c), ratelimit.WithMetricsSet(metrics.NewSet()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lim.Close(context.Background()) })
	return lim
}

func everybody(context.Context, Call) (string, error) { return "all", nil }

// call makes a call and returns its status and the trailers of this package.
func call(t *testing.T, client echo.TestServiceClient, user string) (s *status.Status, said string) {
	t.Helper()
	var trailer metadata.MD
	_, err := client.EmptyCall(as(t, user), &echo.Empty{}, grpc.Trailer(&trailer))
	for _, name := range []string{trailerPolicy, trailerQuota, trailerPushback} {
		if values := trailer.Get(name); len(values) > 0 {
			said += name + " " + strings.Join(values, ", ") + "\n"
		}
	}
	return status.Convert(err), said
}

func TestSeveralLimitsAndTheirTrailers(t *testing.T) {
	t.Parallel()
	c := ratelimittest.NewClock()
	second, minute := limiterOn(t, c, 2, time.Second, false), limiterOn(t, c, 3, time.Minute, false)
	dry := limiterOn(t, c, 1, time.Hour, true)
	i, err := NewAll([]Limit{
		{Limiter: second, Key: Metadata("x-user"), Policy: "burst"},
		{Limiter: dry, Key: everybody, Policy: "dry"},
		{Limiter: minute, Key: everybody, Policy: "all", Unit: "requests"},
	})
	if err != nil {
		t.Fatal(err)
	}
	client := serve(t, i, &service{})
	for row, want := range []struct {
		user    string
		advance time.Duration
		code    codes.Code
		message string
		said    string
	}{
		{"ann", 0, ok, "", "ratelimit-policy \"burst\";q=2;w=1, \"all\";q=3;qu=\"requests\";w=60\nratelimit \"burst\";r=1;t=1, \"all\";r=2;t=60\n"},
		{"ann", 0, ok, "", "ratelimit-policy \"burst\";q=2;w=1, \"all\";q=3;qu=\"requests\";w=60\nratelimit \"burst\";r=0;t=1, \"all\";r=1;t=60\n"},
		{"ann", 0, exhausted, "the rate limit is exceeded: burst", "ratelimit-policy \"burst\";q=2;w=1\nratelimit \"burst\";r=0;t=1\ngrpc-retry-pushback-ms 1000\n"},
		{"bob", 0, ok, "", "ratelimit-policy \"burst\";q=2;w=1, \"all\";q=3;qu=\"requests\";w=60\nratelimit \"burst\";r=1;t=1, \"all\";r=0;t=60\n"},
		{"ann", 0, exhausted, "the rate limit is exceeded: burst, all", "ratelimit-policy \"burst\";q=2;w=1, \"all\";q=3;qu=\"requests\";w=60\nratelimit \"burst\";r=0;t=1, \"all\";r=0;t=60\ngrpc-retry-pushback-ms 60000\n"},
		{"ann", time.Minute, ok, "", "ratelimit-policy \"burst\";q=2;w=1, \"all\";q=3;qu=\"requests\";w=60\nratelimit \"burst\";r=1;t=1, \"all\";r=2;t=60\n"},
	} {
		c.Advance(want.advance)
		s, said := call(t, client, want.user)
		if s.Code() != want.code || s.Message() != want.message || said != want.said {
			t.Errorf("row %d: %v %q, trailers:\n%swant %v %q\n%s", row, s.Code(), s.Message(), said, want.code, want.message, want.said)
		}
	}
	if got := minute.Stats().Counted; got != 4 {
		t.Errorf("the limit of all counted %d, want 4", got)
	}
}

func TestPushback(t *testing.T) {
	t.Parallel()
	for wait, want := range map[time.Duration]string{
		1: "1", time.Millisecond: "1", time.Millisecond + 1: "2", time.Hour: "3600000",
		24 * 24 * time.Hour: "2073600000", 25 * 24 * time.Hour: "-1", ratelimit.Never: "-1",
	} {
		if got := pushback(wait); got != want {
			t.Errorf("pushback(%v) = %q, want %q", wait, got, want)
		}
	}
}

// A client whose service config allows retries comes back after the pushback by itself.
func TestAClientThatRetriesObeysThePushback(t *testing.T) {
	t.Parallel()
	c := ratelimittest.NewClock()
	lim := limiterOn(t, c, 1, 100*time.Millisecond, false)
	calls := 0
	i, err := NewAll([]Limit{{Limiter: lim, Key: everybody, Policy: "p", Cost: func(context.Context, Call) uint64 {
		if calls++; calls > 2 {
			c.Advance(100 * time.Millisecond) // while the client waits
		}
		return 1
	}}})
	if err != nil {
		t.Fatal(err)
	}
	client := serve(t, i, &service{}, grpc.WithDefaultServiceConfig(`{"methodConfig": [{"name": [{}], "retryPolicy": {
		"maxAttempts": 3, "initialBackoff": "3600s", "maxBackoff": "3600s", "backoffMultiplier": 1, "retryableStatusCodes": ["RESOURCE_EXHAUSTED"]}}]}`))
	lim.Record("all", 1)
	calls = 1
	ctx, cancel := context.WithTimeout(as(t, "ann"), 20*time.Second)
	defer cancel()
	if _, err := client.EmptyCall(ctx, &echo.Empty{}); err != nil || calls != 3 {
		t.Errorf("after %d attempts: %v; want 2, and no error", calls-1, err)
	}
}

func TestSeveralLimitsOneOfWhichAsksTheFleet(t *testing.T) {
	t.Parallel()
	c := ratelimittest.NewClock()
	local, fleet := limiterOn(t, c, 10, time.Minute, false), limiterOn(t, c, 2, time.Hour, false)
	i, err := NewAll([]Limit{{Limiter: local, Key: everybody, Policy: "local"}, {Limiter: fleet, Key: everybody, Policy: "fleet", Fleet: true}})
	if err != nil {
		t.Fatal(err)
	}
	got := codesOf(as(t, "ann"), serve(t, i, &service{}), 3)
	if s := fleet.Stats().Fleet; !slices.Equal(got, []codes.Code{ok, ok, exhausted}) || s.Allowed != 2 || s.Limited != 1 || local.Peek("all").Level() != 2 {
		t.Errorf("codes %v, the fleet was asked %+v, local level %v", got, s, local.Peek("all").Level())
	}
}

func TestAServiceInADryRunPassesAndIsSilent(t *testing.T) {
	t.Parallel()
	lim := limiterOn(t, ratelimittest.NewClock(), 1, time.Minute, false)
	i, err := NewAll([]Limit{{Limiter: lim, Key: everybody, Policy: "p"}}, WithDryRun())
	if err != nil {
		t.Fatal(err)
	}
	s := &service{}
	client := serve(t, i, s)
	for range 3 {
		if s, said := call(t, client, "ann"); s.Code() != ok || said != "" {
			t.Errorf("%v, trailers %q", s.Code(), said)
		}
	}
	if got := strings.Join(s.verdicts, " "); got != "allowed limited limited" {
		t.Errorf("the handler saw %s", got)
	}
}

// Messages of one stream are told of when one is refused: trailers pile up.
func TestAStreamOfMessagesTellsOfTheRefusedOneAlone(t *testing.T) {
	t.Parallel()
	lim := limiterOn(t, ratelimittest.NewClock(), 2, time.Minute, false)
	i, err := NewAll([]Limit{{Limiter: lim, Key: everybody, Policy: "p"}}, WithMessages())
	if err != nil {
		t.Fatal(err)
	}
	stream, err := serve(t, i, &service{}).FullDuplexCall(as(t, "ann"))
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		if err = stream.Send(&echo.StreamingOutputCallRequest{}); err == nil {
			_, err = stream.Recv()
		}
	}
	trailer := stream.Trailer()
	if got := trailer.Get(trailerQuota); status.Code(err) != exhausted || !slices.Equal(got, []string{`"p";r=0;t=60`}) {
		t.Errorf("%v, trailer %v", err, got)
	}
}

func TestNewAllNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	lim, _ := newLimiter(t, nil)
	good := Limit{Limiter: lim, Key: everybody, Policy: "good"}
	for _, row := range []struct {
		limits []Limit
		opts   []Option
		want   string
	}{
		{nil, nil, "needs a limit"},
		{[]Limit{good, {Key: everybody, Policy: "bad"}}, nil, `limit 1 ("bad") needs a limiter`},
		{[]Limit{good, good}, nil, `limit 1: the policy "good"`},
		{[]Limit{{Limiter: lim, Key: everybody}}, nil, `limit 0: the policy's name ""`},
		{[]Limit{{Limiter: lim, Key: everybody, Policy: "a", Unit: "\n"}}, nil, `limit 0: the unit "\n"`},
		{[]Limit{good}, []Option{WithKeyErrors(9)}, "action 9"},
	} {
		if _, err := NewAll(row.limits, row.opts...); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("NewAll: %v, want an error with %q", err, row.want)
		}
	}
}
