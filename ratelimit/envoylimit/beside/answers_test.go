package beside

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"testing"
	"time"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/hanzoai/limiters/testing/ratelimittest"
)

// perScenario is how many requests each configuration gets.
const perScenario = 500

// start is shortly before all units end at once, as both count them, from the Unix epoch: 15,330 days are
// whole weeks, months of 30 days and years of 365.
var start = time.Unix(0, 0).UTC().Add(15_330*24*time.Hour - 40*time.Second)

// A tally counts what happened, so that nothing that should be compared is missing.
type tally map[string]int

// Both get the same files and the same requests on the same clock, and answer the same: each
// field of the answers, and what they count in metrics.
func TestAnswersAreTheOriginals(t *testing.T) {
	total, requests := tally{}, 0
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			seen := compare(t, s)
			for name, n := range seen {
				total[name] += n
			}
			requests += seen["requests"]
			if seen["ok"] < 20 || seen["over"] < 5 && s.name != "headers-quota" {
				t.Errorf("too little happened: %v", seen)
			}
		})
	}
	if len(scenarios) < 20 || requests < 10_000 {
		t.Errorf("%d configurations and %d requests: want 20 and 10,000", len(scenarios), requests)
	}
	for _, name := range []string{
		"ok", "over", "mixed", "error", "unlimited", "without limit", "with a limit of its own", "used up", "no hits", "several hits",
		"several descriptors", "headers", "metadata", "quota", "shadowed", "named limit", "next unit", "unknown domain",
		"SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "YEAR",
	} {
		if total[name] < 10 {
			t.Errorf("%q happened %d times: want 10 at least", name, total[name])
		}
	}
	t.Logf("%d requests; %v", requests, total)
}

// compare runs one scenario.
func compare(t *testing.T, s scenario) tally {
	for variable, value := range s.env {
		t.Setenv(variable, value)
	}
	hash := fnv.New64()
	fmt.Fprint(hash, s.name)
	seed := hash.Sum64()
	clock := ratelimittest.NewClockAt(start)
	files := s.read(t)
	theirs := newOriginal(t, clock, files, s.on("MERGE_DOMAIN_CONFIG"))
	ours := newOurs(t, clock, s.config(t), files, s.on("MERGE_DOMAIN_CONFIG"), ratelimittest.NewStore(clock))
	g := newGenerator(t, files, seed)
	seen := tally{}
	for i := range perScenario {
		g.pass(clock, seen)
		request := g.request()
		want, raised, wantErr := theirs.ask(request)
		if raised != nil {
			t.Fatalf("seed %d, request %d: the original panics: %v", seed, i, raised)
		}
		got, err := ours.ShouldRateLimit(t.Context(), request)
		if (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error() {
			t.Fatalf("seed %d, request %d, %s\ngot error %v, want %v", seed, i, shown(request), err, wantErr)
		}
		if err == nil && !proto.Equal(got, want) {
			t.Fatalf("seed %d, request %d at %v, %s\n got %s\nwant %s", seed, i, clock.Time(), shown(request), shown(got), shown(want))
		}
		seen.note(request, got, err)
	}
	for path, got := range hitsOf(t, ours) {
		if want := theirs.hits(path); !maps.Equal(got, want) {
			t.Errorf("seed %d: metrics of %s: got %v, want %v", seed, path, got, want)
		}
		seen["shadowed"] += int(got["shadow"])
	}
	return seen
}

// pass lets time pass before a request: mostly none, now and then into the next unit.
func (g *generator) pass(clock *ratelimittest.Clock, seen tally) {
	switch {
	case g.one(4):
		clock.Advance(time.Duration(g.random.IntN(700)) * time.Millisecond)
	case g.one(25):
		clock.Advance(time.Duration(g.random.IntN(20)) * time.Second)
	case g.one(40):
		unit := pick(g, time.Minute, time.Hour, 24*time.Hour, 7*24*time.Hour, 30*24*time.Hour, 365*24*time.Hour)
		clock.StepWall(unit - time.Duration(clock.Time().UnixNano()%int64(unit)) + time.Duration(g.random.IntN(5000))*time.Millisecond)
		seen["next unit"]++
	}
}

// note counts what one answer shows.
func (s tally) note(request *pb.RateLimitRequest, response *pb.RateLimitResponse, err error) {
	s["requests"]++
	if err != nil {
		s["error"]++
		return
	}
	has := func(name string, yes bool) {
		if yes {
			s[name]++
		}
	}
	over := response.OverallCode == pb.RateLimitResponse_OVER_LIMIT
	has("over", over || slices.ContainsFunc(response.Statuses, func(s *pb.RateLimitResponse_DescriptorStatus) bool {
		return s.Code == pb.RateLimitResponse_OVER_LIMIT || s.CurrentLimit != nil && s.LimitRemaining == 0
	}))
	has("ok", response.OverallCode == pb.RateLimitResponse_OK)
	has("several descriptors", len(request.Descriptors) > 1)
	has("headers", len(response.ResponseHeadersToAdd) == 3)
	has("metadata", response.DynamicMetadata != nil)
	has("quota", response.GetDynamicMetadata().GetFields()["quotaModeViolations"] != nil)
	has("unknown domain", request.Domain == "nowhere")
	for i, status := range response.Statuses {
		d := request.Descriptors[i]
		has("mixed", over && status.Code == pb.RateLimitResponse_OK)
		has("unlimited", status.CurrentLimit == nil && status.LimitRemaining > 0)
		has("without limit", status.CurrentLimit == nil && status.LimitRemaining == 0)
		has("with a limit of its own", d.Limit != nil)
		has("used up", status.Code == pb.RateLimitResponse_OK && status.CurrentLimit != nil && status.LimitRemaining == 0)
		has("no hits", d.HitsAddend != nil && d.HitsAddend.Value == 0)
		has("several hits", d.GetHitsAddend().GetValue() > 1 || request.HitsAddend > 1)
		has("named limit", status.CurrentLimit.GetName() != "")
		has(status.CurrentLimit.GetUnit().String(), status.CurrentLimit != nil)
	}
}

func shown(m proto.Message) string { return protojson.Format(m) }
