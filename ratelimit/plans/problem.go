package plans

// This file is what is wrong with a file: where, and what is accepted.

import (
	"fmt"
	"slices"
	"strings"
)

// A Problem is one thing that is wrong with a file of plans.
type Problem struct {
	File  string // its path
	Line  int    // from 1 on; 0 if it is no line's fault
	Field string // such as limits.per_second.threshold; "" if it is no field's fault
	Text  string // what is wrong, and what is accepted
}

// Error returns file, line, field and text.
func (p Problem) Error() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d", p.Line)
	}
	if p.Field != "" {
		b.WriteString(": " + p.Field)
	}
	b.WriteString(": " + p.Text)
	return b.String()
}

// Problems are all that is wrong with a file, by line. They are an error if there are some.
type Problems []Problem

// Error returns each problem in a line of its own.
func (ps Problems) Error() string {
	texts := make([]string, len(ps))
	for i, p := range ps {
		texts[i] = p.Error()
	}
	return strings.Join(texts, "\n")
}

// Unwrap returns the problems one by one.
func (ps Problems) Unwrap() []error {
	errs := make([]error, len(ps))
	for i, p := range ps {
		errs[i] = p
	}
	return errs
}

// err returns the problems by line, nil if there are none.
func (ps Problems) err() error {
	if len(ps) == 0 {
		return nil
	}
	slices.SortStableFunc(ps, func(a, b Problem) int { return a.Line - b.Line })
	return ps
}

// shown is a text for an error, cut if it is long.
func shown(text string) string {
	const most = 80
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return fmt.Sprintf("%q", text)
}
