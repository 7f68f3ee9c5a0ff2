package httplimit

// This file finds the client's address behind proxies, believing only those that
// are trusted.

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
)

// A Forwarding is the request field by which proxies pass on whom they serve.
type Forwarding uint8

const (
	// XForwardedFor is the de facto standard: X-Forwarded-For: client, proxy.
	XForwardedFor Forwarding = iota
	// Forwarded is RFC 7239: Forwarded: for=client, for=proxy.
	Forwarded
	// XRealIP is what nginx and others set to one address: X-Real-IP: client.
	XRealIP
)

// Field returns the field's canonical name.
func (f Forwarding) Field() string {
	switch f {
	case Forwarded:
		return "Forwarded"
	case XRealIP:
		return "X-Real-Ip"
	}
	return "X-Forwarded-For"
}

// Proxies says which proxies stand between clients and this server.
type Proxies struct {
	// Trusted are the proxies' addresses ("192.0.2.1", "2001:db8::1") and networks
	// ("10.0.0.0/8"). "unix" trusts peers on a unix socket. With none, the client
	// is whoever connected, and no field is looked at. Do not list networks from
	// which clients come: they could then pass for others.
	Trusted []string
	// Forwarding is the one field that is believed. The trusted proxies have to
	// append to it or to replace it: one that hands on what the client sent lets
	// the client choose its address.
	Forwarding Forwarding
	// TrustedHops counts instead of comparing addresses: it is how many elements of
	// the field your proxies append to what a client sent, and the first of those is
	// the client. It is for load balancers whose addresses are not known: 1 for one
	// that appends its peer, 2 for one that appends its peer and itself. A field with
	// fewer elements is an error. With Trusted, the peer has to be one of those;
	// without, every peer is believed, so nobody else may reach this server. 0 is none;
	// with XRealIP it has to be.
	TrustedHops int
	// IPv4Bits is how much of an IPv4 address makes the key, from 1 to 32; 0 is 32.
	IPv4Bits int
	// IPv6Bits is how much of an IPv6 address makes the key, from 1 to 128; 0 is
	// 64, for whoever has an IPv6 address has 2^64 of them.
	IPv6Bits int
}

// ErrForwarding is wrapped by the error about a request whose client cannot be told
// because what a trusted proxy wrote is malformed or names no address.
var ErrForwarding = errors.New("httplimit: the forwarding field does not name the client")

// ErrPeer is wrapped by the error about a request from a peer without an IP address
// that is not trusted.
var ErrPeer = errors.New("httplimit: the peer has no IP address")

// ClientIP returns a key function that answers the client's IP address: of IPv4 the
// whole address, or its network of IPv4Bits, of IPv6 its network, as in
// "2001:db8:1:2::/64". IPv6 addresses that stand for one of IPv4 (mapped, compatible,
// NAT64 of 64:ff9b::/96, SIIT, 6to4, Teredo) make that one's key. The error names what
// is wrong with p.
//
// The address is that of the peer or, if the peer is trusted, the last one in the
// forwarding field, written by that peer; if it is trusted too, the one before, and
// so on, until one is not trusted or none is left. What stands further to the left
// may have been written by anybody and is not even parsed. If an element that was
// reached is malformed, empty, or names no address ("unknown", "_hidden"), the
// key function fails: the request is one of a proxy's that does not tell. If a trusted
// peer with an IP address sends no field at all, the request is its own and the peer is
// the client, so that a proxy's health checks have a key; a proxy that does not set the
// field for its clients makes one client of all of them.
func ClientIP(p Proxies) (KeyFunc, error) {
	c, err := NewClients(p)
	if err != nil {
		return nil, err
	}
	field := p.Forwarding.Field()
	return func(r *http.Request) (string, error) {
		return c.Key(r.RemoteAddr, r.Header[field])
	}, nil
}

// Clients tells clients' addresses from what a connection and a forwarding field
// say, for servers of other protocols than HTTP; with net/http use [ClientIP]. It
// is immutable.
type Clients struct {
	trusted     []netip.Prefix
	trustUnix   bool
	previous    func(rest string) (node, before string, err error)
	ipv4Bits    int
	ipv6Bits    int
	hops        int // 0: by address
	single      bool
	description string
}

// NewClients returns Clients that trust p.
func NewClients(p Proxies) (*Clients, error) {
	c := &Clients{
		ipv4Bits: p.IPv4Bits, ipv6Bits: p.IPv6Bits, hops: p.TrustedHops, single: p.Forwarding == XRealIP,
		previous: lastAddress, description: p.Forwarding.Field(),
	}
	var errs []error
	switch p.Forwarding {
	case XForwardedFor, XRealIP:
	case Forwarded:
		c.previous = lastForwarded
	default:
		errs = append(errs, fmt.Errorf("httplimit: Proxies.Forwarding: %d is neither XForwardedFor nor Forwarded nor XRealIP", p.Forwarding))
	}
	if c.hops < 0 || c.hops > 0 && c.single {
		errs = append(errs, fmt.Errorf("httplimit: Proxies.TrustedHops: %d, want 0 or more, and 0 with XRealIP", p.TrustedHops))
	}
	if c.ipv4Bits == 0 {
		c.ipv4Bits = 32
	}
	if c.ipv4Bits < 0 || c.ipv4Bits > 32 {
		errs = append(errs, fmt.Errorf("httplimit: Proxies.IPv4Bits: %d is not from 0 to 32", p.IPv4Bits))
	}
	if c.ipv6Bits == 0 {
		c.ipv6Bits = 64
	}
	if c.ipv6Bits < 0 || c.ipv6Bits > 128 {
		errs = append(errs, fmt.Errorf("httplimit: Proxies.IPv6Bits: %d is not from 0 to 128", p.IPv6Bits))
	}
	for _, text := range p.Trusted {
		if text == "unix" {
			c.trustUnix = true
			continue
		}
		prefix, err := parsePrefix(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("httplimit: Proxies.Trusted: %w", err))
			continue
		}
		c.trusted = append(c.trusted, prefix)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return c, nil
}

// Key returns the key of the client behind a peer. remote is the peer's address, as
// http.Request.RemoteAddr holds it; forwarded are the lines of the forwarding
// field, in order. Errors wrap [ErrForwarding] or [ErrPeer].
func (c *Clients) Key(remote string, forwarded []string) (string, error) {
	client, err := parseNode(remote)
	switch {
	case err == nil:
	case c.trustUnix && (remote == "" || remote[0] == '@' || remote[0] == '/'):
		if len(forwarded) == 0 {
			return "", fmt.Errorf("%w: %s is missing", ErrForwarding, c.description)
		}
		return c.forwarded(netip.Addr{}, forwarded)
	case c.hops > 0 && len(c.trusted) == 0 && !c.trustUnix:
		return c.forwarded(netip.Addr{}, forwarded)
	default:
		return "", fmt.Errorf("%w: %q", ErrPeer, remote)
	}
	if !c.trusts(client) && (c.hops == 0 || len(c.trusted) > 0 || c.trustUnix) {
		return c.text(client), nil
	}
	return c.forwarded(client, forwarded)
}

// forwarded returns the key of the client that a peer which is believed names.
func (c *Clients) forwarded(peer netip.Addr, lines []string) (string, error) {
	switch {
	case c.hops > 0:
		return c.count(lines)
	case c.single && len(lines) > 1:
		return "", fmt.Errorf("%w: %s occurs %d times", ErrForwarding, c.description, len(lines))
	case c.single && len(lines) == 1:
		client, err := parseNode(strings.Trim(lines[0], " \t"))
		if err != nil {
			return "", fmt.Errorf("%w: %s: %w", ErrForwarding, c.description, err)
		}
		return c.text(client), nil
	}
	return c.walk(peer, lines)
}

// count goes as many elements through the forwarding field, from the right, as trusted
// proxies append.
func (c *Clients) count(lines []string) (string, error) {
	left := c.hops
	for i := len(lines) - 1; i >= 0; i-- {
		for rest := lines[i]; ; {
			node, before, err := c.previous(rest)
			if left--; err == nil && left == 0 {
				var client netip.Addr
				if client, err = parseNode(node); err == nil {
					return c.text(client), nil
				}
			}
			if err != nil {
				return "", fmt.Errorf("%w: %s: %w", ErrForwarding, c.description, err)
			}
			if rest = before; rest == "" {
				break
			}
		}
	}
	return "", fmt.Errorf("%w: %s has %d elements, want %d", ErrForwarding, c.description, c.hops-left, c.hops)
}

// walk goes through the forwarding field from the right for as long as it meets
// trusted proxies.
func (c *Clients) walk(client netip.Addr, forwarded []string) (string, error) {
	for i := len(forwarded) - 1; i >= 0; i-- {
		for rest := forwarded[i]; ; {
			node, before, err := c.previous(rest)
			if err == nil {
				client, err = parseNode(node)
			}
			if err != nil {
				return "", fmt.Errorf("%w: %s: %w", ErrForwarding, c.description, err)
			}
			if !c.trusts(client) {
				return c.text(client), nil
			}
			if rest = before; rest == "" {
				break
			}
		}
	}
	return c.text(client), nil
}

func (c *Clients) trusts(a netip.Addr) bool {
	for _, p := range c.trusted {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// text returns the key of an address.
func (c *Clients) text(a netip.Addr) string {
	a = inner(a)
	bits := c.ipv6Bits
	if a.Is4() {
		bits = c.ipv4Bits
	}
	if bits == a.BitLen() {
		return a.String()
	}
	p, err := a.Prefix(bits)
	if err != nil {
		panic(err) // the bits were checked
	}
	return p.String()
}

// parseNode parses an address, with or without a port, IPv6 with or without
// brackets. IPv4 in IPv6 becomes IPv4; a zone is dropped.
func parseNode(text string) (netip.Addr, error) {
	host := text
	if bare, ok := strings.CutPrefix(text, "["); ok {
		inner, port, closed := strings.Cut(bare, "]")
		if !closed || port != "" && !isPort(port) || !strings.Contains(inner, ":") {
			return netip.Addr{}, fmt.Errorf("%q is no address", text)
		}
		host = inner
	} else if h, port, one := strings.Cut(text, ":"); one && !strings.Contains(port, ":") {
		if !isPort(":" + port) {
			return netip.Addr{}, fmt.Errorf("%q is no address", text)
		}
		host = h
	}
	a, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("%q is no address", text)
	}
	return a.WithZone("").Unmap(), nil
}

// isPort reports whether text is a colon and a port: a number, or RFC 7239's
// obfuscated one.
func isPort(text string) bool {
	port, ok := strings.CutPrefix(text, ":")
	if !ok || port == "" || len(port) > 100 {
		return false
	}
	if port[0] == '_' {
		return true
	}
	return len(port) <= 5 && strings.Trim(port, "0123456789") == ""
}

// parsePrefix parses a network, or an address as the network of itself.
func parsePrefix(text string) (netip.Prefix, error) {
	if !strings.Contains(text, "/") {
		a, err := netip.ParseAddr(text)
		if err != nil || a.Zone() != "" {
			return netip.Prefix{}, fmt.Errorf("%q is neither an address nor a network", text)
		}
		a = a.Unmap()
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("%q is neither an address nor a network", text)
	}
	if a := p.Addr(); a.Is4In6() {
		if p.Bits() < 96 {
			return netip.Prefix{}, fmt.Errorf("%q holds IPv4 and more", text)
		}
		p = netip.PrefixFrom(a.Unmap(), p.Bits()-96)
	}
	return p.Masked(), nil
}
