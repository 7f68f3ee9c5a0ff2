// This file is what the differential test compares: a store, and the ways to
// tamper with and look at what it holds.

package integration

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/hanzoai/limiters/internal/memstore"
	"github.com/hanzoai/limiters/ratelimit/store"
	"github.com/hanzoai/limiters/testing/redistest"
)

// foreign stands for the text of a key of another type than a string.
const foreign = "(foreign)"

// A held is what one key holds and for how long, -1 for ever.
type held struct {
	Text string
	TTL  time.Duration
}

// A subject is a store under test.
type subject interface {
	apply(b *store.Batch) (store.Reply, error)
	set(key, text string) // foreign makes it another type
	remove(key string)
	contents(keys []string) map[string]held // of the keys that exist
	advance(d time.Duration)
}

// A memory is the memory store, on a clock that only advance moves.
type memory struct {
	*memstore.Store
	now atomic.Int64
}

func newMemory(start time.Time) *memory {
	m := &memory{}
	m.now.Store(start.UnixNano())
	m.Store = memstore.New(m.now.Load)
	return m
}

func (m *memory) apply(b *store.Batch) (r store.Reply, err error) {
	err = m.Apply(context.Background(), b, &r)
	return r, err
}

func (m *memory) set(key, text string) {
	if text == foreign {
		m.SetForeign(key)
		return
	}
	m.Set(key, text)
}

func (m *memory) remove(key string) { m.Delete(key) }

func (m *memory) contents(keys []string) map[string]held {
	found := map[string]held{}
	for _, key := range keys {
		ttl, ok := m.TTL(key)
		if !ok {
			continue
		}
		text, ok := m.Text(key)
		if !ok {
			text = foreign
		}
		found[key] = held{text, ttl}
	}
	return found
}

func (m *memory) advance(d time.Duration) { m.now.Add(int64(d)) }

// A server is the script on a Redis.
type server struct {
	t     *testing.T
	redis *redistest.Server
	store store.Store
	conn  redis.Conn
}

func newServer(t *testing.T, s *redistest.Server) *server {
	return &server{t: t, redis: s, store: openStore(t, s), conn: s.Conn()}
}

func (s *server) apply(b *store.Batch) (r store.Reply, err error) {
	err = s.store.Apply(context.Background(), b, &r)
	return r, err
}

func (s *server) set(key, text string) {
	s.do("DEL", key)
	if text == foreign {
		s.do("RPUSH", key, "x")
		return
	}
	s.do("SET", key, text)
}

func (s *server) remove(key string) { s.do("DEL", key) }

func (s *server) contents(keys []string) map[string]held {
	found := map[string]held{}
	for _, key := range keys {
		kind, err := redis.String(s.conn.Do("TYPE", key))
		s.check(err)
		if kind == "none" {
			continue
		}
		text := foreign
		if kind == "string" {
			text, err = redis.String(s.conn.Do("GET", key))
			s.check(err)
		}
		ttl, err := redis.Int64(s.conn.Do("PTTL", key))
		s.check(err)
		if ttl < 0 {
			found[key] = held{text, -1}
		} else {
			found[key] = held{text, time.Duration(ttl) * time.Millisecond}
		}
	}
	return found
}

func (s *server) advance(d time.Duration) {
	if !s.redis.Advance(d) {
		panic("a real server's time cannot be moved")
	}
}

func (s *server) do(command string, args ...any) {
	_, err := s.conn.Do(command, args...)
	s.check(err)
}

// check ends the test: the server is not what is under test here. It panics
// rather than calling t, for rapid runs the timeline.
func (s *server) check(err error) {
	if err != nil {
		panic(fmt.Sprintf("the %s server: %v", s.redis.Backend(), err))
	}
}
