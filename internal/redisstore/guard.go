package redisstore

// This file reads with suspicion: a peer may announce no more than was asked for,
// may speak another protocol, and may have gone since the connection was last used.

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/hanzoai/limiters/internal/scriptcall"
)

const (
	// maxLine is the longest line of an answer: that of an error.
	maxLine = 1 << 16
	// maxHeader is the longest line that announces something.
	maxHeader = 24
	// maxText is the longest text: the hash of the script is shorter.
	maxText = 1 << 12
)

// errAnnounced is the kind of error that ends an answer which announces too much.
var errAnnounced = errors.New("redisstore: the answer announces more than was asked for")

// A guard is a connection of this package's own. One goroutine uses it at a time;
// interrupt may be called by any.
type guard struct {
	net.Conn          // what is read and written, decrypted
	socket   net.Conn // what is below TLS, else the same

	heard       bool  // something was read
	left        int   // elements that the answer may still announce
	asked       int   // elements that an answer to the next request may hold
	failed      error // of the answer; permanent
	interrupted atomic.Bool
	line        []byte // the beginning of a line that is not read to its end
	length      int    // of the line so far
	skip        int    // bytes left of a text
}

// Write begins a request: its answer may announce what was asked.
func (g *guard) Write(p []byte) (int, error) {
	g.left = g.asked
	return g.Conn.Write(p)
}

// Read passes on what keeps within bounds.
func (g *guard) Read(p []byte) (int, error) {
	if g.failed != nil {
		return 0, g.failed
	}
	n, err := g.Conn.Read(p)
	if n == 0 {
		return n, err
	}
	if !g.heard {
		g.heard = true
		g.failed = scriptcall.ForeignPeer(p[:n])
	}
	if g.failed == nil {
		g.failed = g.scan(p[:n])
	}
	if g.failed != nil {
		return 0, g.failed
	}
	return n, err
}

// scan follows the lines and texts of answers.
func (g *guard) scan(p []byte) error {
	for len(p) > 0 {
		if g.skip > 0 {
			n := min(g.skip, len(p))
			g.skip -= n
			p = p[n:]
			continue
		}
		end := bytes.IndexByte(p, '\n')
		part := p[:end+1]
		if end < 0 {
			part = p
		}
		p = p[len(part):]
		if g.length += len(part); g.length > maxLine {
			return fmt.Errorf("%w: a line of more than %d bytes", errAnnounced, maxLine)
		}
		if g.length == len(part) && part[0] != '*' && part[0] != '$' {
			if end < 0 { // its beginning tells enough
				g.line = append(g.line[:0], part[0])
			} else {
				g.length = 0
			}
			continue
		}
		g.line = append(g.line, part[:min(len(part), maxHeader-len(g.line))]...)
		if end < 0 {
			return nil
		}
		if err := g.announced(g.line); err != nil {
			return err
		}
		g.line, g.length = g.line[:0], 0
	}
	return nil
}

// announced judges a line, of which it gets the beginning.
func (g *guard) announced(line []byte) error {
	kind, most := line[0], maxText
	switch kind {
	case '*':
		most = g.left
	case '$':
	default:
		return nil
	}
	if g.length >= maxHeader {
		return fmt.Errorf("%w: a number of %d digits", errAnnounced, g.length)
	}
	n := 0
	for _, c := range bytes.TrimRight(line[1:], "\r\n") {
		if c < '0' || c > '9' {
			return nil // a null, or malformed, which the client tells
		}
		if n = 10*n + int(c-'0'); n > most {
			return fmt.Errorf("%w: %q and at most %d were expected", errAnnounced, bytes.TrimSpace(line), most)
		}
	}
	if kind == '*' {
		g.left -= n
	} else {
		g.skip = n + len("\r\n")
	}
	return nil
}

// SetReadDeadline sets when reading ends, unless it has been interrupted.
func (g *guard) SetReadDeadline(t time.Time) error {
	err := g.Conn.SetReadDeadline(t)
	if g.interrupted.Load() {
		return g.Conn.SetReadDeadline(longAgo)
	}
	return err
}

// SetWriteDeadline sets when writing ends, unless it has been interrupted.
func (g *guard) SetWriteDeadline(t time.Time) error {
	err := g.Conn.SetWriteDeadline(t)
	if g.interrupted.Load() {
		return g.Conn.SetWriteDeadline(longAgo)
	}
	return err
}

// interrupt ends what is being read or written, for good.
func (g *guard) interrupt() {
	g.interrupted.Store(true)
	_ = g.Conn.SetDeadline(longAgo)
}

var longAgo = time.Unix(1, 0)

// errGone says that the peer has closed an idle connection, or sent what nobody asked
// for. It is found before anything is sent.
var errGone = errors.New("redisstore: the peer closed the connection while it was idle")

// check returns errGone if it is certain that an idle connection is of no more use. It
// does not wait for the peer.
func (g *guard) check() error {
	// The deadline of the last answer is over.
	if g.interrupted.Load() || g.Conn.SetReadDeadline(time.Time{}) != nil {
		return errGone
	}
	switch pending(g.socket) {
	case peerClosed:
		return errGone
	case peerSilent:
		return nil
	}
	if g.Conn == g.socket {
		return errGone
	}
	// What waits may be TLS' own: a ticket, or the notice that it closes.
	if g.Conn.SetReadDeadline(time.Now().Add(2*time.Millisecond)) != nil {
		return errGone
	}
	var one [1]byte
	_, err := g.Conn.Read(one[:])
	var network net.Error
	if errors.As(err, &network) && network.Timeout() {
		return nil
	}
	return errGone
}

// What waits to be read on a socket.
const (
	peerSilent = iota // nothing, or it cannot be told
	peerSent
	peerClosed
)
