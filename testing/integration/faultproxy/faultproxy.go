package faultproxy

// This file is the proxy: its listener, its connections, and what it does with
// each request.

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/hanzoai/limiters/internal/heldport"
)

// dialTimeout bounds how long a connection to the server may take.
const dialTimeout = 5 * time.Second

// A Proxy listens on an address of its own on the loopback interface.
type Proxy struct {
	addr string         // immutable
	port *heldport.Port // immutable; held while the proxy is down, too
	done chan struct{}  // closed by Close

	hooking sync.Mutex // held while a hook runs

	mu       sync.Mutex
	idle     sync.Cond                 // of mu: busy became 0
	target   string                    // guarded by mu
	hook     func(Request) Action      // guarded by mu
	listener net.Listener              // guarded by mu; nil while down
	conns    map[*net.TCPConn]struct{} // guarded by mu; the clients'
	number   uint64                    // guarded by mu
	busy     int                       // guarded by mu; requests under way
	closed   bool                      // guarded by mu
	serving  sync.WaitGroup            // listeners and connections
}

// Listen starts a proxy in front of the server at target, a host:port. It passes
// everything on until told otherwise.
func Listen(target string) (*Proxy, error) {
	port, err := heldport.Hold()
	if err != nil {
		return nil, fmt.Errorf("faultproxy: %w", err)
	}
	addr := net.JoinHostPort(heldport.Host, strconv.Itoa(port.Number()))
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("faultproxy: %w", errors.Join(err, port.Release()))
	}
	p := &Proxy{
		addr: addr, port: port, target: target, done: make(chan struct{}),
		listener: l, conns: map[*net.TCPConn]struct{}{},
	}
	p.idle.L = &p.mu
	p.serving.Go(func() { p.accept(l) })
	return p, nil
}

// Addr is where clients connect, as host:port.
func (p *Proxy) Addr() string { return p.addr }

// Handle has hook decide about every request from now on; nil passes them all.
func (p *Proxy) Handle(hook func(Request) Action) {
	p.hooking.Lock() // until a call of the hook before has returned
	defer p.hooking.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hook = hook
}

// Retarget sends connections made from now on to another server.
func (p *Proxy) Retarget(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
}

// Requests returns how many requests have come so far.
func (p *Proxy) Requests() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.number
}

// Cut resets every client's connection. Requests that were passed on still take
// effect.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		reset(c)
	}
}

// Down resets every connection and refuses new ones, until [Proxy.Up].
func (p *Proxy) Down() {
	p.mu.Lock()
	if p.listener != nil {
		_ = p.listener.Close()
		p.listener = nil
	}
	p.mu.Unlock()
	p.Cut()
}

// Up accepts connections again, at the same address.
func (p *Proxy) Up() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil || p.closed {
		return nil
	}
	l, err := net.Listen("tcp", p.addr)
	if err != nil {
		return fmt.Errorf("faultproxy: %w", err)
	}
	p.listener = l
	p.serving.Go(func() { p.accept(l) })
	return nil
}

// Settle waits until no request is under way: all that were delayed or held have
// been delivered. It requires that clients have stopped sending. Requests that
// [Hang] took do not count.
func (p *Proxy) Settle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.busy > 0 {
		p.idle.Wait()
	}
}

// Close ends the proxy and all connections, and waits for its goroutines. It may
// be called more than once.
func (p *Proxy) Close() {
	p.mu.Lock()
	if !p.closed {
		p.closed = true
		close(p.done)
	}
	p.mu.Unlock()
	p.Down()
	p.serving.Wait()
	_ = p.port.Release()
}

// accept serves a listener's connections until it is closed.
func (p *Proxy) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		client := c.(*net.TCPConn)
		p.mu.Lock()
		if p.listener != l { // down meanwhile
			p.mu.Unlock()
			reset(client)
			continue
		}
		p.conns[client] = struct{}{}
		target := p.target
		p.mu.Unlock()
		p.serving.Go(func() {
			p.serve(client, target)
			p.mu.Lock()
			defer p.mu.Unlock()
			delete(p.conns, client)
			reset(client)
		})
	}
}

// serve handles one client's requests, one after the other, until one ends the
// connection.
func (p *Proxy) serve(client *net.TCPConn, target string) {
	c, err := net.DialTimeout("tcp", target, dialTimeout)
	if err != nil {
		return
	}
	defer func() { _ = c.Close() }()
	// A server that hangs must not keep Close from ending.
	stopped := make(chan struct{})
	defer close(stopped)
	p.serving.Go(func() {
		select {
		case <-p.done:
			_ = c.Close()
		case <-stopped:
		}
	})
	s := &session{proxy: p, client: client, server: c, replies: bufio.NewReader(c)}
	for requests := bufio.NewReader(client); ; {
		raw, args, err := readCommand(requests)
		if err != nil {
			return
		}
		if !s.handle(raw, p.decide(args)) {
			return
		}
	}
}

// decide counts a request as under way and asks the hook about it.
func (p *Proxy) decide(args [][]byte) Action {
	p.hooking.Lock()
	defer p.hooking.Unlock()
	p.mu.Lock()
	p.number++
	r := Request{Number: p.number, Args: args}
	hook := p.hook
	p.busy++
	p.mu.Unlock()
	if hook == nil {
		return Pass
	}
	return hook(r)
}

// finished counts a request as under way no more.
func (p *Proxy) finished() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy--; p.busy == 0 {
		p.idle.Broadcast()
	}
}

// pause lets d pass; it reports false if Close ended it.
func (p *Proxy) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-p.done:
		return false
	}
}

// A session is one client's connection and the one to the server that belongs to
// it. One goroutine uses it.
type session struct {
	proxy   *Proxy
	client  *net.TCPConn
	server  net.Conn
	replies *bufio.Reader
}

// handle does with a request what was decided, and reports whether the connection
// goes on.
func (s *session) handle(raw []byte, a Action) bool {
	if a.do == hang {
		s.proxy.finished()
		<-s.proxy.done
		return false
	}
	defer s.proxy.finished()
	switch a.do {
	case cutBefore:
		return false
	case cutInside:
		_, _ = s.server.Write(raw[:len(raw)/2])
		return false
	case answer:
		return s.tell("-" + a.text + "\r\n")
	case holdRequest:
		if !s.proxy.pause(a.delay) {
			return false
		}
	}
	reply, ok := s.ask(raw)
	if ok && a.do == twice {
		reply, ok = s.ask(raw)
	}
	if !ok {
		return false
	}
	switch a.do {
	case cutAfter:
		return false
	case cutReply:
		s.tell(string(reply[:len(reply)/2]))
		return false
	case answerAfter:
		return s.tell("-" + a.text + "\r\n")
	case delayReply:
		if !s.proxy.pause(a.delay) {
			return false
		}
	}
	return s.tell(string(reply))
}

// ask passes a request on and returns the server's reply.
func (s *session) ask(raw []byte) (reply []byte, ok bool) {
	if _, err := s.server.Write(raw); err != nil {
		return nil, false
	}
	reply, err := readReply(s.replies)
	return reply, err == nil
}

func (s *session) tell(reply string) bool {
	_, err := s.client.Write([]byte(reply))
	return err == nil
}

// reset closes a connection so that the peer sees a reset, not an end.
func reset(c *net.TCPConn) {
	_ = c.SetLinger(0)
	_ = c.Close()
}
