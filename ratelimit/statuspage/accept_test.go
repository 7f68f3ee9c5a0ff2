package statuspage

import (
	"math"
	"testing"
)

func TestPrefersJSON(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		accept []string
		want   bool
	}{
		{nil, false},
		{[]string{""}, false},
		{[]string{"*/*"}, false},
		{[]string{"application/json"}, true},
		{[]string{"Application/JSON; charset=utf-8"}, true},
		{[]string{"application/*"}, true},
		{[]string{"text/html"}, false},
		{[]string{"text/html, application/json"}, false},
		{[]string{"text/html;q=0.9, application/json"}, true},
		{[]string{"text/html;q=0.9", "application/json"}, true},
		{[]string{"application/json;q=0.5, text/html;q=0.4"}, true},
		{[]string{"application/json;q=0"}, false},
		{[]string{"application/json;q=0, */*"}, false},
		{[]string{"text/html;q=0, */*"}, true},
		{[]string{"text/*;q=0.3, */*;q=0.4"}, true},
		{[]string{"application/json, */*"}, false},
		{[]string{"application/json, text/plain, */*;q=0.1"}, true},
		{[]string{"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}, false},
		{[]string{"application/json;q=high"}, false},
		{[]string{"application/json;q=2"}, false},
		{[]string{"application/json;q=-1"}, false},
		{[]string{"application/json;q=NaN"}, false},
		{[]string{"//, ;;, application/json"}, true},
		{[]string{"application/json;q=0.2, application/json, text/html;q=0.5"}, false},
	} {
		if got := prefersJSON(row.accept); got != row.want {
			t.Errorf("prefersJSON(%q) = %v, want %v", row.accept, got, row.want)
		}
	}
}

func TestNumbersForPeople(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ digits, want string }{
		{"0", "0"}, {"999", "999"}, {"1000", "1\u202f000"}, {"-100", "-100"}, {"-1000", "-1\u202f000"}, {"1234567", "1\u202f234\u202f567"},
	} {
		if got := grouped(row.digits); got != row.want {
			t.Errorf("grouped(%q) = %q, want %q", row.digits, got, row.want)
		}
	}
	for _, row := range []struct {
		seconds float64
		want    string
	}{
		{-3, "0s"}, {0, "0s"}, {0.04, "0s"}, {0.25, "300ms"}, {9.94, "9.9s"}, {12.4, "12s"}, {3725, "1h2m5s"},
	} {
		if got := span(row.seconds); got != row.want {
			t.Errorf("span(%v) = %q, want %q", row.seconds, got, row.want)
		}
	}
	if got := span(math.Inf(1)); got == "" {
		t.Error("no text for an endless span")
	}
}
