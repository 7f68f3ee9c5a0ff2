// What must hold of the tables themselves, so that a mistake in a row is an
// error of the generator and not a surprise of a user.

package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
)

var (
	goName      = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)
	envName     = regexp.MustCompile(`^[A-Z][A-Z0-9_]*$`)
	fieldType   = []string{"uint64", "int", "time.Duration", "bool", "string", "[]string", "Overrides"}
	relationOps = []string{"≥", ">", "≤", "<"}
)

// verifyConfig returns every fault of the configuration table.
func verifyConfig(c config) error {
	var errs []error
	seen := map[string]bool{}
	for _, f := range c.Fields() {
		fail := func(format string, args ...any) {
			errs = append(errs, fmt.Errorf("gen: field %q: %s", f.Name, fmt.Sprintf(format, args...)))
		}
		if !goName.MatchString(f.Name) {
			fail("not an exported Go name")
		}
		if !envName.MatchString(f.Env) {
			fail("variable %q: not a name", f.Env)
		}
		for _, name := range []string{f.Name, f.Env} {
			if name == "" || seen[name] {
				fail("%q is empty or used twice", name)
			}
		}
		if !slices.Contains(fieldType, f.Type) && len(f.Values) < 2 {
			fail("unknown type %q", f.Type)
		}
		if len(f.Values) > 0 && (slices.Contains(fieldType, f.Type) || !goName.MatchString(f.Type)) {
			fail("type %q has no list of values", f.Type)
		}
		if f.Doc == "" {
			fail("no description")
		}
		if (f.Type == "time.Duration") != (f.Unit != 0) {
			fail("a duration, and only a duration, has a unit")
		}
		if f.Numeric() && f.Min >= f.Max {
			fail("bounds %d … %d", f.Min, f.Max)
		}
		if f.From != "" && (!seen[f.From] || f.Derive == "" || f.DeriveText == "" || f.Usual == "" || f.Default != "") {
			fail("derives from %q, which must stand above it, and needs an expression, texts and no default", f.From)
		}
		if f.Numeric() && f.From == "" && !f.Off {
			if n := f.defaultNumber(); n < f.Min || n > f.Max {
				fail("default %q is outside %s", f.Default, f.Bounds())
			}
		}
		seen[f.Name], seen[f.Env] = true, true
	}
	for _, r := range c.Relations {
		if !seen[r.Left] || !seen[r.Right] || r.Mul < 1 || r.Fixed < 0 || r.Div < 1 || !slices.Contains(relationOps, r.Op) || r.Why == "" {
			errs = append(errs, fmt.Errorf("gen: relation %+v: unknown field or operator, no factor, or no reason", r))
		}
	}
	return errors.Join(errs...)
}
