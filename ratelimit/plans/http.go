package plans

// This file limits HTTP requests by the plans in force.

import (
	"net/http"
	"strconv"
	"time"
)

// Middleware has requests pass the limits of their routes on the way to next. All limits of a
// route are decided at once, as [httplimit.NewAll] does; a limited request is answered with status 429,
// naming the limits that refuse. A blocked key is answered with 403, and Retry-After if the block
// ends. A request that no route's pattern matches is not limited: a route of the pattern "/"
// matches all that no other does.
func (p *Plans) Middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rules := p.use()
		decided := false
		release := func() {
			if !decided {
				decided = true
				rules.release()
			}
		}
		defer release() // of a request that is refused
		reach := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			release()
			next.ServeHTTP(w, r)
		})
		route := rules.match(r)
		if route == nil {
			reach(w, r)
			return
		}
		now := p.now()
		switch standing, end := rules.listed(route, r, now); {
		case standing == blocked:
			forbid(w, end, now)
		case standing == allowed || route.limit == nil:
			reach(w, r)
		default:
			route.limit(reach).ServeHTTP(w, r)
		}
	})
}

// now is the time by the clock of the limiters.
func (p *Plans) now() time.Time {
	if p.options.clock == nil {
		return time.Now()
	}
	wall, _ := p.options.clock.Now()
	return time.Unix(0, wall)
}

// A standing is what the lists say of a request.
type standing int

const (
	unlisted standing = iota
	allowed
	blocked
)

// listed says whether a key of the request is on a list, and when a block ends; a block counts
// more. A request whose key cannot be told is on none; its limits say what happens to it.
func (r *rules) listed(route *route, req *http.Request, now time.Time) (s standing, end time.Time) {
	if len(r.allow) == 0 && len(r.block) == 0 {
		return unlisted, end
	}
	for _, k := range route.keys {
		key, err := k.key(req)
		if err != nil || key == "" {
			continue
		}
		if e, ok := r.block.find(k.name, key, now); ok {
			return blocked, e.Until
		}
		if _, ok := r.allow.find(k.name, key, now); ok {
			s = allowed
		}
	}
	return s, end
}

// forbid answers a request of a blocked key.
func forbid(w http.ResponseWriter, end, now time.Time) {
	h := w.Header()
	if !end.IsZero() {
		h.Set("Retry-After", strconv.FormatInt(int64((end.Sub(now)+time.Second-1)/time.Second), 10))
	}
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(http.StatusForbidden)
	_, _ = w.Write([]byte(`{"title":"Forbidden","status":403}` + "\n")) // a client that is gone needs no answer
}
