// This file tests that a held port is nobody else's.

package heldport_test

import (
	"errors"
	"net"
	"runtime"
	"strconv"
	"syscall"
	"testing"

	"github.com/hanzoai/limiters/internal/heldport"
)

// TestAHeldPort: a server may come and go on it; nobody else gets it, and while no
// server is there it refuses connections.
func TestAHeldPort(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("ports are held on Linux alone")
	}
	held, err := heldport.Hold()
	if err != nil {
		t.Fatal(err)
	}
	address := net.JoinHostPort(heldport.Host, strconv.Itoa(held.Number()))
	for range 3 {
		if c, err := net.Dial("tcp", address); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatalf("with nobody there: %v, %v, want a refusal", c, err)
		}
		server, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatalf("a server cannot have the port: %v", err)
		}
		client, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatalf("a client does not reach the server: %v", err)
		}
		if peer, err := server.Accept(); err != nil {
			t.Fatal(err)
		} else if err := peer.Close(); err != nil { // the port's connection stays in TIME_WAIT
			t.Fatal(err)
		}
		_, _ = client.Close(), server.Close()
	}
	if err := errors.Join(held.Release(), held.Release()); err != nil {
		t.Errorf("release: %v", err)
	}
}

// TestAHeldPortIsNobodysElse asks the system for ports 2,000 times, as listeners and as
// the near ends of connections, and never gets a held one.
func TestAHeldPortIsNobodysElse(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("ports are held on Linux alone")
	}
	held := map[int]bool{}
	for range 500 {
		p, err := heldport.Hold()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.Release() })
		if held[p.Number()] {
			t.Fatalf("port %d was held twice", p.Number())
		}
		held[p.Number()] = true
	}
	server, err := net.Listen("tcp", heldport.Host+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	for range 2000 {
		l, err := net.Listen("tcp", heldport.Host+":0")
		if err != nil {
			t.Fatal(err)
		}
		c, err := net.Dial("tcp", server.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		peer, err := server.Accept()
		if err != nil {
			t.Fatal(err)
		}
		for _, address := range []net.Addr{l.Addr(), c.LocalAddr()} {
			if port := address.(*net.TCPAddr).Port; held[port] {
				t.Errorf("port %d is held, and was given away", port)
			}
		}
		_, _, _ = l.Close(), c.Close(), peer.Close()
	}
}
