package httplimit

// This file tells clients by more than the addresses of proxies: IPv4 inside IPv6,
// counted hops, a field of one address, and networks of IPv4.

import (
	"errors"
	"net/http/httptest"
	"testing"
)

// keyOf returns the key of a request from a peer with the lines of a field.
func keyOf(t *testing.T, p Proxies, remote string, lines ...string) (string, error) {
	t.Helper()
	key, err := ClientIP(p)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = remote
	for _, line := range lines {
		r.Header.Add(p.Forwarding.Field(), line)
	}
	return key(r)
}

// Whatever way an IPv4 client's address is written in IPv6, its key is one.
func TestIPv4InsideIPv6(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"::ffff:203.0.113.7":                   "203.0.113.7", // mapped
		"::203.0.113.7":                        "203.0.113.7", // compatible
		"::ffff:0:203.0.113.7":                 "203.0.113.7", // SIIT
		"64:ff9b::203.0.113.7":                 "203.0.113.7", // NAT64
		"64:ff9b::cb00:7107":                   "203.0.113.7",
		"2002:cb00:7107::1":                    "203.0.113.7", // 6to4
		"2002:cb00:7107:ffff:1:2:3:4":          "203.0.113.7",
		"2001:0:4136:e378:8000:63bf:34ff:8ef8": "203.0.113.7", // Teredo: all bits flipped
		"2001::34ff:8ef8":                      "203.0.113.7",
		"::":                                   "::/64",
		"::1":                                  "::/64",
		"::0.1.2.3":                            "::/64",
		"64:ff9b::0.0.0.1":                     "64:ff9b::/64",
		"64:ff9b:0:0:0:1:203.0.113.7":          "64:ff9b::/64", // outside of the /96
		"64:ff9b:1::203.0.113.7":               "64:ff9b:1::/64",
		"2001:1::34ff:8ef8":                    "2001:1::/64",
		"2003:cb00:7107::1":                    "2003:cb00:7107::/64",
		"::1:ffff:203.0.113.7":                 "::/64",
	} {
		for _, p := range []Proxies{{}, {Trusted: []string{"10.0.0.0/8"}}, {TrustedHops: 1}} {
			remote, lines := "["+address+"]:1234", []string(nil)
			if len(p.Trusted) > 0 || p.TrustedHops > 0 {
				remote, lines = "10.1.2.3:80", []string{address}
			}
			if got, err := keyOf(t, p, remote, lines...); got != want || err != nil {
				t.Errorf("%s with %+v: %q, %v; want %q", address, p, got, err, want)
			}
		}
	}
	// Trust is by the address itself: nobody becomes a proxy by what is inside.
	p := Proxies{Trusted: []string{"10.0.0.0/8"}}
	if got, err := keyOf(t, p, "[2002:a00:1::1]:80", "1.1.1.1"); got != "10.0.0.1" || err != nil {
		t.Errorf("a 6to4 peer with a proxy's IPv4: %q, %v; want its own", got, err)
	}
}

func TestTrustedHops(t *testing.T) {
	t.Parallel()
	const peer = "35.191.0.1:443"
	for _, row := range []struct {
		why   string
		p     Proxies
		peer  string
		lines []string
		want  string
		err   error
	}{
		{"one appends its peer", Proxies{TrustedHops: 1}, peer, []string{"1.1.1.1, 203.0.113.7"}, "203.0.113.7", nil},
		{"one appends its peer and itself", Proxies{TrustedHops: 2}, peer, []string{"1.1.1.1, 203.0.113.7, 34.1.2.3"}, "203.0.113.7", nil},
		{"in two lines", Proxies{TrustedHops: 2}, peer, []string{"1.1.1.1, 203.0.113.7", "34.1.2.3"}, "203.0.113.7", nil},
		{"nothing was sent by the client", Proxies{TrustedHops: 2}, peer, []string{"203.0.113.7,34.1.2.3"}, "203.0.113.7", nil},
		{"three", Proxies{TrustedHops: 3}, peer, []string{"203.0.113.7, 34.1.2.3, 10.0.0.1"}, "203.0.113.7", nil},
		{"what stands before is not parsed", Proxies{TrustedHops: 1}, peer, []string{"\"\x00,,%, 203.0.113.7"}, "203.0.113.7", nil},
		{"what is passed over need be no address", Proxies{TrustedHops: 2}, peer, []string{"203.0.113.7, lb-7"}, "203.0.113.7", nil},
		{"too few", Proxies{TrustedHops: 2}, peer, []string{"203.0.113.7"}, "", ErrForwarding},
		{"none", Proxies{TrustedHops: 1}, peer, nil, "", ErrForwarding},
		{"an empty line", Proxies{TrustedHops: 1}, peer, []string{""}, "", ErrForwarding},
		{"no address", Proxies{TrustedHops: 1}, peer, []string{"203.0.113.7, unknown"}, "", ErrForwarding},
		{"a trusted peer", Proxies{TrustedHops: 2, Trusted: []string{"35.191.0.0/16"}}, peer, []string{"203.0.113.7, 34.1.2.3"}, "203.0.113.7", nil},
		{"a peer that is not", Proxies{TrustedHops: 2, Trusted: []string{"10.0.0.0/8"}}, peer, []string{"203.0.113.7, 34.1.2.3"}, "35.191.0.1", nil},
		{"a unix socket, if any peer is believed", Proxies{TrustedHops: 1}, "@", []string{"203.0.113.7"}, "203.0.113.7", nil},
		{"a unix socket that is trusted", Proxies{TrustedHops: 1, Trusted: []string{"unix"}}, "@", []string{"203.0.113.7"}, "203.0.113.7", nil},
		{"TCP where the socket is", Proxies{TrustedHops: 1, Trusted: []string{"unix"}}, peer, []string{"203.0.113.7"}, "35.191.0.1", nil},
		{"Forwarded", Proxies{TrustedHops: 2, Forwarding: Forwarded}, peer, []string{`for=1.1.1.1, for=203.0.113.7;proto=https, for=_lb`}, "203.0.113.7", nil},
	} {
		if got, err := keyOf(t, row.p, row.peer, row.lines...); got != row.want || !errors.Is(err, row.err) || row.err == nil && err != nil {
			t.Errorf("%s: %q, %v; want %q, %v", row.why, got, err, row.want, row.err)
		}
	}
}

func TestXRealIP(t *testing.T) {
	t.Parallel()
	p := Proxies{Trusted: []string{"10.0.0.0/8"}, Forwarding: XRealIP}
	for _, row := range []struct {
		peer  string
		lines []string
		want  string
		err   error
	}{
		{"10.1.2.3:80", []string{"203.0.113.7"}, "203.0.113.7", nil},
		{"10.1.2.3:80", []string{" [2001:db8:1:2::6]:99\t"}, "2001:db8:1:2::/64", nil},
		{"10.1.2.3:80", []string{"10.9.9.9"}, "10.9.9.9", nil},
		{"198.51.100.1:80", []string{"203.0.113.7"}, "198.51.100.1", nil},
		{"10.1.2.3:80", nil, "10.1.2.3", nil},
		{"10.1.2.3:80", []string{""}, "", ErrForwarding},
		{"10.1.2.3:80", []string{"203.0.113.7, 203.0.113.8"}, "", ErrForwarding},
		{"10.1.2.3:80", []string{"203.0.113.7", "203.0.113.7"}, "", ErrForwarding},
		{"10.1.2.3:80", []string{"unknown"}, "", ErrForwarding},
	} {
		if got, err := keyOf(t, p, row.peer, row.lines...); got != row.want || !errors.Is(err, row.err) || row.err == nil && err != nil {
			t.Errorf("%s with %q: %q, %v; want %q, %v", row.peer, row.lines, got, err, row.want, row.err)
		}
	}
}

func TestIPv4Bits(t *testing.T) {
	t.Parallel()
	for bits, want := range map[int]string{0: "203.0.113.135", 32: "203.0.113.135", 25: "203.0.113.128/25", 24: "203.0.113.0/24", 1: "128.0.0.0/1"} {
		for _, remote := range []string{"203.0.113.135:80", "[64:ff9b::203.0.113.135]:80"} {
			if got, err := keyOf(t, Proxies{IPv4Bits: bits}, remote); got != want || err != nil {
				t.Errorf("%d bits of %s: %q, %v; want %q", bits, remote, got, err, want)
			}
		}
	}
}
