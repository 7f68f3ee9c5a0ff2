package overrides

// This file says in a log line what a refresh changed.

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
)

// shownChanges is how many changes a log line names; it counts all.
const shownChanges = 10

// changes are the attributes of the log line about a change.
func changes(before, after map[string]uint64, text func(key string) string) []slog.Attr {
	var added, changed, removed []string
	for key := range after {
		if old, ok := before[key]; !ok {
			added = append(added, key)
		} else if old != after[key] {
			changed = append(changed, key)
		}
	}
	for key := range before {
		if _, ok := after[key]; !ok {
			removed = append(removed, key)
		}
	}
	attrs := []slog.Attr{
		slog.Int("overrides", len(after)),
		slog.Int("added", len(added)), slog.Int("changed", len(changed)), slog.Int("removed", len(removed)),
	}
	var b strings.Builder
	for _, key := range sample(changed, shownChanges) {
		fmt.Fprintf(&b, "%s: %d → %d, ", text(key), before[key], after[key])
	}
	rest := shownChanges - min(shownChanges, len(changed))
	for _, key := range sample(removed, rest) {
		fmt.Fprintf(&b, "%s: %d → none, ", text(key), before[key])
	}
	rest -= min(rest, len(removed))
	for _, key := range sample(added, rest) {
		fmt.Fprintf(&b, "%s: none → %d, ", text(key), after[key])
	}
	if b.Len() == 0 {
		return attrs
	}
	named := strings.TrimSuffix(b.String(), ", ")
	if more := len(added) + len(changed) + len(removed) - shownChanges; more > 0 {
		named += fmt.Sprintf(", and %d more", more)
	}
	return append(attrs, slog.String("changes", named))
}

// sample returns the first n keys in their order.
func sample(keys []string, n int) []string {
	slices.Sort(keys)
	return keys[:min(n, len(keys))]
}

// A namer is a [Target] that says what stands for a key where people look: a limiter
// whose keys are secrets answers a digest.
type namer interface {
	KeyName(key string) string
}

// textOf returns how the log shows keys: as the option says, else quoted, under the
// target's name for them.
func textOf(target Target, text func(key string) string) func(key string) string {
	if text != nil {
		return text
	}
	if named, ok := target.(namer); ok {
		return func(key string) string { return shown(named.KeyName(key)) }
	}
	return shown
}

// inForce returns a target's overrides, if it tells: the first change is told against
// them.
func inForce(target Target) map[string]uint64 {
	if lim, ok := target.(interface{ Overrides() map[string]uint64 }); ok {
		return lim.Overrides()
	}
	return nil
}
