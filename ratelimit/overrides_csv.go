// Overrides as text: key=limit, separated by commas.

package ratelimit

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Overrides are thresholds of single entity keys, in units per window. 0 blocks
// the entity. The empty key is a key like any other.
type Overrides map[string]uint64

// ParseOverrides reads key=limit elements separated by commas. Spaces around an
// element, a key or a limit are trimmed, and empty elements are skipped. An
// element is split at its last '=', so a key may hold one; it cannot hold a
// comma. A limit is decimal digits, 0 … 2^64 − 1.
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
	first := map[string]int{} // the element that holds a key, from 1
	var errs []error
	number := 0
	for element := range strings.SplitSeq(csv, ",") {
		number++
		element = strings.TrimSpace(element)
		if element == "" {
			continue
		}
		split := strings.LastIndexByte(element, '=')
		if split < 0 {
			errs = append(errs, fmt.Errorf("element %d %s: want key=limit", number, shown(element)))
			continue
		}
		key := strings.TrimSpace(element[:split])
		limit, err := strconv.ParseUint(strings.TrimSpace(element[split+1:]), 10, 64)
		switch {
		case first[key] > 0:
			errs = append(errs, fmt.Errorf("element %d %s: want each key once, it is in element %d already", number, shown(element), first[key]))
		case err != nil:
			errs = append(errs, fmt.Errorf("element %d %s: want a limit in decimal digits, 0 … 18446744073709551615", number, shown(element)))
		default:
			overrides[key] = limit
		}
		if first[key] == 0 {
			first[key] = number
		}
	}
	if len(errs) > 0 {
		return nil, errs
	}
	return overrides, nil
}
