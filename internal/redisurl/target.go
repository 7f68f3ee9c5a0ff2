// Package redisurl reads the addresses of partitions, and keeps their secrets
// out of everything that is printed.
//
// An address is one of
//
//	redis://[user:password@]host[:port][/db]
//	rediss://[user:password@]host[:port][/db]
//	unix://[user:password@]/path/to/socket[?db=n]
//	memory://
//
// optionally behind "name=", the partition's name, of letters, digits, '.', '_'
// and '-'. The port is 6379 and the database 0 unless given. A password alone is
// written ":password@" or, as redigo and redis-cli read it too, "password@".
// Reserved characters in user and password are percent-encoded; so is a comma,
// which separates addresses in a list. Nothing else is accepted: an unknown
// parameter or a path that is no database is an error, not ignored.
package redisurl

import (
	"net"
	"strconv"
)

// DefaultPort is the port of an address that names none.
const DefaultPort = "6379"

// A Target is one partition's address. The zero Target is none.
type Target struct {
	// Name is the partition's: as given, or else host:port/db, path/db, or "memory".
	Name string
	// Memory is true for memory://; then no other field but Name is set.
	Memory bool

	// Network is "tcp" or "unix".
	Network string
	// Address is host:port, an IPv6 host in brackets; or the socket's path.
	Address string
	// TLS is true for rediss://.
	TLS bool
	// User is empty for the server's default user.
	User string
	// Password is empty for none; with User empty too, no AUTH is sent.
	Password string
	// DB is the number of the database, from 0.
	DB int
}

// Host is the name a TLS certificate must bear: the address without its port.
func (t Target) Host() string {
	host, _, err := net.SplitHostPort(t.Address)
	if err != nil {
		return t.Address
	}
	return host
}

// String is the address with its user information masked. The name is not part
// of it.
func (t Target) String() string {
	mask := ""
	if t.User != "" || t.Password != "" {
		mask = masked + "@"
	}
	switch {
	case t.Memory:
		return "memory://"
	case t.Network == "unix":
		return "unix://" + mask + t.Address + "?db=" + strconv.Itoa(t.DB)
	case t.TLS:
		return "rediss://" + mask + t.Address + "/" + strconv.Itoa(t.DB)
	}
	return "redis://" + mask + t.Address + "/" + strconv.Itoa(t.DB)
}

// GoString is String, so that %#v shows no secret either.
func (t Target) GoString() string { return t.String() }

// MarshalText is String, so that an encoder shows no secret either.
func (t Target) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// defaultName is the name of a partition that was given none.
func (t Target) defaultName() string {
	if t.Memory {
		return "memory"
	}
	return t.Address + "/" + strconv.Itoa(t.DB)
}
