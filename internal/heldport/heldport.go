// Package heldport keeps a port of the loopback interface for a server that is not
// there all the time: a test's server that is killed and started again, or a proxy
// that plays dead. A port that is merely free meanwhile may be given to anybody, who
// then gets what was meant for that server.
//
// # Concurrency
//
// A [Port] may be used by any goroutine.
package heldport

import "sync"

// Host is the address that ports are held on.
const Host = "127.0.0.1"

// A Port is held: it is given to nobody who asks for any free port, and refuses
// connections while nobody listens on it by its number.
type Port struct {
	number  int          // immutable
	release func() error // immutable
}

// Hold holds a port that was free. Where the system cannot hold a port that nobody
// listens on, which is everywhere but on Linux, it is a port that was free just now.
func Hold() (*Port, error) {
	number, release, err := hold()
	if err != nil {
		return nil, err
	}
	return &Port{number: number, release: sync.OnceValue(release)}, nil
}

// Number is the port's.
func (p *Port) Number() int { return p.number }

// Release lets others have the port. It may be called more than once.
func (p *Port) Release() error { return p.release() }
