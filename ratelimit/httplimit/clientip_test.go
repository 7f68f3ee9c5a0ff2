package httplimit

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
)

// proxies are two of a company's: a network, and a machine.
var proxies = []string{"10.0.0.0/8", "2001:db8:ffff::1", "192.0.2.9"}

func TestClientIP(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		why       string
		trusted   []string
		remote    string
		forwarded []string
		want      string
		err       error
	}{
		{"no proxies: the peer", nil, "203.0.113.7:1234", nil, "203.0.113.7", nil},
		{"no proxies: the field is not believed", nil, "203.0.113.7:1234", []string{"1.1.1.1"}, "203.0.113.7", nil},
		{"a peer that is no proxy is not believed", proxies, "203.0.113.7:1234", []string{"1.1.1.1"}, "203.0.113.7", nil},
		{"a proxy's client", proxies, "10.1.2.3:80", []string{"203.0.113.7"}, "203.0.113.7", nil},
		{"what the client sent stands to the left", proxies, "10.1.2.3:80", []string{"1.1.1.1, 203.0.113.7"}, "203.0.113.7", nil},
		{"and is not parsed", proxies, "10.1.2.3:80", []string{"%$§,,\"\x00, 203.0.113.7"}, "203.0.113.7", nil},
		{"nor in a line of its own", proxies, "10.1.2.3:80", []string{"1.1.1.1", "", "203.0.113.7"}, "203.0.113.7", nil},
		{"two proxies", proxies, "10.1.2.3:80", []string{"1.1.1.1, 203.0.113.7, 192.0.2.9"}, "203.0.113.7", nil},
		{"two proxies, two lines", proxies, "10.1.2.3:80", []string{"1.1.1.1, 203.0.113.7", "192.0.2.9"}, "203.0.113.7", nil},
		{"a client that names a proxy", proxies, "10.1.2.3:80", []string{"10.9.9.9, 203.0.113.7"}, "203.0.113.7", nil},
		{"proxies all the way: the leftmost", proxies, "10.1.2.3:80", []string{"10.0.0.5,192.0.2.9"}, "10.0.0.5", nil},
		{"a proxy's own request", proxies, "10.1.2.3:80", nil, "10.1.2.3", nil},
		{"a port", proxies, "10.1.2.3:80", []string{"203.0.113.7:4711"}, "203.0.113.7", nil},
		{"no spaces, tabs", proxies, "10.1.2.3:80", []string{"1.1.1.1,\t203.0.113.7 "}, "203.0.113.7", nil},

		{"IPv6", nil, "[2001:db8:1:2:3:4:5:6]:443", nil, "2001:db8:1:2::/64", nil},
		{"IPv6 with a zone", nil, "[fe80::1%eth0]:443", nil, "fe80::/64", nil},
		{"IPv6 of a proxy's client", proxies, "[2001:db8:ffff::1]:80", []string{"2001:db8:1:2:3:4:5:6"}, "2001:db8:1:2::/64", nil},
		{"in brackets", proxies, "10.1.2.3:80", []string{"[2001:db8:1:2::6]"}, "2001:db8:1:2::/64", nil},
		{"in brackets, with a port", proxies, "10.1.2.3:80", []string{"[2001:db8:1:2::6]:99"}, "2001:db8:1:2::/64", nil},
		{"IPv4 in IPv6 is IPv4", nil, "[::ffff:203.0.113.7]:80", nil, "203.0.113.7", nil},
		{"a proxy as IPv4 in IPv6", proxies, "[::ffff:10.1.2.3]:80", []string{"::ffff:203.0.113.7"}, "203.0.113.7", nil},

		{"a malformed element that a proxy wrote", proxies, "10.1.2.3:80", []string{"1.1.1.1, 203.0.113"}, "", ErrForwarding},
		{"no address", proxies, "10.1.2.3:80", []string{"203.0.113.7, unknown"}, "", ErrForwarding},
		{"an empty element", proxies, "10.1.2.3:80", []string{"203.0.113.7, "}, "", ErrForwarding},
		{"an empty field", proxies, "10.1.2.3:80", []string{""}, "", ErrForwarding},
		{"an empty field in the last line", proxies, "10.1.2.3:80", []string{"203.0.113.7", " "}, "", ErrForwarding},
		{"an empty element behind a proxy", proxies, "10.1.2.3:80", []string{",192.0.2.9"}, "", ErrForwarding},
		{"a malformed port", proxies, "10.1.2.3:80", []string{"203.0.113.7:http"}, "", ErrForwarding},
		{"an empty port", proxies, "10.1.2.3:80", []string{"203.0.113.7:"}, "", ErrForwarding},
		{"an open bracket", proxies, "10.1.2.3:80", []string{"[2001:db8::1"}, "", ErrForwarding},
		{"IPv4 in brackets", proxies, "10.1.2.3:80", []string{"[203.0.113.7]"}, "", ErrForwarding},
		{"leading zeros", proxies, "10.1.2.3:80", []string{"203.0.113.007"}, "", ErrForwarding},

		{"a unix socket", proxies, "@", []string{"203.0.113.7"}, "", ErrPeer},
		{"no peer", nil, "", nil, "", ErrPeer},
		{"a unix socket that is trusted", []string{"unix"}, "@", []string{"1.1.1.1, 203.0.113.7"}, "203.0.113.7", nil},
		{"a unix socket's path", []string{"unix"}, "/run/proxy.sock", []string{"203.0.113.7"}, "203.0.113.7", nil},
		{"a trusted unix socket without the field", []string{"unix"}, "@", nil, "", ErrForwarding},
		{"unix says nothing about others", []string{"unix"}, "203.0.113.7:1", []string{"1.1.1.1"}, "203.0.113.7", nil},
		{"garbage for a peer", []string{"unix"}, "pipe", []string{"1.1.1.1"}, "", ErrPeer},
	} {
		key, err := ClientIP(Proxies{Trusted: row.trusted})
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = row.remote
		for _, line := range row.forwarded {
			r.Header.Add("X-Forwarded-For", line)
		}
		r.Header.Set("Forwarded", "for=9.9.9.9") // the other field is never believed
		got, err := key(r)
		if got != row.want || !errors.Is(err, row.err) || (err == nil) != (row.err == nil) {
			t.Errorf("%s: peer %q, field %q: %q, %v; want %q, %v", row.why, row.remote, row.forwarded, got, err, row.want, row.err)
		}
	}
}

func TestIPv6Bits(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		bits int
		want string
	}{
		{0, "2001:db8:1:2::/64"}, {56, "2001:db8:1::/56"}, {48, "2001:db8:1::/48"}, {1, "::/1"}, {127, "2001:db8:1:2:3:4:5:6/127"}, {128, "2001:db8:1:2:3:4:5:6"},
	} {
		key, err := ClientIP(Proxies{IPv6Bits: row.bits})
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = "[2001:db8:1:2:3:4:5:6]:1"
		if got, err := key(r); got != row.want || err != nil {
			t.Errorf("%d bits: %q, %v; want %q", row.bits, got, err, row.want)
		}
		r.RemoteAddr = "203.0.113.7:1"
		if got, err := key(r); got != "203.0.113.7" || err != nil {
			t.Errorf("%d bits, IPv4: %q, %v", row.bits, got, err)
		}
	}
}

func TestProxiesNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		p    Proxies
		want string
	}{
		{Proxies{Trusted: []string{"10.0.0.0/33"}}, `"10.0.0.0/33"`},
		{Proxies{Trusted: []string{"10.0.0.1", "proxy.example"}}, `"proxy.example"`},
		{Proxies{Trusted: []string{""}}, `""`},
		{Proxies{Trusted: []string{"fe80::1%eth0"}}, `"fe80::1%eth0"`},
		{Proxies{Trusted: []string{"::ffff:0:0/95"}}, `holds IPv4 and more`},
		{Proxies{IPv6Bits: 129}, "129"},
		{Proxies{IPv6Bits: -1}, "-1"},
		{Proxies{IPv4Bits: 33}, "33"},
		{Proxies{IPv4Bits: -1}, "-1"},
		{Proxies{TrustedHops: -1}, "-1"},
		{Proxies{TrustedHops: 1, Forwarding: XRealIP}, "XRealIP"},
		{Proxies{Forwarding: 3}, "3 is neither"},
	} {
		if _, err := ClientIP(row.p); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("ClientIP(%+v): error %v, want one with %s", row.p, err, row.want)
		}
	}
	if _, err := ClientIP(Proxies{Trusted: []string{"x", "y"}, IPv6Bits: 999}); err == nil ||
		strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("not all that is wrong is named: %v", err)
	}
}

func TestTrustedNetworksNeedNotBeMasked(t *testing.T) {
	t.Parallel()
	for _, trusted := range []string{"10.9.9.9/8", "::ffff:10.0.0.0/104", "::ffff:10.1.2.3", "0.0.0.0/0"} {
		c, err := NewClients(Proxies{Trusted: []string{trusted}})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := c.Key("10.1.2.3:1", []string{"2001:db8::1"}); got != "2001:db8::/64" || err != nil {
			t.Errorf("trusting %s: %q, %v", trusted, got, err)
		}
	}
}
