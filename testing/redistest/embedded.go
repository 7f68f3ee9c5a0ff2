// This file is the backend that is always there: miniredis, in this process.

package redistest

import (
	"errors"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/hanzoai/limiters/internal/heldport"
)

// frozenStart is the time at which a frozen server starts.
var frozenStart = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// An embedded server has a time that only FastForward moves; unless it is frozen,
// a goroutine lets it follow the real time.
type embedded struct {
	server *miniredis.Miniredis
	port   *heldport.Port // held while the server is down, too

	mu      sync.Mutex
	now     time.Time // guarded by mu; of a frozen server
	frozen  bool
	ended   chan struct{}
	endOnce sync.Once
}

func startEmbedded(_ testing.TB, s *settings) (instance, string, error) {
	if s.real {
		return nil, "", errPassed
	}
	port, err := heldport.Hold()
	if err != nil {
		return nil, "", err
	}
	e := &embedded{server: miniredis.NewMiniRedis(), port: port, now: frozenStart, frozen: s.frozen, ended: make(chan struct{})}
	if err := e.server.StartAddr(net.JoinHostPort(heldport.Host, strconv.Itoa(port.Number()))); err != nil {
		return nil, "", errors.Join(err, port.Release())
	}
	if e.frozen {
		e.server.SetTime(e.now)
	} else {
		go e.follow(time.Now()) // ends with stop
	}
	describe(Embedded, "miniredis")
	return e, "redis://" + e.server.Addr(), nil
}

// follow expires keys as real time passes.
func (e *embedded) follow(last time.Time) {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-e.ended:
			return
		case now := <-ticker.C:
			e.server.FastForward(now.Sub(last))
			last = now
		}
	}
}

func (e *embedded) stop() {
	e.endOnce.Do(func() {
		close(e.ended)
		e.server.Close()
		_ = e.port.Release()
	})
}

func (e *embedded) kill() error {
	e.server.Close()
	return nil
}

func (e *embedded) restart() error { return e.server.Restart() }

func (e *embedded) pause() error  { return errNot }
func (e *embedded) resume() error { return errNot }

func (e *embedded) advance(d time.Duration) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.server.FastForward(d)
	if e.frozen {
		e.now = e.now.Add(d)
		e.server.SetTime(e.now)
	}
	return nil
}

// Miniredis returns the server behind an embedded one; nil for every other. Use
// it for what only miniredis can do, such as answering errors on demand.
func (s *Server) Miniredis() *miniredis.Miniredis {
	if e, ok := s.instance.(*embedded); ok {
		return e.server
	}
	return nil
}
