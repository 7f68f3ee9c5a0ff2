package httplimit

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestHeader(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		values []string
		want   string
		err    error
	}{
		{nil, "", nil},
		{[]string{""}, "", nil},
		{[]string{"  "}, "", nil},
		{[]string{"\t ann "}, "ann", nil},
		{[]string{"a, b"}, "a, b", nil},
		{[]string{"ann", "bob"}, "", ErrAmbiguous},
		{[]string{"ann", "ann"}, "", ErrAmbiguous},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header["X-User"] = row.values
		got, err := Header("x-user")(r)
		if got != row.want || !errors.Is(err, row.err) || (err == nil) != (row.err == nil) {
			t.Errorf("Header of %q: %q, %v; want %q, %v", row.values, got, err, row.want, row.err)
		}
	}
}

func TestHostIsAHeader(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest("GET", "http://tenant.example/", nil)
	got, err := Header("host")(r)
	if got != "tenant.example" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

func TestPrefixed(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, row := range []struct {
		key  string
		err  error
		want string
	}{
		{"ann", nil, "user:ann"}, {"", nil, ""}, {"ann", broken, ""},
	} {
		got, err := Prefixed("user:", func(*http.Request) (string, error) { return row.key, row.err })(nil)
		if got != row.want || !errors.Is(err, row.err) {
			t.Errorf("Prefixed of %q, %v: %q, %v; want %q", row.key, row.err, got, err, row.want)
		}
	}
}
