package plans

// This file offers routes to what limits other things than HTTP requests.

import (
	"net/http"
	"net/url"
	"time"

	"github.com/hanzoai/limiters/ratelimit"
)

// A Passage is the way of one request by the rules in force: the limits that it has to pass.
// It keeps them until it is released.
type Passage struct {
	rules *rules
	route *route
	now   time.Time
}

// A Required limit is one that a request has to pass.
type Required struct {
	Limiter      *ratelimit.Limiter
	Policy, Unit string
	Key          string  // the name of the key function
	Cost         *uint64 // nil: what the caller says, else 1
	Fleet        bool
}

// Match returns the passage of a request, which the caller releases as soon as it is decided. Of a
// gRPC call the method is POST and the path /package.Service/Method.
func (p *Plans) Match(method, host, path string) *Passage {
	r := p.use()
	return &Passage{r, r.match(&http.Request{Method: method, Host: host, URL: &url.URL{Path: path}}), p.now()}
}

// Release ends the passage: a reload that waits for it goes on.
func (p *Passage) Release() { p.rules.release() }

// Found reports whether a route matches; the request is not limited otherwise.
func (p *Passage) Found() bool { return p.route != nil }

// Keys returns the names of the key functions that the route asks, each once. It requires Found.
func (p *Passage) Keys() (names []string) {
	for _, k := range p.route.keys {
		names = append(names, k.name)
	}
	return names
}

// Listed says whether the key of a function is on the allow list or on the block list, and when
// a block ends.
func (p *Passage) Listed(by, key string) (allow, block bool, until time.Time) {
	if e, ok := p.rules.block.find(by, key, p.now); ok {
		return false, true, e.Until
	}
	_, allow = p.rules.allow.find(by, key, p.now)
	return allow, false, until
}

// Made returns what compile makes of the route's limits and of whether it is in a dry run. It is
// kept for the owner as long as the file is in force. It requires Found.
func (p *Passage) Made(owner any, compile func(limits []Required, dryRun bool) any) any {
	if made, ok := p.route.made.Load(owner); ok {
		return made
	}
	var limits []Required
	for _, name := range p.route.Limits {
		l := p.rules.file.Limits[name]
		by := l.Key
		if by == "" {
			by = p.route.Key
		}
		limits = append(limits, Required{p.rules.limits[name].limiter, name, l.Unit, by, p.route.Cost, l.Ask == "fleet"})
	}
	made, _ := p.route.made.LoadOrStore(owner, compile(limits, p.route.DryRun))
	return made
}
