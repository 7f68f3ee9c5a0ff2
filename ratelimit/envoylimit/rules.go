package envoylimit

// This file is what configuration files say, as a tree that requests are matched with.

import (
	"fmt"
	"slices"
	"strings"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
)

// Rules are the limits of all domains, as [ReadRules] read them. They do not change, and
// may be used from any goroutine. The zero value has no domain.
type Rules struct {
	domains map[string]*node
}

// Domains returns the names of the domains, sorted.
func (r *Rules) Domains() []string {
	names := make([]string, 0, len(r.domains))
	for name := range r.domains {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// A node is one descriptor of a file, or a domain.
type node struct {
	children  map[string]*node // by key, or key_value
	wildcards []string         // those of children that end with an asterisk, in the order of the files
	rule      *rule            // nil: no limit at this depth

	valueToMetric  bool
	shareThreshold bool
	pattern        string // the name among its parent's children
}

// A rule is a rate_limit with what its descriptor says about it.
type rule struct {
	limit     *pb.RateLimitResponse_RateLimit // shared by all answers; never changed
	unlimited bool
	shadow    bool
	quota     bool
	detailed  bool // metrics by the request's values
	replaces  []string
	sliding   bool // our addition: the last window instead of the current one
	fleet     bool // our addition: decided by the fleet's counters
	path      string
}

// windowOf returns the window that the rule counts in.
func (r *rule) windowOf() window {
	return window{unit: r.limit.GetUnit(), sliding: r.sliding}
}

// windows returns the windows that any rule counts in.
func (r *Rules) windows() []window {
	found := map[window]bool{}
	for _, domain := range r.domains {
		domain.collect(found)
	}
	all := make([]window, 0, len(found))
	for w := range found {
		all = append(all, w)
	}
	return all
}

func (n *node) collect(found map[window]bool) {
	if n.rule != nil && !n.rule.unlimited {
		found[n.rule.windowOf()] = true
	}
	for _, child := range n.children {
		child.collect(found)
	}
}

// String returns the rules as text for people, a line for each limit, sorted.
func (r *Rules) String() string {
	var lines []string
	for _, domain := range r.domains {
		lines = domain.describe(lines)
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

func (n *node) describe(lines []string) []string {
	if r := n.rule; r != nil {
		what := fmt.Sprintf("%d per %v", r.limit.GetRequestsPerUnit(), r.windowOf())
		if r.unlimited {
			what = "unlimited"
		}
		for _, extra := range []struct {
			on   bool
			text string
		}{{r.shadow, "shadow_mode"}, {r.quota, "quota_mode"}, {r.fleet, "fleet"}} {
			if extra.on {
				what += ", " + extra.text
			}
		}
		lines = append(lines, r.path+": "+what+"\n")
	}
	for _, child := range n.children {
		lines = child.describe(lines)
	}
	return lines
}
