package plans

// This file says what a reload changed, for the log and for people.

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// differences says what differs between two files, the first of which may be nil. gone are the
// limits whose limiters were closed.
func differences(before, after *File, gone map[string]*limit) (changes []string) {
	if before == nil {
		return []string{fmt.Sprintf("%d limits, %d routes, %d plans", len(after.Limits), len(after.Routes), len(after.Plans))}
	}
	say := func(format string, args ...any) { changes = append(changes, fmt.Sprintf(format, args...)) }
	for _, name := range union(before.Limits, after.Limits) {
		was, before := before.Limits[name]
		is, after := after.Limits[name]
		switch {
		case !before:
			say("limit %s is new", name)
		case !after:
			say("limit %s is gone", name)
		case gone[name] != nil:
			say("limit %s has another limiter", name)
		case was.Threshold != is.Threshold:
			say("limit %s: threshold %d, was %d", name, is.Threshold, was.Threshold)
		case was != is:
			say("limit %s changed", name)
		}
	}
	for _, plan := range union(before.Plans, after.Plans) {
		was, before := before.Plans[plan]
		is, after := after.Plans[plan]
		switch {
		case !before:
			say("plan %s is new", plan)
		case !after:
			say("plan %s is gone", plan)
		case !maps.Equal(was, is):
			for _, limit := range union(was, is) {
				if was[limit] != is[limit] {
					say("plan %s: %s %d, was %d", plan, limit, is[limit], was[limit])
				}
			}
		}
	}
	if n := differ(before.Keys, after.Keys); n > 0 { // which ones is nobody's business
		say("keys: %d have another plan", n)
	}
	if before.DefaultPlan != after.DefaultPlan {
		say("default plan %q, was %q", after.DefaultPlan, before.DefaultPlan)
	}
	for name, lists := range map[string][2]any{"routes": {before.Routes, after.Routes}, "allow": {before.Allow, after.Allow}, "block": {before.Block, after.Block}} {
		if !reflect.DeepEqual(lists[0], lists[1]) {
			say("%s changed", name)
		}
	}
	slices.Sort(changes)
	return changes
}

// union returns the names of two mappings, sorted.
func union[T any](a, b map[string]T) []string {
	names := slices.Collect(maps.Keys(a))
	for name := range b {
		if _, ok := a[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// differ counts the keys that two mappings have different values for.
func differ(a, b map[string]string) (n int) {
	for _, key := range union(a, b) {
		if a[key] != b[key] {
			n++
		}
	}
	return n
}
