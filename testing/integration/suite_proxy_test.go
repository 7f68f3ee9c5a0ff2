// This file stands between limiters and a server: it notes every command on the
// wire, on whatever backend, and can be shut as if the server were not there.

package integration

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/hanzoai/limiters/internal/heldport"
)

// A proxy forwards to one server.
type proxy struct {
	t        *testing.T
	upstream string // host:port
	url      string // of the proxy

	running sync.WaitGroup

	mu       sync.Mutex
	listener net.Listener          // guarded by mu; nil while shut
	conns    map[net.Conn]struct{} // guarded by mu
	commands []string              // guarded by mu; since the last take
	before   func(command string)  // guarded by mu; called before one is forwarded; may be nil
}

// newProxy returns an open proxy to a server's address. TLS it cannot read.
func newProxy(t *testing.T, address string) *proxy {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	if u.Scheme != "redis" {
		skip(t, "cannot look into connections of %s://", u.Scheme)
	}
	p := &proxy{t: t, upstream: u.Host, conns: map[net.Conn]struct{}{}}
	port, err := heldport.Hold()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.shut()
		p.running.Wait()
		_ = port.Release()
	})
	u.Host = net.JoinHostPort(heldport.Host, strconv.Itoa(port.Number()))
	p.url = u.String()
	p.open()
	return p
}

func (p *proxy) listen(address string) {
	p.t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		p.t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listener = listener
	p.running.Go(func() { p.accept(listener) }) // ends when it is shut
}

// shut ends all connections and refuses new ones.
func (p *proxy) shut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener == nil {
		return
	}
	_ = p.listener.Close()
	p.listener = nil
	for conn := range p.conns {
		_ = conn.Close()
	}
}

// open lets connections in again, at the same address.
func (p *proxy) open() {
	u, _ := url.Parse(p.url)
	p.listen(u.Host)
}

// take returns the names of the commands since the last call, in lower case.
func (p *proxy) take() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	commands := p.commands
	p.commands = nil
	return commands
}

// intercept has f called, on another goroutine, before a command is forwarded.
func (p *proxy) intercept(f func(command string)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.before = f
}

func (p *proxy) accept(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		p.running.Go(func() { p.serve(conn) }) // ends with either connection
	}
}

// serve forwards requests, whole ones, and lets replies through.
func (p *proxy) serve(client net.Conn) {
	server, err := net.Dial("tcp", p.upstream)
	if err != nil {
		_ = client.Close()
		return
	}
	p.mu.Lock()
	shut := p.listener == nil
	p.conns[client], p.conns[server] = struct{}{}, struct{}{}
	p.mu.Unlock()
	var replies sync.WaitGroup
	replies.Go(func() {
		_, _ = io.Copy(client, server)
		_ = client.Close()
	})
	for in := bufio.NewReader(client); !shut; {
		raw, name, err := readCommand(in)
		if err != nil {
			break
		}
		p.mu.Lock()
		p.commands = append(p.commands, name)
		before := p.before
		p.mu.Unlock()
		if before != nil {
			before(name)
		}
		if _, err := server.Write(raw); err != nil {
			break
		}
	}
	_, _ = client.Close(), server.Close()
	replies.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, client)
	delete(p.conns, server)
}

// readCommand reads one command: an array of bulk strings.
func readCommand(in *bufio.Reader) (raw []byte, name string, err error) {
	count, raw, err := readLength(in, '*', nil)
	for i := 0; i < count && err == nil; i++ {
		var size int
		if size, raw, err = readLength(in, '$', raw); err != nil {
			break
		}
		from := len(raw)
		raw = append(raw, make([]byte, size+2)...)
		if _, err = io.ReadFull(in, raw[from:]); i == 0 {
			name = strings.ToLower(string(raw[from : from+size]))
		}
	}
	return raw, name, err
}

// readLength reads a line of a mark and a number, and appends it to raw.
func readLength(in *bufio.Reader, mark byte, raw []byte) (int, []byte, error) {
	line, err := in.ReadBytes('\n')
	if err != nil {
		return 0, raw, err
	}
	if line[0] != mark {
		return 0, raw, errors.New("not the protocol")
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(line[1:])))
	return n, append(raw, line...), err
}
