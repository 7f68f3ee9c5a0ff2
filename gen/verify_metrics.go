// What must hold of the metrics table.

package main

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
)

var (
	metricName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	goIdent    = regexp.MustCompile(`^[a-z][A-Za-z0-9]*$`)
)

// labelCount is how many labels a family of each form has.
var labelCount = map[form]int{single: 0, named: 1, indexed: 1, paired: 2, partition: 1, crossed: 2, failures: 3, described: 2}

// verifyMetrics returns every fault of the metrics table.
func verifyMetrics(t metricTable) error {
	var errs []error
	seen := map[string]bool{}
	for _, m := range t.Metrics {
		fail := func(format string, args ...any) {
			errs = append(errs, fmt.Errorf("gen: metric %q: %s", m.Name, fmt.Sprintf(format, args...)))
		}
		if !metricName.MatchString(t.Prefix+m.Name) || seen[m.Name] {
			fail("not a name, or used twice")
		}
		if m.Form == elsewhere != (m.Field == "") || m.Form != elsewhere && (!goIdent.MatchString(m.Field) || seen[m.Field]) {
			fail("field %q: not an unexported Go name, or used twice", m.Field)
		}
		seen[m.Name], seen[m.Field] = true, true
		if m.Kind != "counter" && m.Kind != "gauge" && m.Kind != "histogram" {
			fail("unknown kind %q", m.Kind)
		}
		if m.Help == "" || m.Unit == "" {
			fail("no description or no unit")
		}
		if n, ok := labelCount[m.Form]; m.Form != elsewhere && (!ok || n != len(m.Labels)) {
			fail("form %q with %d labels", m.Form, len(m.Labels))
		}
		for _, l := range m.Labels {
			if !metricName.MatchString(l.Name) || l.Name == "scope" || l.Name == "le" {
				fail("label %q: not a name, or taken", l.Name)
			}
			for _, v := range l.Values {
				if !metricName.MatchString(v) {
					fail("value %q of label %s: not a name", v, l.Name)
				}
			}
		}
		if err := verifyBuckets(m); err != nil {
			fail("%v", err)
		}
	}
	return errors.Join(errs...)
}

// verifyBuckets wants ascending positive bounds for a histogram, and none for
// anything else.
func verifyBuckets(m metric) error {
	if (m.Kind == "histogram") != (len(m.Buckets) > 0) {
		return errors.New("a histogram, and only a histogram, has buckets")
	}
	last := 0.0
	for _, text := range m.Buckets {
		bound, err := strconv.ParseFloat(text, 64)
		if err != nil || bound <= last {
			return fmt.Errorf("bucket %q: want ascending positive numbers", text)
		}
		last = bound
	}
	return nil
}
