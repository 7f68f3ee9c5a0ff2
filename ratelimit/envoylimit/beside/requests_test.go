package beside

// This file makes requests at random, most of which mean something to the configuration.

import (
	"math/rand/v2"
	"strings"
	"testing"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"gopkg.in/yaml.v2"

	"github.com/hanzoai/limiters/ratelimit/envoylimit"
)

// A generator knows the descriptors of a configuration.
type generator struct {
	random  *rand.Rand
	domains []string
	chains  map[string][][]step // of each domain: from the root to every descriptor
}

type step struct{ key, value string }

// A tree is a descriptor as the generator reads it.
type tree struct {
	Domain, Key, Value string
	Descriptors        []tree
}

func newGenerator(t *testing.T, files []envoylimit.File, seed uint64) *generator {
	t.Helper()
	g := &generator{random: rand.New(rand.NewPCG(seed, 1)), chains: map[string][][]step{}}
	for _, file := range files {
		var root tree
		if err := yaml.Unmarshal(file.Content, &root); err != nil {
			t.Fatal(err)
		}
		g.domains = append(g.domains, root.Domain)
		g.walk(root.Domain, nil, root.Descriptors)
	}
	return g
}

func (g *generator) walk(domain string, above []step, descriptors []tree) {
	for _, d := range descriptors {
		chain := append(append([]step(nil), above...), step{d.Key, d.Value})
		g.chains[domain] = append(g.chains[domain], chain)
		g.walk(domain, chain, d.Descriptors)
	}
}

func pick[T any](g *generator, from ...T) T { return from[g.random.IntN(len(from))] }

// one reports true once in n times.
func (g *generator) one(n int) bool { return g.random.IntN(n) == 0 }

func (g *generator) request() *pb.RateLimitRequest {
	request := &pb.RateLimitRequest{Domain: pick(g, g.domains...)}
	chains := g.chains[request.Domain]
	if g.one(60) {
		request.Domain = pick(g, "", "nowhere", "shop2")
	}
	switch {
	case g.one(10):
		request.HitsAddend = uint32(1 + g.random.IntN(4))
	case g.one(100):
		request.HitsAddend = pick[uint32](g, 1_000_000, 4294967295)
	}
	for range pick(g, 1, 1, 1, 2, 2, 3) {
		request.Descriptors = append(request.Descriptors, g.descriptor(chains))
	}
	if g.one(120) {
		request.Descriptors = nil
	}
	return request
}

func (g *generator) descriptor(chains [][]step) *ratelimitv3.RateLimitDescriptor {
	d := &ratelimitv3.RateLimitDescriptor{}
	chain := pick(g, chains...)
	if g.one(12) {
		chain = append(append([]step(nil), chain...), step{pick(g, "user", "path", "unheard"), ""})
	}
	for _, s := range chain {
		d.Entries = append(d.Entries, g.entry(s))
	}
	if g.one(40) {
		d.Entries = nil
	}
	switch {
	case g.one(8):
		d.HitsAddend = wrapperspb.UInt64(0)
	case g.one(8):
		d.HitsAddend = wrapperspb.UInt64(uint64(1 + g.random.IntN(5)))
	case g.one(150):
		d.HitsAddend = wrapperspb.UInt64(1 << 40)
	}
	d.IsNegativeHits = g.one(50)
	if g.one(15) {
		// One unit for each name: the original lets units of one name meet where they begin at one moment.
		unit := pick(g, typev3.RateLimitUnit_MINUTE, typev3.RateLimitUnit_HOUR, typev3.RateLimitUnit_DAY)
		d.Entries = []*ratelimitv3.RateLimitDescriptor_Entry{{Key: "own", Value: pick(g, "x", "y") + unit.String()}}
		d.Limit = &ratelimitv3.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: pick[uint32](g, 0, 2, 2, 5), Unit: unit}
	}
	return d
}

// entry is what a step of a chain may be met by. No value holds what would make two different
// descriptors one for the original.
func (g *generator) entry(s step) *ratelimitv3.RateLimitDescriptor_Entry {
	entry := &ratelimitv3.RateLimitDescriptor_Entry{Key: s.key, Value: s.value}
	switch {
	case g.one(15):
		entry.Value = pick(g, "", "other", "alice", "files/exact", "*")
	case strings.HasSuffix(s.key, "*"):
		entry.Key = strings.TrimSuffix(s.key, "*") + pick(g, "", "1", "2")
		entry.Value = pick(g, "a", "b")
	case strings.HasSuffix(s.value, "*"):
		entry.Value = strings.TrimSuffix(s.value, "*") + pick(g, "", "a", "b", "private/c", "*")
	case s.value == "":
		entry.Value = pick(g, "alice", "bob", "bob", "u1", "v1", "v2", "files/a")
	}
	return entry
}
