package beside

import (
	"fmt"
	"strings"
	"testing"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/hanzoai/limiters/ratelimit/envoylimit"
	"github.com/hanzoai/limiters/testing/ratelimittest"
)

// The answers that are meant to differ (docs/envoy.md has the same table). Each row asks both in
// turn, from the start of a minute, hour and day on, and says what the last of its requests is answered.
var differences = []struct {
	name         string
	away         bool // Redis, for both
	requests     []*pb.RateLimitRequest
	theirs, ours string
}{
	{
		name:     "a limit of its own in no unit",
		requests: []*pb.RateLimitRequest{own("x", 5, typev3.RateLimitUnit_UNKNOWN)},
		theirs:   "panic", ours: "error",
	},
	{
		name:     "descriptors of the same text",
		requests: []*pb.RateLimitRequest{entry("a", "b_c"), entry("a_b", "c")},
		theirs:   "OVER_LIMIT", ours: "OK 0",
	},
	{
		name:     "two units of a descriptor that begin at once",
		requests: []*pb.RateLimitRequest{own("x", 1, typev3.RateLimitUnit_MINUTE), own("x", 1, typev3.RateLimitUnit_HOUR)},
		theirs:   "OVER_LIMIT", ours: "OK 0",
	},
	{
		name:     "hits beyond 63 bits",
		requests: []*pb.RateLimitRequest{hits(entry("a", "many"), 1<<63)},
		theirs:   "error", ours: "OVER_LIMIT",
	},
	{
		name:     "hits that come to more than 63 bits",
		requests: []*pb.RateLimitRequest{hits(entry("a", "sum"), 1<<62), hits(entry("a", "sum"), 1<<62)},
		theirs:   "error", ours: "OVER_LIMIT",
	},
	{
		name:     "Redis is away",
		away:     true,
		requests: []*pb.RateLimitRequest{entry("a", "away")},
		theirs:   "error", ours: "OK 0",
	},
}

const differencesRules = `domain: d
descriptors:
  - {key: a, rate_limit: {unit: minute, requests_per_unit: 1}}
  - {key: a_b, rate_limit: {unit: minute, requests_per_unit: 1}}
`

func entry(key, value string) *pb.RateLimitRequest {
	return &pb.RateLimitRequest{Domain: "d", Descriptors: []*ratelimitv3.RateLimitDescriptor{{
		Entries: []*ratelimitv3.RateLimitDescriptor_Entry{{Key: key, Value: value}},
	}}}
}

func own(value string, requests uint32, unit typev3.RateLimitUnit) *pb.RateLimitRequest {
	request := entry("own", value)
	request.Descriptors[0].Limit = &ratelimitv3.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: requests, Unit: unit}
	return request
}

func hits(request *pb.RateLimitRequest, n uint64) *pb.RateLimitRequest {
	request.Descriptors[0].HitsAddend = wrapperspb.UInt64(n)
	return request
}

// What differs is known, and meant.
func TestDifferences(t *testing.T) {
	for _, d := range differences {
		t.Run(d.name, func(t *testing.T) {
			clock := ratelimittest.NewClockAt(start.Truncate(24 * time.Hour))
			files := []envoylimit.File{{Name: "d.yaml", Content: []byte(differencesRules)}}
			theirs := newOriginal(t, clock, files, false)
			store := ratelimittest.NewStore(clock)
			ours := newOurs(t, clock, envoylimit.DefaultConfig(), files, false, store)
			if d.away {
				theirs.server.SetError("away")
				store.Fail(ratelimittest.Unreachable)
				defer store.Heal()
			}
			var got, want string
			for _, request := range d.requests {
				response, raised, err := theirs.ask(request)
				want = outcome(response, raised, err)
				response, err = ours.ShouldRateLimit(t.Context(), request)
				got = outcome(response, nil, err)
			}
			if want != d.theirs || got != d.ours {
				t.Errorf("theirs %s, ours %s; the table says %s, %s", want, got, d.theirs, d.ours)
			}
		})
	}
}

func outcome(response *pb.RateLimitResponse, raised any, err error) string {
	switch {
	case raised != nil:
		return "panic"
	case err != nil:
		return "error"
	case response.OverallCode == pb.RateLimitResponse_OK:
		return fmt.Sprint("OK ", response.Statuses[0].LimitRemaining)
	}
	return response.OverallCode.String()
}

// Files are taken and refused by both alike, but for those that are
// marked: a field that stands twice is a mistake, and the original does not know ours.
func TestFilesAreTakenAlike(t *testing.T) {
	clock := ratelimittest.NewClockAt(start)
	theirs := newOriginal(t, clock, nil, false)
	limit := func(fields string) string {
		return "domain: d\ndescriptors:\n  - key: k\n    rate_limit: {" + fields + "}"
	}
	descriptor := func(fields string) string { return "domain: d\ndescriptors:\n  - {" + fields + "}" }
	for _, test := range []struct {
		name, text      string
		taken, weDiffer bool
	}{
		{name: "empty"},
		{name: "no domain", text: "descriptors: []"},
		{name: "a domain alone", text: "domain: d", taken: true},
		{name: "null descriptors", text: "domain: d\ndescriptors:", taken: true},
		{name: "no YAML", text: "domain: ["},
		{name: "a list", text: "- domain"},
		{name: "an unknown field", text: "domain: d\nlimits:"},
		{name: "a field in capitals", text: "Domain: d"},
		{name: "a name that is no text", text: "1: d\ndomain: d"},
		{name: "descriptors that are text", text: "domain: d\ndescriptors: [a]"},
		{name: "descriptors that are a mapping", text: "domain: d\ndescriptors: {key: a}"},
		{name: "an empty key", text: descriptor("value: v")},
		{name: "a key that is a number", text: descriptor("key: 5"), taken: true},
		{name: "a key with a fraction", text: descriptor("key: 5.5")},
		{name: "a key twice", text: "domain: d\ndescriptors: [{key: a}, {key: a}]"},
		{name: "a text twice", text: "domain: d\ndescriptors: [{key: a, value: b_c}, {key: a_b, value: c}]"},
		{name: "a misplaced field", text: descriptor("key: a, unit: day"), taken: true},
		{name: "a field twice", text: "domain: d\ndescriptors: []\ndomain: e", taken: true, weDiffer: true},
		{name: "our fields", text: limit("unit: day, window: sliding"), weDiffer: true},
		{name: "share_threshold without a wildcard", text: descriptor("key: a, value: b, share_threshold: true")},
		{name: "share_threshold", text: descriptor("key: a, value: b*, share_threshold: true"), taken: true},
		{name: "shadow_mode: maybe", text: descriptor("key: a, shadow_mode: maybe")},
		{name: "shadow_mode: on", text: descriptor("key: a, shadow_mode: on"), taken: true},
		{name: "shadow_mode: 1", text: descriptor("key: a, shadow_mode: 1")},
		{name: "no unit", text: limit("requests_per_unit: 5")},
		{name: "a wrong unit", text: limit("requests_per_unit: 5, unit: fortnight")},
		{name: "the unknown unit", text: limit("requests_per_unit: 5, unit: unknown")},
		{name: "no requests", text: limit("unit: day"), taken: true},
		{name: "requests below 0", text: limit("unit: day, requests_per_unit: -1")},
		{name: "requests beyond 32 bits", text: limit("unit: day, requests_per_unit: 4294967296")},
		{name: "requests in quotes", text: limit(`unit: day, requests_per_unit: "5"`)},
		{name: "unlimited", text: limit("unlimited: true"), taken: true},
		{name: "unlimited with a unit", text: limit("unlimited: true, unit: day")},
		{name: "unlimited with requests", text: limit("unlimited: true, requests_per_unit: 3"), taken: true},
		{name: "replaces nothing", text: limit("unit: day, replaces: [{name: }]")},
		{name: "replaces itself", text: limit("unit: day, name: a, replaces: [{name: a}]")},
		{name: "replaces text", text: limit("unit: day, replaces: [a]")},
		{name: "replaces another", text: limit("unit: day, name: a, replaces: [{name: b}]"), taken: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			files := []envoylimit.File{{Name: "f.yaml", Content: []byte(test.text)}}
			_, theirErr := theirs.load(files, false)
			_, _, err := envoylimit.ReadRules(files, false)
			if (theirErr == nil) != test.taken || (err == nil) != (test.taken != test.weDiffer) {
				t.Errorf("theirs: %v\nours: %v\nwant taken: %v", theirErr, err, test.taken)
			}
			if err != nil && !strings.Contains(err.Error(), "f.yaml:") {
				t.Errorf("%v names no file", err)
			}
		})
	}
}
