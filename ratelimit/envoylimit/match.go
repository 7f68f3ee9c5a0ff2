package envoylimit

// This file finds the rule of a descriptor, as envoyproxy/ratelimit does.

import (
	"slices"
	"strings"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
)

// A match is what applies to one descriptor of a request.
type match struct {
	rule   *rule // nil: none
	entity string
	metric string // what its counts are shown under
}

// match finds the rule of a descriptor. It reports false for a domain that it does not
// know.
//
// Each entry is looked up as key_value, then among the wildcards in their order, then as the
// key alone. The last entry must be at a depth that has a limit: neither deeper nor
// shallower descriptors match. A limit that the request brings with it is taken as it is,
// without a look at the rules.
func (r *Rules) match(domain string, d *ratelimitv3.RateLimitDescriptor) (m match, known bool) {
	at := r.domains[domain]
	if at == nil {
		return match{}, false
	}
	entries := d.GetEntries()
	if own := d.GetLimit(); own != nil {
		path := plainPath(domain, entries)
		return match{
			rule: &rule{path: path, limit: &pb.RateLimitResponse_RateLimit{
				RequestsPerUnit: own.GetRequestsPerUnit(), Unit: pb.RateLimitResponse_RateLimit_Unit(own.GetUnit()),
			}},
			entity: string(appendEntity(nil, domain, entries, nil)), metric: path,
		}, true
	}
	var few [8]string
	shared := few[:0] // for each entry the pattern that stands in for its value, or ""
	anyShared := false
	var pathRoom, keyRoom [192]byte
	path := append(pathRoom[:0], domain...)
	for _, entry := range entries {
		next, wildcard, byValue := at.child(entry)
		if next == nil {
			return match{}, true
		}
		pattern := ""
		if wildcard != "" && next.shareThreshold {
			pattern = strings.TrimPrefix(next.pattern, entry.GetKey()+"_")
			anyShared = true
		}
		shared = append(shared, pattern)
		path = appendPath(path, entry.GetKey(), shownValue(entry, next, wildcard, pattern, byValue))
		at = next
	}
	if at.rule == nil || len(entries) == 0 {
		return match{}, true
	}
	if !anyShared {
		shared = nil
	}
	m = match{rule: at.rule, metric: at.rule.path, entity: string(appendEntity(keyRoom[:0], domain, entries, shared))}
	switch {
	case at.rule.detailed:
		m.metric = detailedPath(domain, entries, shared)
	case string(path) != at.rule.path:
		m.metric = string(path)
	}
	return m, true
}

// child finds the node of an entry: by key and value, by a wildcard, which it returns, or by
// the key alone.
func (n *node) child(entry *ratelimitv3.RateLimitDescriptor_Entry) (next *node, wildcard string, byValue bool) {
	var room [128]byte
	name := append(append(append(room[:0], entry.GetKey()...), '_'), entry.GetValue()...)
	if next = n.children[string(name)]; next != nil {
		return next, "", true
	}
	for _, wildcard := range n.wildcards {
		if prefix := wildcard[:len(wildcard)-1]; len(name) >= len(prefix) && string(name[:len(prefix)]) == prefix {
			return n.children[wildcard], wildcard, true
		}
	}
	return n.children[entry.GetKey()], "", false
}

// shownValue is what a metric shows of an entry's value.
func shownValue(entry *ratelimitv3.RateLimitDescriptor_Entry, next *node, wildcard, pattern string, byValue bool) string {
	switch {
	case pattern != "":
		return pattern
	case next.valueToMetric, byValue && wildcard == "":
		return entry.GetValue()
	case wildcard != "":
		return strings.TrimPrefix(wildcard, entry.GetKey()+"_")
	}
	return ""
}

func appendPath(path []byte, key, value string) []byte {
	path = append(append(path, '.'), key...)
	if value != "" {
		path = append(append(path, '_'), value...)
	}
	return path
}

func plainPath(domain string, entries []*ratelimitv3.RateLimitDescriptor_Entry) string {
	path := []byte(domain)
	if len(entries) == 0 {
		path = append(path, '.')
	}
	for _, entry := range entries {
		path = appendPath(path, entry.GetKey(), entry.GetValue())
	}
	return string(path)
}

// detailedPath names every value, or the pattern that it shares its count under.
func detailedPath(domain string, entries []*ratelimitv3.RateLimitDescriptor_Entry, shared []string) string {
	path := []byte(domain)
	for i, entry := range entries {
		switch {
		case shared == nil:
			path = append(append(append(append(path, '.'), entry.GetKey()...), '_'), entry.GetValue()...)
		case shared[i] != "":
			path = appendPath(path, entry.GetKey(), shared[i])
		default:
			path = appendPath(path, entry.GetKey(), entry.GetValue())
		}
	}
	return string(path)
}

// appendEntity appends the entity key of a descriptor: its domain, keys and values, each
// value replaced by the pattern that it shares its count under. Different descriptors have
// different keys, whatever characters they are made of.
func appendEntity(key []byte, domain string, entries []*ratelimitv3.RateLimitDescriptor_Entry, shared []string) []byte {
	key = appendEscaped(key, domain)
	for i, entry := range entries {
		value := entry.GetValue()
		if shared != nil && shared[i] != "" {
			value = shared[i]
		}
		key = appendEscaped(append(key, '|'), entry.GetKey())
		key = appendEscaped(append(key, '='), value)
	}
	return key
}

func appendEscaped(key []byte, text string) []byte {
	if !strings.ContainsAny(text, `|=\`) {
		return append(key, text...)
	}
	for i := range len(text) {
		if slices.Contains([]byte(`|=\`), text[i]) {
			key = append(key, '\\')
		}
		key = append(key, text[i])
	}
	return key
}
