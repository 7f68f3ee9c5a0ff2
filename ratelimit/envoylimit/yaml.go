package envoylimit

// This file reads YAML so that each problem names its line and field.

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	maxDepth = 500       // of nested fields and lists
	maxNodes = 1_000_000 // of one file, aliases followed
)

// A document is one file while it is read.
type document struct {
	file     string
	problems []error
	warnings []string
	nodes    int
}

// A field is a named value of a mapping.
type field struct {
	name  string
	value *yaml.Node
	line  int
}

// open returns the root of the first document of a file; nil if it is empty.
func (d *document) open(content []byte) *yaml.Node {
	var root yaml.Node
	if err := yaml.Unmarshal(content, &root); err != nil {
		d.problems = append(d.problems, fmt.Errorf("%s: %w", d.file, err)) // it names the line
		return nil
	}
	if len(root.Content) == 0 {
		return nil
	}
	return root.Content[0]
}

func (d *document) failf(line int, path, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if path != "" {
		text = path + ": " + text
	}
	d.problems = append(d.problems, fmt.Errorf("%s:%d: %s", d.file, line, text))
}

func (d *document) warnf(line int, path, format string, args ...any) {
	d.warnings = append(d.warnings, fmt.Sprintf("%s:%d: %s: %s", d.file, line, path, fmt.Sprintf(format, args...)))
}

// follow returns what an alias stands for. It counts, so that aliases cannot make a small file
// endless.
func (d *document) follow(n *yaml.Node, path string) (*yaml.Node, bool) {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if d.nodes++; d.nodes > maxNodes || strings.Count(path, ".") > maxDepth {
		if d.nodes <= maxNodes+1 || len(d.problems) == 0 {
			d.failf(n.Line, "", "too deep or too large: at most %d levels and %d values", maxDepth, maxNodes)
		}
		d.nodes = maxNodes + 1
		return nil, false
	}
	return n, true
}

// fields returns the fields of a mapping: those in here, by name. A field that belongs elsewhere is
// passed over with a warning, as envoyproxy/ratelimit passes over it; one that belongs
// nowhere is a problem.
func (d *document) fields(n *yaml.Node, path string, here []string) []field {
	n, ok := d.follow(n, path)
	if !ok || n.ShortTag() == "!!null" {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		d.failf(n.Line, path, "want a mapping of fields, found %s", describe(n))
		return nil
	}
	var found, merged []field
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value := n.Content[i], n.Content[i+1]
		if name.ShortTag() == "!!merge" {
			merged = append(merged, d.merge(value, path, here)...)
			continue
		}
		if name.Kind != yaml.ScalarNode || name.ShortTag() != "!!str" || isYes(name) || isNo(name) {
			d.failf(name.Line, path, "the name of a field must be text, found %s", describe(name))
			continue
		}
		if !slices.Contains(here, name.Value) {
			if slices.Contains(allFields, name.Value) {
				d.warnf(name.Line, join(path, name.Value), "has no meaning here and is passed over")
			} else {
				d.failf(name.Line, path, "unknown field %q: want %s", name.Value, strings.Join(here, ", "))
			}
			continue
		}
		if slices.ContainsFunc(found, func(f field) bool { return f.name == name.Value }) {
			d.failf(name.Line, join(path, name.Value), "stands twice")
			continue
		}
		found = append(found, field{name.Value, value, name.Line})
	}
	for _, f := range merged {
		if !slices.ContainsFunc(found, func(own field) bool { return own.name == f.name }) {
			found = append(found, f)
		}
	}
	return found
}

// merge returns the fields of a merge key (<<): of one mapping, or of several, the first
// of which counts.
func (d *document) merge(n *yaml.Node, path string, here []string) []field {
	n, ok := d.follow(n, path+".<<")
	if !ok {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		return d.fields(n, path+".<<", here)
	}
	var all []field
	for _, element := range n.Content {
		all = append(all, d.fields(element, path+".<<", here)...)
	}
	return all
}

// list returns the elements of a list; none of null.
func (d *document) list(f field, path string) []*yaml.Node {
	n, ok := d.follow(f.value, path)
	if !ok || n.ShortTag() == "!!null" {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		d.failf(n.Line, path, "want a list, found %s", describe(n))
		return nil
	}
	return n.Content
}

// scalar returns the node of a plain value; nil of null and of what is none.
func (d *document) scalar(f field, path, want string) *yaml.Node {
	n, ok := d.follow(f.value, path)
	if !ok || n.ShortTag() == "!!null" {
		return nil
	}
	if n.Kind != yaml.ScalarNode {
		d.failf(n.Line, path, "want %s, found %s", want, describe(n))
		return nil
	}
	return n
}

// text returns a text; "" of null. A number with a fraction must be quoted.
func (d *document) text(f field, path string) string {
	n := d.scalar(f, path, "text")
	if n == nil {
		return ""
	}
	if n.ShortTag() == "!!float" {
		d.failf(n.Line, path, "want text, found the number %s: put it in quotes", n.Value)
	}
	return n.Value
}

// flag returns a boolean; false of null.
func (d *document) flag(f field, path string) bool {
	n := d.scalar(f, path, "true or false")
	switch {
	case n == nil, isNo(n):
		return false
	case isYes(n):
		return true
	}
	var value bool
	if n.ShortTag() != "!!bool" || n.Decode(&value) != nil {
		d.failf(n.Line, path, "%q: want true or false", n.Value)
	}
	return value
}

// number returns a whole number from 0 to 2^32 − 1; 0 of null.
func (d *document) number(f field, path string) uint32 {
	n := d.scalar(f, path, "a whole number")
	if n == nil {
		return 0
	}
	value, err := strconv.ParseInt(strings.ReplaceAll(n.Value, "_", ""), 0, 64)
	if n.ShortTag() != "!!int" || err != nil && !errors.Is(err, strconv.ErrRange) || err != nil || value < 0 || value > math.MaxUint32 {
		d.failf(n.Line, path, "%q: want a whole number, 0 … %d", n.Value, uint32(math.MaxUint32))
		return 0
	}
	return uint32(value)
}

// isYes and isNo know the words of YAML 1.1 beside true and false.
func isYes(n *yaml.Node) bool { return plainWord(n, "y", "yes", "on") }
func isNo(n *yaml.Node) bool  { return plainWord(n, "n", "no", "off") }

func plainWord(n *yaml.Node, words ...string) bool {
	return n.Kind == yaml.ScalarNode && n.Style == 0 && slices.Contains(words, strings.ToLower(n.Value))
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// describe names what a node is, for an error.
func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	value := n.Value
	if len(value) > 100 {
		value = strings.ToValidUTF8(value[:100], "") + "…"
	}
	return strconv.Quote(value)
}
