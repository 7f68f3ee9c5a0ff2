package exposition

// This file knows the metric families: the table is generated.

import "strings"

// A Family is a metric and its time series.
type Family struct {
	Name string
	Kind string // "counter", "gauge" or "histogram"
	Unit string // in words
	Help string

	Samples []Sample // empty in the table
}

// Families returns the table, in the order of names, without samples.
func Families() []Family { return append([]Family(nil), families...) }

// byName finds a family of the table by its name.
var byName = func() map[string]*Family {
	all := make(map[string]*Family, len(families))
	for i := range families {
		all[families[i].Name] = &families[i]
	}
	return all
}()

// familyOf returns the family that a series of this name belongs to, nil if it is not
// of the table, and what of the name says which part of a histogram it is.
func familyOf(series string) (f *Family, part string) {
	if f = byName[series]; f != nil && f.Kind != "histogram" {
		return f, ""
	}
	for _, part := range []string{"_bucket", "_sum", "_count"} {
		name, ok := strings.CutSuffix(series, part)
		if f = byName[name]; ok && f != nil && f.Kind == "histogram" {
			return f, part
		}
	}
	return nil, ""
}

// LabelValue escapes s for use between the quotes of a label's value. Bytes that are
// not UTF-8 become U+FFFD.
func LabelValue(s string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(strings.ToValidUTF8(s, "\uFFFD"))
}

// Scope is how a scope stands in a label: bytes that are not UTF-8 are U+FFFD there.
func Scope(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
