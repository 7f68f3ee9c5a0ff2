// Package statuspage shows how a limiter fares, to people as HTML and to programs
// as JSON: its partitions, the units that are not delivered, the entities closest to
// their thresholds, and its configuration.
//
//	http.Handle("/debug/ratelimit", statuspage.New(lim))
//
// A request gets JSON if its query says format=json, or if its Accept field prefers
// application/json, and HTML otherwise. The page needs no script, no other file and
// no connection but its own.
//
// # Who may see it
//
// User, password and query of a Redis address never appear. Entity keys do: of those
// closest to their thresholds, and of the first few overrides. Serve the page where
// only those get who may read such keys; if keys are secrets themselves, API keys for
// one, use [WithKeyText] and [WithTop].
//
// # Cost
//
// Each request walks the table once, for the entities closest to their thresholds:
// some tens of nanoseconds an entity, no lock held for long. Requests wait for each
// other, so that no number of them costs more than one core.
package statuspage
