// What a Config must fulfil, and how all that is wrong is said at once.

package ratelimit

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/hanzoai/limiters/internal/redisurl"
)

// A configRelation compares a field with a multiple of another.
type configRelation struct {
	left     int
	op       string
	right    int
	mul, div int64
	limit    string // the multiple, for people

	fixed      int64 // in place of mul where the window is fixed; 0: no other
	fixedLimit string
}

// A problem is one thing wrong with one field.
type problem struct {
	field int
	err   error
}

// Validate returns everything that is wrong with c, joined, in the order of the
// struct's fields, or nil. Each error names the field and its environment
// variable, shows the value, masked, and says what is accepted. Fields that are
// compared with each other are so once each is acceptable by itself.
func (c Config) Validate() error { return c.validate(true) }

// validate is Validate. Without requireURLs, for a limiter that is given its
// stores, there need be none.
func (c Config) validate(requireURLs bool) error {
	return joinProblems(c.problems(requireURLs, [fieldCount]bool{}))
}

// problems returns what is wrong with c. It leaves out the fields that are known
// to be bad, and whatever depends on one.
func (c Config) problems(requireURLs bool, bad [fieldCount]bool) []problem {
	r := c.Resolved()
	var found []problem
	fail := func(field int, format string, args ...any) {
		text := c.label(field) + ": " + fmt.Sprintf(format, args...)
		found = append(found, problem{field, errors.New(text)})
	}
	var derived [fieldCount]bool
	for id := range configFields {
		f := &configFields[id]
		derived[id] = f.derived && f.value(&c) == any(time.Duration(0))
		bad[id] = bad[id] || derived[id] && bad[f.from]
		if bad[id] || id == fieldRedisURLs && !requireURLs && len(c.RedisURLs) == 0 {
			continue
		}
		for _, text := range f.outside(f.value(&r)) {
			fail(id, "%s", text)
			bad[id] = true
		}
	}
	r.windowProblems(fail, &bad)
	for _, rel := range configRelations {
		if rel.fixed != 0 && r.Window == WindowFixed {
			rel.mul, rel.limit = rel.fixed, rel.fixedLimit
		}
		left := configFields[rel.left].value(&r).(time.Duration)
		if bad[rel.left] || bad[rel.right] || left == 0 {
			continue
		}
		right := configFields[rel.right].value(&r).(time.Duration)
		limit := right * time.Duration(rel.mul) / time.Duration(rel.div)
		if holds(left, rel.op, limit) {
			continue
		}
		origin := ""
		if derived[rel.left] {
			origin = ", derived from " + configFields[configFields[rel.left].from].name
		}
		fail(rel.left, "%s%s: want %s %s, which is %s (%s)",
			durationText(left), origin, rel.op, rel.limit, durationText(limit), c.variable(rel.right))
	}
	return found
}

// label names a field and its variable.
func (c *Config) label(field int) string {
	return "ratelimit: " + configFields[field].name + " (" + c.variable(field) + ")"
}

// outside says in what way a value is not acceptable by itself.
func (f *configField) outside(value any) []string {
	if f.values != nil {
		if text := fmt.Sprint(value); !slices.Contains(f.values, text) {
			return []string{shown(text) + ": want " + f.bounds}
		}
		return nil
	}
	var number int64
	switch v := value.(type) {
	case time.Duration:
		number = int64(v)
	case int:
		number = int64(v)
	case string:
		if len(v) < int(f.min) || len(v) > int(f.max) || !utf8.ValidString(v) || strings.ContainsFunc(v, unicode.IsControl) {
			return []string{shown(v) + ": want " + f.bounds}
		}
		return nil
	case []string:
		return f.outsideList(v)
	default:
		return nil
	}
	if number == 0 && f.zero {
		return nil
	}
	if number < f.min || number > f.max || f.step > 0 && number%f.step != 0 {
		return []string{valueText(value) + ": want " + f.bounds}
	}
	return nil
}

// outsideList says in what way a list of URLs is not acceptable.
func (f *configField) outsideList(urls []string) []string {
	if len(urls) == 0 {
		return []string{"not set: want " + f.bounds}
	}
	if len(urls) > int(f.max) {
		return []string{fmt.Sprintf("%d URLs: want %s", len(urls), f.bounds)}
	}
	var texts []string
	for i, url := range urls {
		if strings.TrimSpace(url) == "" {
			texts = append(texts, fmt.Sprintf("element %d: %q: want a URL", i+1, url))
		}
	}
	_, err := redisurl.ParseList(urls)
	var all interface{ Unwrap() []error }
	if errors.As(err, &all) {
		for _, err := range all.Unwrap() {
			texts = append(texts, err.Error())
		}
	}
	return texts
}

// holds says whether left op right.
func holds(left time.Duration, op string, right time.Duration) bool {
	switch op {
	case "≥":
		return left >= right
	case ">":
		return left > right
	case "≤":
		return left <= right
	}
	return left < right
}

// joinProblems joins problems in the order of the fields.
func joinProblems(problems []problem) error {
	slices.SortStableFunc(problems, func(a, b problem) int { return a.field - b.field })
	errs := make([]error, len(problems))
	for i, p := range problems {
		errs[i] = p.err
	}
	return errors.Join(errs...)
}
