package httplimit

// This file finds the IPv4 address that an IPv6 address stands for.

import "net/netip"

// embeddings are the networks of addresses that hold one of IPv4, and where.
var embeddings = []struct {
	network  netip.Prefix
	at       int  // its first byte
	inverted bool // all bits are flipped
}{
	{netip.MustParsePrefix("64:ff9b::/96"), 12, false},    // NAT64 (RFC 6052)
	{netip.MustParsePrefix("::ffff:0:0:0/96"), 12, false}, // SIIT (RFC 2765)
	{netip.MustParsePrefix("::/96"), 12, false},           // compatible (RFC 4291)
	{netip.MustParsePrefix("2002::/16"), 2, false},        // 6to4 (RFC 3056)
	{netip.MustParsePrefix("2001::/32"), 12, true},        // Teredo (RFC 4380)
}

// inner returns the IPv4 address that a stands for, else a. One of 0.0.0.0/8 is none:
// so :: and ::1 stay what they are.
func inner(a netip.Addr) netip.Addr {
	if a.Is4() {
		return a
	}
	bytes := a.As16()
	for _, e := range embeddings {
		if !e.network.Contains(a) {
			continue
		}
		four := [4]byte(bytes[e.at:])
		if e.inverted {
			for i := range four {
				four[i] ^= 0xff
			}
		}
		if four[0] != 0 {
			return netip.AddrFrom4(four)
		}
	}
	return a
}
