package backend

// This file measures the bytes on the connections to Redis.

import (
	"context"
	"net"
	"sync/atomic"
)

// A Meter counts what passes through the connections it dials. All methods may be
// called at any time from any goroutine.
type Meter struct {
	dialer         net.Dialer
	sent, received atomic.Uint64 // bytes
}

// Bytes returns what was sent and received so far.
func (m *Meter) Bytes() (sent, received uint64) { return m.sent.Load(), m.received.Load() }

// Dial connects as net.Dialer does, and counts.
func (m *Meter) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := m.dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &meteredConn{Conn: conn, meter: m}, nil
}

// A meteredConn is a connection that counts into its meter.
type meteredConn struct {
	net.Conn
	meter *Meter
}

func (c *meteredConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.meter.received.Add(uint64(n))
	return n, err
}

func (c *meteredConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.meter.sent.Add(uint64(n))
	return n, err
}
