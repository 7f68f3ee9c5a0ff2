package httplimit

// This file knows requests that have no key and should pass all the same.

import (
	"net/http"
	"slices"
)

// Unlimited returns a function for [WithSkip] that is true for requests which nobody's
// client makes: GET and HEAD of these paths, which are compared as they are ("/healthz"),
// and CORS preflights of any path. Preflights carry no credentials, so they have no key;
// browsers give up the request whose preflight is refused.
func Unlimited(paths ...string) func(r *http.Request) bool {
	paths = slices.Clone(paths)
	return func(r *http.Request) bool {
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			return slices.Contains(paths, r.URL.Path)
		}
		return r.Method == http.MethodOptions && r.Header.Get("Origin") != "" && r.Header.Get("Access-Control-Request-Method") != ""
	}
}
