package httplimit

// This file sends requests that have no key.

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A refusal names the fields that the key would have been made of, and no value.
func TestARefusalNamesTheMissingFields(t *testing.T) {
	t.Parallel()
	lim, _ := newLimiter(t, nil)
	either := func(r *http.Request) (string, error) {
		if k, err := Header("x-team")(r); err != nil || k != "" {
			return k, err
		}
		return Header("X-Api-Key")(r)
	}
	for _, row := range []struct {
		key    KeyFunc
		set    string
		status int
		detail string
	}{
		{Header("x-api-key"), "", 400, `"detail":"the field X-Api-Key is missing"`},
		{Prefixed("key:", Header("X-Api-Key")), "", 400, `"detail":"the field X-Api-Key is missing"`},
		{either, "", 400, `"detail":"the fields X-Team, X-Api-Key are missing"`},
		{either, "X-Api-Key", 200, ""},
		{func(*http.Request) (string, error) { return "", nil }, "", 400, ""},
		{func(*http.Request) (string, error) { return "", errors.New("hunter2") }, "", 400, ""},
		{func(*http.Request) (string, error) { return "", fmt.Errorf("look-up: %w", context.Canceled) }, "", 503, ""},
		{func(*http.Request) (string, error) { return "", context.DeadlineExceeded }, "", 503, ""},
	} {
		limit, err := New(lim, row.key)
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest("GET", "/", nil)
		if row.set != "" {
			r.Header.Set(row.set, "hunter2")
		}
		w := httptest.NewRecorder()
		limit(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w, r)
		if body := w.Body.String(); w.Code != row.status || !strings.Contains(body, row.detail) || strings.Contains(body, "detail") != (row.detail != "") || strings.Contains(body, "hunter2") {
			t.Errorf("%d %s, want %d with %s", w.Code, body, row.status, row.detail)
		}
	}
	if err := error(&MissingError{[]string{"A"}}); !errors.Is(err, ErrEmptyKey) || err.Error() != "httplimit: the request has no key: the field A is missing" {
		t.Errorf("%v", err)
	}
}

func TestUnlimited(t *testing.T) {
	t.Parallel()
	lim, _ := newLimiter(t, nil)
	paths := []string{"/healthz"}
	skip := Unlimited(paths...)
	paths[0] = "/"
	limit, err := New(lim, Header("X-Api-Key"), WithSkip(skip))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		method, path string
		fields       string
		want         int
	}{
		{"GET", "/healthz", "", 200},
		{"HEAD", "/healthz?verbose", "", 200},
		{"POST", "/healthz", "", 400},
		{"GET", "/healthz/", "", 400},
		{"GET", "/", "", 400},
		{"OPTIONS", "/", "Origin Access-Control-Request-Method", 200},
		{"OPTIONS", "/", "Origin", 400},
		{"OPTIONS", "/", "Access-Control-Request-Method", 400},
		{"GET", "/", "Origin Access-Control-Request-Method", 400},
	} {
		r := httptest.NewRequest(row.method, row.path, nil)
		for field := range strings.FieldsSeq(row.fields) {
			r.Header.Set(field, "x")
		}
		w := httptest.NewRecorder()
		limit(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w, r)
		if w.Code != row.want {
			t.Errorf("%s %s with %q: %d, want %d", row.method, row.path, row.fields, w.Code, row.want)
		}
	}
	if got := lim.Stats(); got.Allowed+got.Limited != 0 {
		t.Errorf("%d decisions, want none", got.Allowed+got.Limited)
	}
}
