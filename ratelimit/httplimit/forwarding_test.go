package httplimit

import (
	"errors"
	"strings"
	"testing"
)

func TestForwarded(t *testing.T) {
	t.Parallel()
	c, err := NewClients(Proxies{Trusted: proxies, Forwarding: Forwarded})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		line string
		want string // "" is an error
	}{
		{`for=203.0.113.7`, "203.0.113.7"},
		{`FOR="203.0.113.7"`, "203.0.113.7"},
		{`for="203.0.113.7:80"`, "203.0.113.7"},
		{`for="203.0.113.7:_port"`, "203.0.113.7"},
		{`for="[2001:db8:1:2::3]:4711"`, "2001:db8:1:2::/64"},
		{`for="[2001:db8:1:2::3]"`, "2001:db8:1:2::/64"},
		{`for="\2\0\3.0.113.7"`, "203.0.113.7"},
		{`for=203.0.113.7;proto=http;by=203.0.113.43`, "203.0.113.7"},
		{`by=203.0.113.43 ; proto=http ; for=203.0.113.7;`, "203.0.113.7"},
		{`for=1.1.1.1, for=203.0.113.7`, "203.0.113.7"},
		{`for=203.0.113.7, for=10.0.0.7;proto=https`, "203.0.113.7"},
		{`for=1.1.1.1,for=203.0.113.7,for=10.0.0.7,for=192.0.2.9`, "203.0.113.7"},
		{`for=10.0.0.6, for=10.0.0.7`, "10.0.0.6"},
		{`for=203.0.113.7;host="a,for=1.1.1.1;\"b"`, "203.0.113.7"},
		{`for=203.0.113.7;host="\\"`, "203.0.113.7"},
		{`for="203.0.113.7";host=""`, "203.0.113.7"},

		// What the client sent does not matter, whatever it is.
		{`for="1.1.1.1, for=203.0.113.7`, "203.0.113.7"},
		{`for="1.1.1.1\, for="203.0.113.7"`, "203.0.113.7"},
		{`for=x;;;for=y""", for="203.0.113.7:9";by=_a`, "203.0.113.7"},
		{`", for=203.0.113.7, for=10.0.0.7`, "203.0.113.7"},

		// What a proxy wrote has to name the client.
		{``, ""},
		{`,`, ""},
		{`for=203.0.113.7,`, ""},
		{`, for=10.0.0.7`, ""},
		{`proto=http`, ""},
		{`for=`, ""},
		{`for=""`, ""},
		{`for=unknown`, ""},
		{`for=_hidden`, ""},
		{`for="_hidden:80"`, ""},
		{`for=2001:db8::1`, ""},
		{`for=[2001:db8::1]`, ""},
		{`for=203.0.113.7:80`, ""},
		{`for="203.0.113.7`, ""},
		{`for=203.0.113.7"`, ""},
		{`for="203.0.113.7"x`, ""},
		{`for="203.0.113.7\"`, ""},
		{`for=203.0.113.7;for=203.0.113.8`, ""},
		{`for=203.0.113.7;For=203.0.113.7`, ""},
		{`for=203.0.113.7;proto`, ""},
		{`for=203.0.113.7;pro to=http`, ""},
		{`for = 203.0.113.7`, ""},
		{`203.0.113.7`, ""},
	} {
		got, err := c.Key("10.1.2.3:80", []string{row.line})
		if got != row.want || (err == nil) != (row.want != "") || err != nil && !errors.Is(err, ErrForwarding) {
			t.Errorf("Forwarded: %s: %q, %v; want %q", row.line, got, err, row.want)
		}
	}
}

func TestForwardedOverSeveralLines(t *testing.T) {
	t.Parallel()
	c, err := NewClients(Proxies{Trusted: proxies, Forwarding: Forwarded})
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Key("10.1.2.3:80", []string{`for="`, "for=203.0.113.7, for=192.0.2.9", "for=10.0.0.1"})
	if got != "203.0.113.7" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// FuzzForwarding: whatever a client sends, the address that the trusted proxy
// appends to it is the client's.
func FuzzForwarding(f *testing.F) {
	for _, seed := range []string{"", "1.1.1.1", `for="`, `for="\`, ",", ";", `"\"`, `for=10.0.0.1`, "10.0.0.1"} {
		f.Add(seed)
	}
	xff, err := NewClients(Proxies{Trusted: proxies})
	if err != nil {
		f.Fatal(err)
	}
	forwarded, err := NewClients(Proxies{Trusted: proxies, Forwarding: Forwarded})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, sent string) {
		for _, lines := range [][]string{{sent + ", 203.0.113.7, 10.0.0.1"}, {sent, "203.0.113.7", "10.0.0.1"}} {
			if got, err := xff.Key("192.0.2.9:1", lines); got != "203.0.113.7" || err != nil {
				t.Errorf("X-Forwarded-For %q: %q, %v", lines, got, err)
			}
		}
		for _, lines := range [][]string{
			{sent + `, for=203.0.113.7;by="_x, y", proto=https;for="10.0.0.1"`}, {sent, "for=203.0.113.7", "for=10.0.0.1"},
		} {
			if got, err := forwarded.Key("192.0.2.9:1", lines); got != "203.0.113.7" || err != nil {
				t.Errorf("Forwarded %q: %q, %v", lines, got, err)
			}
		}
		// Left to itself, it is an address, an error, or the proxy's: never a panic.
		for _, c := range []*Clients{xff, forwarded} {
			if got, err := c.Key("192.0.2.9:1", []string{sent}); (got == "") != (err != nil) || strings.ContainsAny(got, ", \"") {
				t.Errorf("field %q: %q, %v", sent, got, err)
			}
		}
	})
}
