// The shape of the alerts' table, and the Prometheus rules made of it.

package main

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
)

// An alerts is the alerts' table.
type alerts struct {
	Group   string
	Runbook string // the page whose headings are the alerts' names
	Alerts  []alert
}

// An alert is one rule. Each has a heading of its name in docs/operations.md.
type alert struct {
	Name        string
	Expr        string // refers to metrics as [expand] says
	For         string // how long it holds before it fires; empty: it fires at once
	Severity    string // "critical", "warning" or "info"
	Summary     string // one line; a template of Prometheus
	Description string // what it means and where to look; a template of Prometheus
}

var (
	alertName  = regexp.MustCompile(`^Limiter[A-Z][A-Za-z]*$`)
	alertFor   = regexp.MustCompile(`^([1-9][0-9]*[mh])?$`)
	severities = []string{"critical", "warning", "info"}
)

// prometheus is the rules as Prometheus loads them. The error names every rule
// that is wrong.
func (a alerts) prometheus(t metricTable) ([]byte, error) {
	var errs []error
	seen := map[string]bool{}
	expanded := a
	expanded.Alerts = slices.Clone(a.Alerts)
	for i := range expanded.Alerts {
		rule := &expanded.Alerts[i]
		fail := func(err error) { errs = append(errs, fmt.Errorf("gen: alert %q: %w", rule.Name, err)) }
		if !alertName.MatchString(rule.Name) || seen[rule.Name] {
			fail(errors.New("not a name that begins with Limiter, or used twice"))
		}
		seen[rule.Name] = true
		if !alertFor.MatchString(rule.For) {
			fail(fmt.Errorf("for %q: want minutes or hours", rule.For))
		}
		if !slices.Contains(severities, rule.Severity) {
			fail(fmt.Errorf("unknown severity %q", rule.Severity))
		}
		if rule.Summary == "" || rule.Description == "" {
			fail(errors.New("no summary or no description"))
		}
		expr, err := expand(t, rule.Expr, "")
		if err != nil {
			fail(err)
		}
		rule.Expr = expr
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	content, err := render("alerts.yaml.tmpl", expanded)
	if err != nil {
		return nil, err
	}
	return bytes.TrimLeft(content, "\n"), nil
}
