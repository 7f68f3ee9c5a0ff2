package backend

import (
	"io"
	"net"
	"testing"
)

func TestTheMeterCountsBothWays(t *testing.T) {
	t.Parallel()
	var m Meter
	near, far := net.Pipe()
	conn := &meteredConn{Conn: near, meter: &m}
	done := make(chan error, 1)
	go func() {
		_, err := io.ReadFull(far, make([]byte, 5))
		if err == nil {
			_, err = far.Write([]byte("abc"))
		}
		done <- err
	}()
	if _, err := conn.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if sent, received := m.sent.Load(), m.received.Load(); sent != 5 || received != 3 {
		t.Errorf("sent %d, received %d bytes; want 5, 3", sent, received)
	}
	conn.Close()
	if _, err := conn.Write([]byte("lost")); err == nil || m.sent.Load() != 5 {
		t.Errorf("after Close: error %v, %d bytes sent; want an error and 5", err, m.sent.Load())
	}
}
