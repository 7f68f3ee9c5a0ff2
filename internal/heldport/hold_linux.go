package heldport

// This file holds ports by sockets that are bound and do not listen.

import (
	"net"
	"net/netip"
	"os"
	"syscall"
)

// hold binds a socket. SO_REUSEADDR lets another socket that sets it, as every
// server does, listen on the same port as long as this one does not.
func hold() (number int, release func() error, err error) {
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, nil, os.NewSyscallError("socket", err)
	}
	defer func() {
		if err != nil {
			_ = syscall.Close(socket)
		}
	}()
	if err := syscall.SetsockoptInt(socket, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		return 0, nil, os.NewSyscallError("setsockopt", err)
	}
	if err := syscall.Bind(socket, &syscall.SockaddrInet4{Addr: netip.MustParseAddr(Host).As4()}); err != nil {
		return 0, nil, os.NewSyscallError("bind", err)
	}
	name, err := syscall.Getsockname(socket)
	if err != nil {
		return 0, nil, os.NewSyscallError("getsockname", err)
	}
	bound, ok := name.(*syscall.SockaddrInet4)
	if !ok {
		return 0, nil, &net.AddrError{Err: "not an IPv4 address", Addr: Host}
	}
	return bound.Port, func() error { return syscall.Close(socket) }, nil
}
