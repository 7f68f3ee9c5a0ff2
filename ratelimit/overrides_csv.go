// Overrides as text: key=limit, separated by commas.

package ratelimit

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/hanzoai/limiters/internal/redisurl"
)

// Overrides are thresholds of single entity keys, in units per window. 0 blocks
// the entity. The empty key is a key like any other.
type Overrides map[string]uint64

// ParseOverrides reads key=limit elements separated by commas. Spaces around an
// element, a key or a limit are trimmed, and empty elements are skipped. An
// element is split at its last '=', so a key may hold one; it cannot hold a
// comma. A limit is decimal digits, 0 … 2^64 − 1.
//
// A comma is the only separator: a key with a line break, another control or
// invisible character or a semicolon, or with both '=' and white space, is an error,
// because it is nearly always several overrides that would all have no effect. Give
// such keys to [Limiter.SetOverrides].
//
// A malformed element and a key that occurs twice are errors; all are reported
// together, joined, and the Overrides are nil. The empty text gives empty
// Overrides.
func ParseOverrides(csv string) (Overrides, error) {
	overrides, errs := parseOverrides(csv)
	for i, err := range errs {
		errs[i] = fmt.Errorf("ratelimit: overrides: %w", err)
	}
	return overrides, errors.Join(errs...)
}

// parseOverrides returns the overrides, or what is wrong with each element.
func parseOverrides(csv string) (Overrides, []error) {
	overrides := Overrides{}
	first := map[string]int{} // the index of the element that holds a key
	elements := strings.Split(csv, ",")
	var errs []error
	for i, element := range elements {
		fail := func(format string, args ...any) {
			want := fmt.Sprintf(format, args...)
			errs = append(errs, fmt.Errorf("element %d %s: want %s", i+1, shownElement(elements, i), want))
		}
		element = strings.TrimSpace(element)
		if element == "" {
			continue
		}
		split := strings.LastIndexByte(element, '=')
		if split < 0 {
			fail("key=limit")
			continue
		}
		key := strings.TrimSpace(element[:split])
		limit, err := strconv.ParseUint(strings.TrimSpace(element[split+1:]), 10, 64)
		earlier, twice := first[key]
		switch {
		case wrongSeparator(key) != "":
			fail("commas between overrides; the key holds %s", wrongSeparator(key))
			continue
		case twice:
			fail("each key once, it is in element %d already", earlier+1)
			continue
		case err != nil:
			fail("a limit in decimal digits, 0 … 18446744073709551615")
		default:
			overrides[key] = limit
		}
		first[key] = i
	}
	if len(errs) > 0 {
		return nil, errs
	}
	return overrides, nil
}

// wrongSeparator returns what in a key shows that it is not one key, "" if nothing.
func wrongSeparator(key string) string {
	space := false
	for _, r := range key {
		switch {
		case unicode.IsControl(r), unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp):
			return fmt.Sprintf("the character U+%04X", r)
		case r == ';':
			return "a semicolon"
		case unicode.IsSpace(r):
			space = true
		}
	}
	if space && strings.Contains(key, "=") {
		return "an equals sign and white space"
	}
	return ""
}

// shownElement quotes an element for an error. If there is a URL among the
// elements, all are masked together: a password may hold a comma.
func shownElement(elements []string, i int) string {
	for _, element := range elements {
		if strings.Contains(element, "://") {
			return shown(redisurl.MaskList(elements)[i])
		}
	}
	return shown(strings.TrimSpace(elements[i]))
}
