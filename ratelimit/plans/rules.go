package plans

// This file is a file of plans in force: what it means for a request.

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hanzoai/limiters/ratelimit/httplimit"
)

// rules are a file in force. All but users is immutable.
type rules struct {
	file   *File
	limits map[string]*limit // by name
	mux    *http.ServeMux
	routes map[string]*route // by pattern
	planOf func(key string) (plan string, ok bool)
	allow  list
	block  list

	// Decisions under way, and one for being in force. Who takes it to 0 closes drained: then
	// no limiter is asked by these rules any more.
	users   atomic.Int64
	drained chan struct{}
}

// A route is a route in force. All but made is immutable.
type route struct {
	Route
	limit func(http.Handler) http.Handler // nil: it has no limits
	keys  []namedKey                      // the key functions of its limits, each once
	made  sync.Map                        // what Passage.Made made, by its owner
}

// A namedKey is a key function and its name.
type namedKey struct {
	name string
	key  httplimit.KeyFunc
}

// A list is an allow list or a block list: entries by key.
type list map[string][]Entry

func listOf(entries []Entry) list {
	l := list{}
	for _, e := range entries {
		l[e.Key] = append(l[e.Key], e)
	}
	return l
}

// find returns the entry of a key that a function made, at a time. Of several it is the one
// that lasts longest.
func (l list) find(by, key string, now time.Time) (found Entry, ok bool) {
	for _, e := range l[key] {
		if e.By != "" && e.By != by || !e.Until.IsZero() && !now.Before(e.Until) {
			continue
		}
		if !ok || e.Until.IsZero() || !found.Until.IsZero() && e.Until.After(found.Until) {
			found, ok = e, true
		}
	}
	return found, ok
}

// acquire notes a decision that begins; it fails if the rules are out of force and no decision
// is under way.
func (r *rules) acquire() bool {
	for {
		n := r.users.Load()
		if n == 0 {
			return false
		}
		if r.users.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// release notes that a decision, or being in force, has ended.
func (r *rules) release() {
	if r.users.Add(-1) == 0 {
		close(r.drained)
	}
}

// settle waits until no decision by the rules is under way, or ctx ends.
func (r *rules) settle(ctx context.Context) {
	select {
	case <-r.drained:
	case <-ctx.Done():
	}
}

// match returns the route of a request, nil if there is none.
func (r *rules) match(req *http.Request) *route {
	_, pattern := r.mux.Handler(req)
	if found := r.routes[pattern]; found != nil || pattern == "" {
		return found
	}
	// The request would be redirected to a path with a slash at its end, which pattern is.
	there := req.Clone(req.Context())
	there.URL.Path = pattern
	_, pattern = r.mux.Handler(there)
	return r.routes[pattern]
}

// plan returns the plan of a key, "" if it has none.
func (r *rules) plan(key string) string {
	if plan, ok := r.file.Keys[key]; ok {
		return plan
	}
	if r.planOf != nil {
		if plan, ok := r.planOf(key); ok {
			if _, known := r.file.Plans[plan]; known {
				return plan
			}
		}
	}
	return r.file.DefaultPlan
}

// threshold returns the threshold of a limit for a key.
func (r *rules) threshold(limit, key string) uint64 {
	if threshold, ok := r.file.Plans[r.plan(key)][limit]; ok {
		return threshold
	}
	return r.file.Limits[limit].Threshold
}

// compile makes rules of a file, whose limits are these.
func compile(f *File, limits map[string]*limit, o *options) (*rules, error) {
	r := &rules{
		file: f, limits: limits, mux: http.NewServeMux(), routes: map[string]*route{}, planOf: o.planOf,
		allow: listOf(f.Allow), block: listOf(f.Block), drained: make(chan struct{}),
	}
	r.users.Store(1)
	for _, written := range f.Routes {
		made := &route{Route: written}
		var passed []httplimit.Limit
		for _, name := range written.Limits {
			l := f.Limits[name]
			by := l.Key
			if by == "" {
				by = written.Key
			}
			limit := httplimit.Limit{Limiter: limits[name].limiter, Key: o.keyFunction(by), Policy: name, Unit: l.Unit, Fleet: l.Ask == "fleet"}
			if written.Cost != nil {
				cost := *written.Cost
				limit.Cost = func(*http.Request) uint64 { return cost }
			}
			passed = append(passed, limit)
			made.note(by, limit.Key)
		}
		if len(passed) == 0 && written.Key != "" {
			made.note(written.Key, o.keyFunction(written.Key))
		}
		if len(passed) > 0 {
			opts := o.http
			if written.DryRun {
				opts = append(opts[:len(opts):len(opts)], httplimit.WithDryRun())
			}
			var err error
			if made.limit, err = httplimit.NewAll(passed, opts...); err != nil {
				return nil, err
			}
		}
		if err := register(r.mux, written.Pattern, http.NotFoundHandler()); err != nil {
			return nil, err
		}
		r.routes[written.Pattern] = made
	}
	return r, nil
}

// note adds a key function of the route.
func (r *route) note(name string, key httplimit.KeyFunc) {
	for _, k := range r.keys {
		if k.name == name {
			return
		}
	}
	r.keys = append(r.keys, namedKey{name, key})
}

// keyFunction returns the key function of a name, nil if there is none.
func (o *options) keyFunction(name string) httplimit.KeyFunc {
	if header, ok := strings.CutPrefix(name, "header:"); ok {
		return httplimit.Header(header)
	}
	return o.keys[name]
}
