package backend

// This file is the backend on Redis servers.

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/hanzoai/limiters/internal/redisstore"
	"github.com/hanzoai/limiters/internal/redisurl"
	"github.com/hanzoai/limiters/ratelimit"
)

// readTimeout bounds each command that reads counts back or deletes them. They are
// the bench's own and need not be quick.
const readTimeout = 30 * time.Second

// Servers is one Redis for each partition.
type Servers struct {
	targets []redisurl.Target
	meter   Meter
	pools   []*redis.Pool // of all nodes
	own     []redis.Conn  // the bench's own, one to each server
}

// NewServers returns the backend on these servers, once it has connected to each.
func NewServers(targets []redisurl.Target) (*Servers, error) {
	s := &Servers{targets: targets, own: make([]redis.Conn, len(targets))}
	var errs []error
	for i, target := range targets {
		var err error
		if s.own[i], err = s.Connect(target); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(append(errs, s.Close())...)
	}
	return s, nil
}

func (s *Servers) Kind() string { return "redis" }

func (s *Servers) Partitions() int { return len(s.targets) }

// Options gives a node connections of its own, made as the library makes them when it
// is given URLs, whose bytes are counted.
func (s *Servers) Options(config ratelimit.Config) ([]ratelimit.Option, error) {
	options := redisstore.Options{
		Timeouts: redisstore.Timeouts{
			Connect: config.ConnectTimeout,
			Reply:   max(config.GlobalReadTimeout, config.GlobalWriteTimeout),
			Write:   config.GlobalWriteTimeout,
		},
		Dial: s.meter.Dial,
	}
	pools := make([]ratelimit.Pool, len(s.targets))
	for i, target := range s.targets {
		pools[i] = ratelimit.Pool{Name: target.Name, Pool: redisstore.NewPool(target, options)}
		s.pools = append(s.pools, pools[i].Pool)
	}
	return []ratelimit.Option{ratelimit.WithPools(pools...)}, nil
}

func (s *Servers) Bytes() (sent, received uint64) {
	return s.meter.Bytes()
}

// Read asks every server, for it cannot know which one owns a key.
func (s *Servers) Read(keys []string, totals []uint64) error {
	arguments := make([]any, len(keys))
	for i, key := range keys {
		arguments[i] = key
	}
	return s.each(func(conn redis.Conn) error {
		values, err := redis.Values(conn.Do("MGET", arguments...))
		if err != nil {
			return err
		}
		for i, value := range values {
			if value == nil {
				continue
			}
			total, err := redis.Uint64(value, nil)
			if err != nil {
				return fmt.Errorf("%s holds no valid count: %w", keys[i], err)
			}
			totals[i] += total
		}
		return nil
	})
}

// Clean deletes the keys under a prefix, which is a run's own.
func (s *Servers) Clean(prefix string) error {
	pattern := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(prefix) + ":*"
	return s.each(func(conn redis.Conn) error {
		for cursor := "0"; ; {
			var keys []any
			reply, err := redis.Values(conn.Do("SCAN", cursor, "MATCH", pattern, "COUNT", 1000))
			if err == nil {
				_, err = redis.Scan(reply, &cursor, &keys)
			}
			if err == nil && len(keys) > 0 {
				_, err = conn.Do("UNLINK", keys...)
			}
			if err != nil {
				return fmt.Errorf("deleting the run's keys: %w", err)
			}
			if cursor == "0" {
				return nil
			}
		}
	})
}

func (s *Servers) Close() error {
	var errs []error
	for _, pool := range s.pools {
		errs = append(errs, pool.Close())
	}
	for _, conn := range s.own {
		if conn != nil {
			errs = append(errs, conn.Close())
		}
	}
	return errors.Join(errs...)
}

// each does something on the bench's own connection to every server.
func (s *Servers) each(do func(conn redis.Conn) error) error {
	for i, target := range s.targets {
		if s.own[i] == nil {
			conn, err := s.Connect(target)
			if err != nil {
				return err
			}
			s.own[i] = conn
		}
		if err := do(s.own[i]); err != nil {
			return fmt.Errorf("%v: %w", target, err)
		}
	}
	return nil
}

// Connect makes a connection whose bytes nobody counts.
func (s *Servers) Connect(target redisurl.Target) (redis.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	conn, err := Dial(ctx, target, new(net.Dialer).DialContext)
	if err != nil {
		return nil, fmt.Errorf("%v: %w", target, err)
	}
	return conn, nil
}

// Dial connects to a server and logs in, as redigo does by itself. Everything is
// bounded by readTimeout.
func Dial(ctx context.Context, target redisurl.Target, connect func(ctx context.Context, network, address string) (net.Conn, error)) (redis.Conn, error) {
	return redis.DialContext(ctx, target.Network, target.Address,
		redis.DialContextFunc(connect),
		redis.DialUseTLS(target.TLS),
		redis.DialTLSHandshakeTimeout(readTimeout),
		redis.DialUsername(target.User),
		redis.DialPassword(target.Password),
		redis.DialDatabase(target.DB),
		redis.DialReadTimeout(readTimeout),
		redis.DialWriteTimeout(readTimeout),
	)
}
