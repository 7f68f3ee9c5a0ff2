// This file makes connections: one deadline for all of TCP, TLS, AUTH, SELECT
// and the loading of the script.

package redisstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/hanzoai/limiters/internal/redisurl"
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
// because a store uses one at a time; it tests none before use, because a test
// doubles the wait for a server that hangs, and a dead connection shows at the
// first use anyhow; and it never waits for a free one.
func NewPool(target redisurl.Target, options Options) *redis.Pool {
	options.Timeouts = options.withDefaults()
	d := &dialer{target: target, options: options}
	return &redis.Pool{MaxIdle: 1, DialContext: d.dial}
}

// A dialer makes connections to one target.
type dialer struct {
	target  redisurl.Target // immutable
	options Options         // immutable
	// noLoad says that the last connection broke over SCRIPT LOAD, as behind some
	// proxies; then the next one does without, and learns of NOSCRIPT instead.
	noLoad atomic.Bool
}

// dial makes a connection, ready for EVALSHA, within the connect timeout and ctx.
func (d *dialer) dial(ctx context.Context) (redis.Conn, error) {
	deadline := time.Now().Add(d.options.Connect)
	if t, ok := ctx.Deadline(); ok && t.Before(deadline) {
		deadline = t
	}
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	socket, err := d.dialSocket(ctx)
	if err != nil {
		return nil, err
	}
	conn := redis.NewConn(socket, d.options.Reply, d.options.Write)
	if err := d.prepare(conn, deadline); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// dialSocket makes the transport.
func (d *dialer) dialSocket(ctx context.Context) (net.Conn, error) {
	dial := d.options.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	socket, err := dial(ctx, d.target.Network, d.target.Address)
	if err != nil || !d.target.TLS {
		return socket, err
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
		return nil, err
	}
	return encrypted, nil
}

// prepare authenticates, selects the database and loads the script.
func (d *dialer) prepare(conn redis.Conn, deadline time.Time) error {
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
			return fmt.Errorf("AUTH: %w", err)
		}
	}
	if d.target.DB != 0 {
		if err := do("SELECT", d.target.DB); err != nil {
			return fmt.Errorf("SELECT %d: %w", d.target.DB, err)
		}
	}
	if d.noLoad.Swap(false) {
		return nil
	}
	err := do("SCRIPT", "LOAD", lua.Source)
	answered := err == nil || errors.As(err, new(redis.Error))
	if answered && !lost(err) {
		return nil // loaded; or refused, and then EVAL will do
	}
	d.noLoad.Store(!answered && causeOf(err) == store.CauseClosed)
	return fmt.Errorf("SCRIPT LOAD: %w", err)
}

// lost reports that an error reply is a server's last word, or one that says that
// another server had better be asked.
func lost(err error) bool {
	r, ok := refusalOf(err)
	return ok && !r.Keep
}
