// This file makes connections: one deadline for all of TCP, TLS, AUTH, SELECT
// and the loading of the script.

package redisstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/hanzoai/limiters/internal/redisurl"
	"github.com/hanzoai/limiters/internal/scriptcall"
	"github.com/hanzoai/limiters/lua"
	"github.com/hanzoai/limiters/ratelimit/store"
)

// Timeouts bound an attempt. A zero or negative one stands for its default:
// there is no unbounded wait.
type Timeouts struct {
	Connect time.Duration // for all it takes to make a connection; 1 s
	Reply   time.Duration // from a connection to the answer; 100 ms
	Write   time.Duration // for a write to the socket; Reply
}

// Options are what [NewPool] needs beyond an address.
type Options struct {
	Timeouts
	// TLS is cloned for every connection of a rediss:// target; nil is Go's
	// defaults. A ServerName that is empty becomes the target's host.
	TLS *tls.Config
	// Dial makes the transport beneath TLS; nil is net.Dialer's DialContext.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Warn is told, once, that a proxy spreads a batch's keys over several servers;
	// may be nil.
	Warn func(text string)
}

// withDefaults fills in what is not set.
func (t Timeouts) withDefaults() Timeouts {
	if t.Connect <= 0 {
		t.Connect = time.Second
	}
	if t.Reply <= 0 {
		t.Reply = 100 * time.Millisecond
	}
	if t.Write <= 0 {
		t.Write = t.Reply
	}
	return t
}

// NewPool returns a pool that connects to target. It holds one idle connection,
// because a store uses one at a time. Before use it looks whether the peer closed that
// one, and asks nothing: a question doubles the wait for a server that hangs. It never
// waits for a free one.
func NewPool(target redisurl.Target, options Options) *redis.Pool {
	d := newDialer(target, options)
	d.asked = math.MaxInt // who uses the pool does not say
	return d.pool()
}

// A dialer makes connections to one target.
type dialer struct {
	target  redisurl.Target // immutable
	options Options         // immutable
	asked   int             // immutable; elements of an answer, until told otherwise

	// current is the connection that was made or borrowed last: with one user at a
	// time it is the one in use.
	current atomic.Pointer[guard]
	// noLoad is until when connections do without SCRIPT LOAD, Unix time in ns,
	// because the peer closes over it, as some proxies do.
	noLoad atomic.Int64
	// noPing says that the last connection broke over PING instead; the next one does
	// without both.
	noPing atomic.Bool
}

// noLoadFor is for how long a peer that closes over SCRIPT LOAD is not asked again.
const noLoadFor = 10 * time.Minute

func newDialer(target redisurl.Target, options Options) *dialer {
	options.Timeouts = options.withDefaults()
	return &dialer{target: target, options: options, asked: 1}
}

func (d *dialer) pool() *redis.Pool {
	return &redis.Pool{MaxIdle: 1, DialContext: d.dial, TestOnBorrow: func(c redis.Conn, _ time.Time) error {
		g := c.(*connection).guard
		d.current.Store(g)
		return g.check()
	}}
}

// A connection is what the pool holds.
type connection struct {
	redis.ConnWithTimeout
	guard *guard
}

// dial makes a connection, ready for EVALSHA, within the connect timeout and ctx. The
// script is loaded; a peer that closes over that is asked for nothing but a sign of
// life, on another connection.
func (d *dialer) dial(ctx context.Context) (redis.Conn, error) {
	deadline := time.Now().Add(d.options.Connect)
	if t, ok := ctx.Deadline(); ok && t.Before(deadline) {
		deadline = t
	}
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	load := time.Now().UnixNano() >= d.noLoad.Load()
	conn, err := d.dialOnce(ctx, deadline, load)
	if errors.As(err, new(closedOverLoad)) {
		d.noLoad.Store(time.Now().Add(noLoadFor).UnixNano())
		conn, err = d.dialOnce(ctx, deadline, false)
	}
	if err != nil {
		return nil, err
	}
	return conn, nil
}

// dialOnce makes a connection, and loads the script if it should.
func (d *dialer) dialOnce(ctx context.Context, deadline time.Time, load bool) (*connection, error) {
	g, err := d.dialGuarded(ctx)
	if err != nil {
		return nil, err
	}
	conn := &connection{redis.NewConn(g, d.options.Reply, d.options.Write).(redis.ConnWithTimeout), g}
	if err := d.prepare(conn, deadline, load); err != nil {
		_ = conn.Close()
		if !g.heard {
			err = scriptcall.Explain(err, d.target.TLS)
		}
		return nil, err
	}
	d.current.Store(g)
	return conn, nil
}

// dialGuarded makes the transport.
func (d *dialer) dialGuarded(ctx context.Context) (*guard, error) {
	dial := d.options.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	socket, err := dial(ctx, d.target.Network, d.target.Address)
	if err != nil {
		return nil, err
	}
	if !d.target.TLS {
		return &guard{Conn: socket, socket: socket, asked: d.asked}, nil
	}
	config := d.options.TLS.Clone()
	if config == nil {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if config.ServerName == "" {
		config.ServerName = d.target.Host()
	}
	encrypted := tls.Client(socket, config)
	if err := encrypted.HandshakeContext(ctx); err != nil {
		_ = socket.Close()
		return nil, scriptcall.Explain(err, true)
	}
	return &guard{Conn: encrypted, socket: socket, asked: d.asked}, nil
}

// A closedOverLoad is the error of a connection that its peer closed instead of
// answering SCRIPT LOAD.
type closedOverLoad struct{ error }

func (e closedOverLoad) Unwrap() error { return e.error }

// prepare authenticates, selects the database, and loads the script if it should.
func (d *dialer) prepare(conn *connection, deadline time.Time, load bool) error {
	do := func(command string, args ...any) error {
		_, err := redis.DoWithTimeout(conn, max(time.Until(deadline), time.Nanosecond), command, args...)
		return err
	}
	var auth []any
	if d.target.User != "" {
		auth = append(auth, d.target.User)
	}
	if len(auth) > 0 || d.target.Password != "" {
		if err := do("AUTH", append(auth, d.target.Password)...); err != nil {
			return fmt.Errorf("AUTH: %w", d.said(err))
		}
	}
	if d.target.DB != 0 {
		if err := do("SELECT", d.target.DB); err != nil {
			return fmt.Errorf("SELECT %d: %w", d.target.DB, d.said(err))
		}
	}
	if d.noPing.Swap(false) {
		return nil
	}
	if !load {
		err := do("PING")
		d.noPing.Store(causeOf(err) == store.CauseClosed)
		if answered(err) {
			return nil
		}
		return fmt.Errorf("PING: %w", d.said(err))
	}
	err := do("SCRIPT", "LOAD", lua.Source)
	if answered(err) {
		return nil // loaded; or refused, and then EVAL will do
	}
	closed := causeOf(err) == store.CauseClosed
	if err = fmt.Errorf("SCRIPT LOAD: %w", d.said(err)); closed {
		return closedOverLoad{err}
	}
	return err
}

// answered reports that a peer answered, and is not to be given up for its answer.
func answered(err error) bool {
	return err == nil || errors.As(err, new(redis.Error)) && !lost(err)
}

// said is an error without the secrets that a server may have quoted in it.
func (d *dialer) said(err error) error {
	return said(err, d.target.User, d.target.Password)
}

// lost reports that an error reply is a server's last word, or one that says that
// another server had better be asked.
func lost(err error) bool {
	r, ok := refusalOf(err)
	return ok && !r.Keep
}
