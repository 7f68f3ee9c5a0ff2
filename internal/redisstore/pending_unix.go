// This file looks at what waits on a socket, without waiting and without taking it.

//go:build unix

package redisstore

import (
	"errors"
	"net"
	"syscall"
)

// pending says what waits to be read.
func pending(socket net.Conn) (what int) {
	raw, ok := socket.(syscall.Conn)
	if !ok {
		return peerSilent
	}
	rc, err := raw.SyscallConn()
	if err != nil {
		return peerClosed
	}
	err = rc.Read(func(fd uintptr) bool {
		var one [1]byte
		n, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		switch {
		case n > 0:
			what = peerSent
		case err == nil:
			what = peerClosed
		case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.EINTR):
			what = peerSilent
		default:
			what = peerClosed // a reset
		}
		return true
	})
	if err != nil {
		return peerClosed
	}
	return what
}
