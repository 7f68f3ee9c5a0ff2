package envoylimit

// This file turns configuration files into rules, and says what is wrong with them.

import (
	"errors"
	"fmt"
	"strings"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"go.yaml.in/yaml/v3"
)

// A File is one configuration file.
type File struct {
	Name    string // what errors call it
	Content []byte
}

// The fields of each kind of mapping. window and fleet are our additions.
var (
	rootFields       = []string{"domain", "descriptors"}
	descriptorFields = []string{
		"key", "value", "rate_limit", "descriptors", "shadow_mode", "quota_mode", "detailed_metric", "value_to_metric", "share_threshold",
	}
	limitFields    = []string{"requests_per_unit", "unit", "unlimited", "name", "replaces", "window", "fleet"}
	replacesFields = []string{"name"}
	allFields      = append(append(append(append([]string(nil), rootFields...), descriptorFields...), limitFields...), replacesFields...)
)

// ReadRules reads files in the format of envoyproxy/ratelimit, one domain each. Several files
// of one domain are a problem, unless merge is set: then the descriptors of all of them
// count, in the order of the files.
//
// The error joins everything that is wrong in any of the files, with file, line and field.
// Warnings tell of fields that mean nothing where they stand. ReadRules is safe for concurrent use.
func ReadRules(files []File, merge bool) (rules *Rules, warnings []string, err error) {
	rules = &Rules{domains: map[string]*node{}}
	var problems []error
	for _, file := range files {
		d := &document{file: file.Name}
		d.readRoot(d.open(file.Content), rules, merge)
		problems = append(problems, d.problems...)
		warnings = append(warnings, d.warnings...)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, warnings, fmt.Errorf("envoylimit: %w", err)
	}
	return rules, warnings, nil
}

func (d *document) readRoot(n *yaml.Node, rules *Rules, merge bool) {
	if len(d.problems) > 0 {
		return
	}
	line, domain := 1, ""
	var descriptors []*yaml.Node
	if n != nil {
		line = n.Line
		for _, f := range d.fields(n, "", rootFields) {
			switch f.name {
			case "domain":
				domain, line = d.text(f, f.name), f.line
			case "descriptors":
				descriptors = d.list(f, f.name)
			}
		}
	}
	if domain == "" {
		if len(d.problems) == 0 {
			d.failf(line, "domain", "must not be empty")
		}
		return
	}
	root := rules.domains[domain]
	if root != nil && !merge {
		d.failf(line, "domain", "%q is in another file already (MERGE_DOMAIN_CONFIG=true merges them)", domain)
		return
	}
	if root == nil {
		root = &node{children: map[string]*node{}}
		rules.domains[domain] = root
	}
	d.readDescriptors(descriptors, "descriptors", root, domain+".")
}

func (d *document) readDescriptors(descriptors []*yaml.Node, path string, parent *node, parentPath string) {
	for i, n := range descriptors {
		d.readDescriptor(n, fmt.Sprintf("%s[%d]", path, i), parent, parentPath)
		if d.nodes > maxNodes {
			return
		}
	}
}

func (d *document) readDescriptor(n *yaml.Node, path string, parent *node, parentPath string) {
	if n.ShortTag() == "!!null" {
		d.failf(n.Line, path, "want a mapping of fields, found null")
		return
	}
	child := &node{children: map[string]*node{}}
	var key, value string
	var limit, nested *field
	r := &rule{}
	for _, f := range d.fields(n, path, descriptorFields) {
		at := join(path, f.name)
		switch f.name {
		case "key":
			key = d.text(f, at)
		case "value":
			value = d.text(f, at)
		case "rate_limit":
			limit = &f
		case "descriptors":
			nested = &f
		case "shadow_mode":
			r.shadow = d.flag(f, at)
		case "quota_mode":
			r.quota = d.flag(f, at)
		case "detailed_metric":
			r.detailed = d.flag(f, at)
		case "value_to_metric":
			child.valueToMetric = d.flag(f, at)
		case "share_threshold":
			child.shareThreshold = d.flag(f, at)
		}
	}
	if key == "" {
		d.failf(n.Line, join(path, "key"), "must not be empty")
		return
	}
	name := key
	if value != "" {
		name += "_" + value
	}
	child.pattern, r.path = name, parentPath+name
	if parent.children[name] != nil {
		d.failf(n.Line, path, "there is a descriptor %q already (key and value are joined by _)", r.path)
		return
	}
	if child.shareThreshold && !strings.HasSuffix(name, "*") {
		d.failf(n.Line, join(path, "share_threshold"), "%q: want a value that ends with *", name)
	}
	if strings.HasSuffix(name, "*") {
		parent.wildcards = append(parent.wildcards, name)
	}
	if limit != nil {
		child.rule = d.readLimit(*limit, join(path, "rate_limit"), r)
	}
	parent.children[name] = child
	if nested != nil {
		path = join(path, "descriptors")
		d.readDescriptors(d.list(*nested, path), path, child, r.path+".")
	}
}

// readLimit fills in r; nil if there is no limit after all.
func (d *document) readLimit(limit field, path string, r *rule) *rule {
	if n, ok := d.follow(limit.value, path); !ok || n.ShortTag() == "!!null" {
		return nil
	}
	var unit, name string
	var requests uint32
	var replaces []*yaml.Node
	unitLine, slidingLine, fleetLine := limit.line, limit.line, limit.line
	for _, f := range d.fields(limit.value, path, limitFields) {
		at := join(path, f.name)
		switch f.name {
		case "requests_per_unit":
			requests = d.number(f, at)
		case "unit":
			unit, unitLine = d.text(f, at), f.line
		case "unlimited":
			r.unlimited = d.flag(f, at)
		case "name":
			name = d.text(f, at)
		case "replaces":
			replaces = d.list(f, at)
		case "window":
			slidingLine = f.line
			switch kind := d.text(f, at); kind {
			case "", "fixed":
			case "sliding":
				r.sliding = true
			default:
				d.failf(f.line, at, "%q: want fixed or sliding", kind)
			}
		case "fleet":
			r.fleet, fleetLine = d.flag(f, at), f.line
		}
	}
	u, known := unitOf(unit)
	switch {
	case r.unlimited && known:
		d.failf(unitLine, join(path, "unit"), "%q: an unlimited descriptor has no unit", unit)
	case !r.unlimited && !known:
		d.failf(unitLine, join(path, "unit"), "%q: want second, minute, hour, day, week, month or year", unit)
	}
	if r.unlimited && r.sliding {
		d.failf(slidingLine, join(path, "window"), "an unlimited descriptor has no window")
	}
	if r.unlimited && r.fleet {
		d.failf(fleetLine, join(path, "fleet"), "an unlimited descriptor asks nobody")
	}
	for i, n := range replaces {
		r.replaces = append(r.replaces, d.readReplaced(n, fmt.Sprintf("%s.replaces[%d]", path, i), name))
	}
	r.limit = &pb.RateLimitResponse_RateLimit{RequestsPerUnit: requests, Unit: u, Name: name}
	return r
}

func (d *document) readReplaced(n *yaml.Node, path, own string) (name string) {
	line := n.Line
	for _, f := range d.fields(n, path, replacesFields) {
		name, line = d.text(f, join(path, f.name)), f.line
	}
	switch name {
	case "":
		d.failf(line, join(path, "name"), "must not be empty")
	case own:
		d.failf(line, join(path, "name"), "%q is this descriptor's own", name)
	}
	return name
}
