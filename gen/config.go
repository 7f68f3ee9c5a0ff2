// The shape of the configuration table: what a row says, and the texts that
// follow from it.

package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// A config is the configuration table.
type config struct {
	Prefix    string // of every environment variable
	Groups    []group
	Relations []relation
}

// A group is a run of fields under one heading of the reference page.
type group struct {
	Title  string
	Fields []field
}

// A field is one setting.
type field struct {
	Name string // of the struct's field
	Env  string // after the prefix
	Type string // "uint64", "int", "time.Duration", "bool", "string", "[]string", "Overrides" or a named string
	Doc  string // full sentences that begin with a verb: the name is put before it

	Default string        // a Go expression; empty: the zero value
	Unit    time.Duration // what a bare number in the variable counts; durations only

	From       string // derived when zero: from this field, which stands above it
	Derive     string // a Go expression over c
	DeriveText string // the same for people
	Usual      string // what it becomes when nothing is set

	Off      bool  // zero is accepted, and means off
	Required bool  // there is no default, and New needs a value
	Min, Max int64 // of the number, of the bytes of a string, or of the elements of a list
	Step     int64 // the number is a multiple of it; 0: any

	Values []string // all that a named string may be
}

// A relation compares a field with a multiple of another. It holds when the
// left field is off.
type relation struct {
	Left     string
	Op       string // "≥", ">", "≤" or "<"
	Mul, Div int64
	Fixed    int64 // in place of Mul where the window is fixed; 0: no other
	Right    string
	Why      string
}

// Fields returns every field in the table's order.
func (c config) Fields() []field {
	var all []field
	for _, g := range c.Groups {
		all = append(all, g.Fields...)
	}
	return all
}

// Field returns the field of that name.
func (c config) Field(name string) field {
	all := c.Fields()
	return all[slices.IndexFunc(all, func(f field) bool { return f.Name == name })]
}

// Numeric says whether Min and Max bound the value itself.
func (f field) Numeric() bool { return f.Type == "int" || f.Type == "time.Duration" }

// Bounds says which values are accepted.
func (f field) Bounds() string {
	switch f.Type {
	case "uint64":
		return "0 … 18446744073709551615"
	case "bool":
		return "true, false, 1, 0, t or f"
	case "Overrides":
		return "limits 0 … 18446744073709551615"
	case "string":
		return fmt.Sprintf("%d … %d bytes of UTF-8 without control characters", f.Min, f.Max)
	case "[]string":
		return fmt.Sprintf("%d … %d URLs", f.Min, f.Max)
	}
	if len(f.Values) > 0 {
		return choices(f.Values)
	}
	text := f.number(f.Min) + " … " + f.number(f.Max)
	if f.Step == int64(time.Millisecond) {
		text += " in whole milliseconds"
	}
	switch {
	case f.From != "":
		text += ", or 0 to derive it"
	case f.Off:
		text += ", or 0 for off"
	}
	return text
}

// DefaultText is the default for people.
func (f field) DefaultText() string {
	switch {
	case f.From != "":
		return f.DeriveText
	case f.Required:
		return "none, required"
	case f.Off && f.Default == "":
		return "0 (off)"
	case f.Type == "bool":
		return cmp.Or(f.Default, "false")
	case len(f.Values) > 0:
		return cmp.Or(f.Values[0], "empty")
	case f.Type == "Overrides":
		return "empty"
	case f.Type == "time.Duration":
		return f.number(f.defaultNumber())
	case f.Type == "string":
		return strings.Trim(f.Default, `"`)
	}
	return strings.ReplaceAll(f.Default, "_", "")
}

// number is n as a value of the field, for people.
func (f field) number(n int64) string {
	if f.Type == "time.Duration" {
		return durationText(time.Duration(n))
	}
	return fmt.Sprint(n)
}

// defaultNumber is the value of the default expression: "100 * time.Millisecond"
// for a duration, digits for an int.
func (f field) defaultNumber() int64 {
	count, unit, found := strings.Cut(f.Default, " * ")
	if !found {
		count, unit = "1", f.Default
		if f.Type == "int" {
			count, unit = f.Default, ""
		}
	}
	var n int64
	if _, err := fmt.Sscan(strings.ReplaceAll(count, "_", ""), &n); err != nil {
		return math.MinInt64
	}
	switch unit {
	case "":
		return n
	case "time.Millisecond":
		return n * int64(time.Millisecond)
	case "time.Second":
		return n * int64(time.Second)
	}
	return math.MinInt64
}

// choices lists values for people.
func choices(values []string) string {
	texts := slices.Clone(values)
	for i := range texts {
		texts[i] = cmp.Or(texts[i], "empty")
	}
	last := len(texts) - 1
	return strings.Join(texts[:last], ", ") + " or " + texts[last]
}

// Limit is what the relation compares its left field with, for people; FixedLimit is
// that where the window is fixed.
func (r relation) Limit() string { return r.limit(r.Mul) }

func (r relation) FixedLimit() string { return r.limit(cmp.Or(r.Fixed, r.Mul)) }

func (r relation) limit(factor int64) string {
	text := r.Right
	if factor != 1 {
		text = fmt.Sprintf("%d × %s", factor, text)
	}
	if r.Div != 1 {
		text = fmt.Sprintf("%s / %d", text, r.Div)
	}
	return text
}

// unitName is the plural name of a unit.
func unitName(unit time.Duration) string {
	if unit == time.Millisecond {
		return "milliseconds"
	}
	return "seconds"
}

// durationText is d without the zero minutes and seconds that
// time.Duration.String appends.
func durationText(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
