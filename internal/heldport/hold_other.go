//go:build !linux

package heldport

// This file finds ports where they cannot be held.

import "net"

func hold() (number int, release func() error, err error) {
	l, err := net.Listen("tcp", net.JoinHostPort(Host, "0"))
	if err != nil {
		return 0, nil, err
	}
	number = l.Addr().(*net.TCPAddr).Port
	return number, func() error { return nil }, l.Close()
}
