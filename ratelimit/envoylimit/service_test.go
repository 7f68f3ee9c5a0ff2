package envoylimit_test

import (
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"

	"github.com/hanzoai/limiters/ratelimit/envoylimit"
	"github.com/hanzoai/limiters/testing/ratelimittest"
)

const perMinute = "domain: d\ndescriptors:\n  - key: k\n    rate_limit: {unit: minute, requests_per_unit: 10}"

// Counts stay while the limit of a rule changes, and when it is away for a while.
func TestCountsStayWhenRulesChange(t *testing.T) {
	t.Parallel()
	clock := ratelimittest.NewClock()
	s := newService(t, clock, ratelimittest.NewStore(clock), perMinute, io.Discard)
	if got := passes(t, s, "k", "a", 8); got != 8 {
		t.Fatalf("got %d of 8", got)
	}
	set(t, s, strings.Replace(perMinute, "10", "12", 1))
	if got := passes(t, s, "k", "a", 8); got != 4 {
		t.Errorf("after 8 of 12: got %d more, want 4", got)
	}
	set(t, s, "domain: other")
	if got := passes(t, s, "k", "a", 5); got != 5 {
		t.Errorf("without a rule: got %d of 5", got)
	}
	set(t, s, strings.Replace(perMinute, "10", "17", 1))
	if got := passes(t, s, "k", "a", 8); got != 1 {
		t.Errorf("after 16 of 17, 4 of them refused: got %d more, want 1", got)
	}
	clock.Advance(time.Minute)
	if got := passes(t, s, "k", "a", 20); got != 17 {
		t.Errorf("in the next minute: got %d, want 17", got)
	}
}

// A sliding window does not begin anew with the minute, and refused hits count nothing.
func TestSlidingWindow(t *testing.T) {
	t.Parallel()
	clock := ratelimittest.NewClock()
	s := newService(t, clock, ratelimittest.NewStore(clock), strings.Replace(perMinute, "unit: minute", "unit: minute, window: sliding", 1), io.Discard)
	clock.Advance(50 * time.Second)
	if got := passes(t, s, "k", "a", 30); got != 10 {
		t.Errorf("at once: got %d, want 10", got)
	}
	clock.Advance(15 * time.Second)
	if got := passes(t, s, "k", "a", 30); got != 0 {
		t.Errorf("in the next minute, 15 s later: got %d, want 0", got)
	}
	clock.Advance(46 * time.Second)
	if got := passes(t, s, "k", "a", 30); got != 10 {
		t.Errorf("a minute later: got %d, want 10", got)
	}
}

// fleet: true keeps the limit exactly on any number of replicas, in a burst too; without it replicas learn of
// each other within a tick.
func TestFleetIsExact(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rules  string
		passed int
	}{
		{strings.Replace(perMinute, "unit: minute", "unit: minute, fleet: true", 1), 10},
		{perMinute, 30},
	} {
		clock := ratelimittest.NewClock()
		store := ratelimittest.NewStore(clock)
		passed := 0
		var replicas []*envoylimit.Service
		for range 3 {
			replicas = append(replicas, newService(t, clock, store, test.rules, io.Discard))
		}
		for range 20 {
			for _, s := range replicas {
				passed += passes(t, s, "k", "a", 1)
			}
		}
		if passed != test.passed {
			t.Errorf("%s\nat one moment three replicas pass %d, want %d", test.rules, passed, test.passed)
		}
		clock.Advance(2 * time.Second)
		for i, s := range replicas {
			if got := passes(t, s, "k", "a", 1); got != 0 {
				t.Errorf("%s\nreplica %d passes more after a tick", test.rules, i)
			}
		}
	}
}

// While Redis is away fleet: true is decided by what this replica knows, and counted in a metric.
func TestFleetWhileRedisIsAway(t *testing.T) {
	t.Parallel()
	clock := ratelimittest.NewClock()
	store := ratelimittest.NewStore(clock)
	s := newService(t, clock, store, strings.Replace(perMinute, "unit: minute", "unit: minute, fleet: true", 1), io.Discard)
	store.Fail(ratelimittest.Unreachable)
	if got := passes(t, s, "k", "a", 30); got != 10 {
		t.Errorf("got %d, want 10", got)
	}
	var text strings.Builder
	s.WritePrometheus(&text)
	if !strings.Contains(text.String(), "envoylimit_not_fleet_total 30\n") {
		t.Errorf("got %s", text.String())
	}
	store.Heal()
}

// Every bad request gets an error, and counts nothing.
func TestBadRequests(t *testing.T) {
	t.Parallel()
	clock := ratelimittest.NewClock()
	store := ratelimittest.NewStore(clock)
	s := newService(t, clock, store, "", io.Discard)
	descriptor := &ratelimitv3.RateLimitDescriptor{Entries: []*ratelimitv3.RateLimitDescriptor_Entry{{Key: "k", Value: "a"}}}
	good := &pb.RateLimitRequest{Domain: "d", Descriptors: []*ratelimitv3.RateLimitDescriptor{descriptor}}
	wrongUnit := &ratelimitv3.RateLimitDescriptor{Limit: &ratelimitv3.RateLimitDescriptor_RateLimitOverride{Unit: 99}}
	noUnit := &ratelimitv3.RateLimitDescriptor{Limit: &ratelimitv3.RateLimitDescriptor_RateLimitOverride{Unit: typev3.RateLimitUnit_UNKNOWN}}
	if _, err := s.ShouldRateLimit(t.Context(), good); err == nil || err.Error() != "no rate limit configuration loaded" {
		t.Errorf("without rules: got %v", err)
	}
	set(t, s, perMinute)
	for name, request := range map[string]*pb.RateLimitRequest{
		"nil": nil, "no domain": {Descriptors: good.Descriptors}, "no descriptors": {Domain: "d"},
		"a wrong unit": {Domain: "d", Descriptors: []*ratelimitv3.RateLimitDescriptor{descriptor, wrongUnit}},
		"no unit":      {Domain: "d", Descriptors: []*ratelimitv3.RateLimitDescriptor{descriptor, noUnit}},
	} {
		if response, err := s.ShouldRateLimit(t.Context(), request); err == nil || response != nil {
			t.Errorf("%s: got %v, want an error", name, response)
		}
	}
	for _, request := range []*pb.RateLimitRequest{
		{Domain: "d", Descriptors: []*ratelimitv3.RateLimitDescriptor{nil, {Entries: []*ratelimitv3.RateLimitDescriptor_Entry{nil}}}},
		{Domain: "d\xff", Descriptors: []*ratelimitv3.RateLimitDescriptor{descriptor}},
	} {
		if response, err := s.ShouldRateLimit(t.Context(), request); err != nil || response.OverallCode != pb.RateLimitResponse_OK {
			t.Errorf("got %v, %v", response, err)
		}
	}
	if response := ask(t, s, "k", "a"); response.Statuses[0].LimitRemaining != 9 {
		t.Errorf("bad requests counted: %v", response)
	}
}

// Different descriptors have different counts, whatever they are made of.
func TestEntitiesDiffer(t *testing.T) {
	t.Parallel()
	clock := ratelimittest.NewClock()
	s := newService(t, clock, ratelimittest.NewStore(clock), `domain: d
descriptors:
  - {key: a, rate_limit: {unit: minute, requests_per_unit: 1}}
  - {key: a_b, rate_limit: {unit: minute, requests_per_unit: 1}}
  - {key: "a=x", rate_limit: {unit: minute, requests_per_unit: 1}}
  - {key: "a\\", rate_limit: {unit: minute, requests_per_unit: 1}}
`, io.Discard)
	for _, entry := range [][2]string{{"a", "b_c"}, {"a_b", "c"}, {"a", "x=y"}, {"a=x", "y"}, {`a\`, "y"}, {"a", `\=y`}, {"a", "b|c"}, {"a", strings.Repeat("long", 500)}} {
		if got := passes(t, s, entry[0], entry[1], 2); got != 1 {
			t.Errorf("%q: %d of 2 pass, want 1", entry, got)
		}
	}
}

// Concurrent requests pass just the limit, while rules are put in force over and over.
func TestConcurrentRequests(t *testing.T) {
	t.Parallel()
	clock := ratelimittest.NewClock()
	s := newService(t, clock, ratelimittest.NewStore(clock), strings.Replace(perMinute, "10", "500", 1), io.Discard)
	rules := s.Rules()
	var passed atomic.Int64
	var asking sync.WaitGroup
	for range 16 {
		asking.Go(func() {
			for range 100 {
				if ask(t, s, "k", "a").OverallCode == pb.RateLimitResponse_OK {
					passed.Add(1)
				}
				if err := s.SetRules(rules); err != nil {
					t.Error(err)
				}
			}
		})
	}
	asking.Wait()
	if got := passed.Load(); got != 500 {
		t.Errorf("%d of 1,600 pass, want 500", got)
	}
}

// Descriptors beyond the bound share one name in the metrics, and lose no hit.
func TestMetricsAreBounded(t *testing.T) {
	t.Parallel()
	clock := ratelimittest.NewClock()
	s := newService(t, clock, ratelimittest.NewStore(clock), strings.Replace(perMinute, "- key: k", "- key: k\n    detailed_metric: true", 1), io.Discard)
	const values = 10_100
	for i := range values {
		ask(t, s, "k", "\"\\\n"+strconv.Itoa(i))
	}
	var text strings.Builder
	s.WritePrometheus(&text)
	lines, sum := 0, 0
	for line := range strings.Lines(text.String()) {
		if strings.Contains(line, `result="total"`) {
			n, err := strconv.Atoi(strings.TrimSpace(line[strings.LastIndexByte(line, ' ')+1:]))
			if err != nil {
				t.Fatal(err)
			}
			lines++
			sum += n
		}
	}
	if lines > 10_001 || sum != values || !strings.Contains(text.String(), `descriptor="(other)"`) {
		t.Errorf("%d descriptors with %d hits, want 10,001 with %d", lines, sum, values)
	}
}
