package httplimit

// This file answers the requests that do not reach the handler.

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
)

// A problem is a problem document (RFC 9457). Type and Violated are those of
// draft-ietf-httpapi-ratelimit-headers-11 for a quota that is exceeded.
type problem struct {
	Type     string   `json:"type,omitempty"` // without: about:blank
	Title    string   `json:"title"`
	Status   int      `json:"status"`
	Detail   string   `json:"detail,omitempty"`
	Violated []string `json:"violated-policies,omitempty"`
}

// limitedBody answers requests that these policies refuse.
func limitedBody(policies ...string) []byte {
	return encode(problem{
		Type:     "https://iana.org/assignments/http-problem-types#quota-exceeded",
		Title:    "The quota is exceeded",
		Status:   http.StatusTooManyRequests,
		Violated: policies,
	})
}

var nameless = encode(problem{Title: http.StatusText(http.StatusBadRequest), Status: http.StatusBadRequest})

var tooLate = encode(problem{Title: http.StatusText(http.StatusServiceUnavailable), Status: http.StatusServiceUnavailable})

// refused answers requests that have no key. It tells the names of missing fields and
// nothing else of the reason. A context that ended while the key was looked for is not
// the request's fault.
func refused(w http.ResponseWriter, _ *http.Request, reason error) {
	if missing, ok := errors.AsType[*MissingError](reason); ok {
		answer(w, http.StatusBadRequest, encode(problem{Title: http.StatusText(http.StatusBadRequest), Status: http.StatusBadRequest, Detail: missing.detail()}))
		return
	}
	if errors.Is(reason, context.Canceled) || errors.Is(reason, context.DeadlineExceeded) {
		answer(w, http.StatusServiceUnavailable, tooLate)
		return
	}
	answer(w, http.StatusBadRequest, nameless)
}

// answer writes a problem document. No cache may hand it to another client.
func answer(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that is gone needs no answer
}

func encode(p problem) []byte {
	body, err := json.Marshal(p)
	if err != nil {
		panic(err) // a problem holds strings and a number
	}
	return append(body, '\n')
}
