// The shape of the metrics table: what a row says, and the names that follow
// from it.

package main

import (
	"fmt"
	"slices"
	"strings"
)

// A metricTable is the table of metrics.
type metricTable struct {
	Prefix  string // of every metric's name
	Metrics []metric
	Steps   []constant // the values of the label step
	Causes  []constant // the values of the label cause of error_total
}

// A constant is a constant of package store that becomes a label's value.
type constant struct {
	Name  string
	Value string
}

// A metric is one metric family. Besides its labels it has scope.
type metric struct {
	Name   string // after the prefix
	Field  string // of the struct: the field, or what its fields begin with
	Kind   string // "counter", "gauge" or "histogram"
	Form   form
	Labels []label
	Unit   string
	Help   string
	// Buckets are the upper bounds of a histogram's buckets.
	Buckets []string
}

// A label is a label and the values it takes.
type label struct {
	Name   string
	Values []string // nil: one for each partition, or as the form says
}

// A form says how a family is laid out in the struct.
type form string

const (
	single    form = "single"    // one field
	named     form = "named"     // a field for each value of the only label
	indexed   form = "indexed"   // an array by the position of the label's value
	paired    form = "paired"    // an array of arrays, by the positions of two labels' values; none for equal ones
	partition form = "partition" // a slice by partition
	crossed   form = "crossed"   // a slice by partition for each value of the first label
	described form = "described" // one field; its labels' values are the process's
	elsewhere form = "elsewhere" // not in the struct: another package registers it
	failures  form = "failures"  // a method: by step, cause and partition, made when first asked for
)

// Type is the type of one time series in Go.
func (m metric) Type() string {
	switch m.Kind {
	case "counter":
		return "*metrics.Counter"
	case "gauge":
		return "*metrics.Gauge"
	}
	return "*metrics.PrometheusHistogram"
}

// Constructor is the registrar's method that makes a time series.
func (m metric) Constructor() string {
	if m.Kind == "histogram" {
		return "histogram"
	}
	return m.Kind
}

// Arguments are the constructor's arguments after the name.
func (m metric) Arguments() string {
	if m.Kind == "histogram" {
		return ", " + lowerFirst(m.Field) + "Buckets"
	}
	return ""
}

// Part is the field of a value of a label in Go: the metric's, then the value in
// capitals.
func (m metric) Part(value string) string {
	var b strings.Builder
	b.WriteString(m.Field)
	for word := range strings.SplitSeq(value, "_") {
		b.WriteString(upperFirst(word))
	}
	return b.String()
}

// LabelText lists the labels for people.
func (m metric) LabelText() string {
	parts := []string{"`scope`"}
	for _, l := range m.Labels {
		text := "`" + l.Name + "`"
		if len(l.Values) > 0 {
			text += " = " + strings.Join(l.Values, ", ")
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

// Held returns the metrics that the struct holds.
func (t metricTable) Held() []metric {
	return slices.DeleteFunc(slices.Clone(t.Metrics), func(m metric) bool { return m.Form == elsewhere })
}

// Sorted returns the metrics in the order of their names.
func (t metricTable) Sorted() []metric {
	sorted := slices.Clone(t.Metrics)
	slices.SortFunc(sorted, func(a, b metric) int { return strings.Compare(a.Name, b.Name) })
	return sorted
}

// FullName is the name with its prefix.
func (t metricTable) FullName(m metric) string { return t.Prefix + m.Name }

// Histograms returns the histograms.
func (t metricTable) Histograms() []metric {
	var all []metric
	for _, m := range t.Metrics {
		if m.Kind == "histogram" {
			all = append(all, m)
		}
	}
	return all
}

// Series says how many time series the family has at most.
func (t metricTable) Series(m metric) string {
	n, perPartition := 1, false
	switch m.Form {
	case paired:
		n = len(m.Labels[0].Values) * (len(m.Labels[0].Values) - 1)
	case described:
	case failures:
		n, perPartition = len(t.Steps)*len(t.Causes), true
	default:
		for _, l := range m.Labels {
			if l.Values == nil {
				perPartition = true
			} else {
				n *= len(l.Values)
			}
		}
	}
	if perPartition {
		return fmt.Sprintf("%d per partition", n)
	}
	return fmt.Sprint(n)
}
