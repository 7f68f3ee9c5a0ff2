// Queries of the dashboard and the alerts: how they name metrics, and what makes
// a name wrong.

package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var (
	// reference is a metric in a query: <name> or <name{label="value"}>, the name
	// without the table's prefix but with a histogram's suffix.
	reference = regexp.MustCompile(`<([a-z0-9_]+)(?:\{([^}]*)\})?>`)

	matcher = regexp.MustCompile(`^([a-z_]+)(=~|!~|!=|=)"([^"]*)"$`)
)

// histogramParts are the suffixes of the series that a histogram consists of.
var histogramParts = []string{"_bucket", "_sum", "_count"}

// expand writes the metrics that a query refers to in full, each with the
// selectors that are common to all before its own. The error names each reference
// that the table does not bear out.
func expand(t metricTable, query, common string) (string, error) {
	var errs []error
	expanded := reference.ReplaceAllStringFunc(query, func(text string) string {
		parts := reference.FindStringSubmatch(text)
		name, selectors := parts[1], parts[2]
		m, err := t.lookUp(name)
		if err == nil {
			err = m.verifySelectors(selectors)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", text, err))
			return text
		}
		all := strings.Trim(common+","+selectors, ",")
		if all == "" {
			return t.Prefix + name
		}
		return t.Prefix + name + "{" + all + "}"
	})
	if expanded == query {
		errs = append(errs, errors.New("refers to no metric"))
	}
	return expanded, errors.Join(errs...)
}

// lookUp finds the metric that a series of this name belongs to.
func (t metricTable) lookUp(series string) (metric, error) {
	for _, m := range t.Metrics {
		if m.Kind != "histogram" && m.Name == series {
			return m, nil
		}
		for _, part := range histogramParts {
			if m.Kind == "histogram" && m.Name+part == series {
				return m, nil
			}
		}
	}
	return metric{}, errors.New("not in the table (a histogram needs _bucket, _sum or _count)")
}

// verifySelectors checks labels, and values where the table lists them all.
func (m metric) verifySelectors(selectors string) error {
	if selectors == "" {
		return nil
	}
	for selector := range strings.SplitSeq(selectors, ",") {
		parts := matcher.FindStringSubmatch(selector)
		if parts == nil {
			return fmt.Errorf("selector %s: want label=\"value\" or another operator", selector)
		}
		i := slices.IndexFunc(m.Labels, func(l label) bool { return l.Name == parts[1] })
		if i < 0 {
			return fmt.Errorf("the metric has no label %s", parts[1])
		}
		if m.Labels[i].Values == nil {
			continue
		}
		for value := range strings.SplitSeq(parts[3], "|") {
			if !slices.Contains(m.Labels[i].Values, value) {
				return fmt.Errorf("label %s is never %q", parts[1], value)
			}
		}
	}
	return nil
}

// referred adds the metrics that a query refers to.
func (t metricTable) referred(query string, seen map[string]bool) {
	for _, parts := range reference.FindAllStringSubmatch(query, -1) {
		if m, err := t.lookUp(parts[1]); err == nil {
			seen[m.Name] = true
		}
	}
}
