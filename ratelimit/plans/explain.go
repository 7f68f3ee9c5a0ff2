package plans

// This file says what a file of plans means for one request, to people.

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/hanzoai/limiters/ratelimit"
)

// An Applied limit is one that a request would have to pass.
type Applied struct {
	Limit     string
	By        string // the key function
	Threshold uint64 // of the key: of its plan, else the limit's own
	Window    string // such as 1m, or month-Europe/Berlin
	Kind      string // leaky, sliding or fixed
	Cost      uint64 // of the request, in units
	Fleet     bool   // it asks Redis
	DryRun    bool   // it refuses nobody; of a route: no limit does
}

// An Explanation is what a file means for a request.
type Explanation struct {
	Pattern string    // of the route; "": none matches, and the request is not limited
	Plan    string    // of the key; "": the limits' own thresholds
	List    string    // "allow", "block" or ""
	Until   time.Time // when the entry of the list ends; zero: never
	Limits  []Applied
}

// Explain says what the file means for a request with a method, a URL's host and path, and
// a key, which every key function is taken to answer, but for everybody. now is for the lists.
// The plan is that of the file; a program may know better (WithPlanOf). The error says what is
// no method or path.
func (f *File) Explain(method, target, key string, now time.Time) (Explanation, error) {
	u, err := url.Parse(target)
	if err != nil || !strings.HasPrefix(u.Path, "/") {
		return Explanation{}, fmt.Errorf("plans: the path %q: want one that begins with /, or http://host/path", target)
	}
	if method == "" || !token(method) {
		return Explanation{}, fmt.Errorf("plans: the method %q: want one such as GET", method)
	}
	r := &rules{file: f, mux: http.NewServeMux(), routes: map[string]*route{}}
	for _, written := range f.Routes {
		if err := register(r.mux, written.Pattern, http.NotFoundHandler()); err != nil {
			return Explanation{}, err
		}
		r.routes[written.Pattern] = &route{Route: written}
	}
	found := r.match(&http.Request{Method: method, URL: u, Host: u.Host})
	e := Explanation{Plan: r.plan(key)}
	if found == nil {
		return e, nil
	}
	e.Pattern = found.Pattern
	for _, name := range found.Limits {
		l := f.Limits[name]
		cfg := l.config(name, ratelimit.DefaultConfig())
		a := Applied{Limit: name, By: l.Key, Window: l.window(), Kind: string(cfg.Window), Cost: 1, Fleet: l.Ask == "fleet", DryRun: l.DryRun || found.DryRun}
		if a.By == "" {
			a.By = found.Key
		}
		counted := key
		if a.By == "everybody" {
			counted = "everybody"
		}
		a.Threshold = r.threshold(name, counted)
		if found.Cost != nil {
			a.Cost = *found.Cost
		}
		e.Limits = append(e.Limits, a)
		e.list(f, a.By, counted, now)
	}
	if len(found.Limits) == 0 && found.Key != "" {
		e.list(f, found.Key, key, now)
	}
	return e, nil
}

// list looks for a key on the lists.
func (e *Explanation) list(f *File, by, key string, now time.Time) {
	if e.List == "block" {
		return
	}
	if entry, ok := listOf(f.Block).find(by, key, now); ok {
		e.List, e.Until = "block", entry.Until
	} else if entry, ok := listOf(f.Allow).find(by, key, now); ok {
		e.List, e.Until = "allow", entry.Until
	}
}
