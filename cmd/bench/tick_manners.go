package main

// This file measures what a tick means for others: how long one script holds
// Redis, and how long another client's PING takes meanwhile.

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/hanzoai/limiters/internal/redisurl"
)

const (
	// mannersEntities bounds this part of a run: so many entities are synced, but at
	// least mannersTicks ticks are made, the first of which read every counter.
	mannersEntities = 400_000
	mannersTicks    = 10
	// slowlogFloor is what Redis notes, in microseconds: every script of some size.
	slowlogFloor = 20
	slowlogSize  = 100_000
)

// A tickManners is what another client notices of ticks.
type tickManners struct {
	scripts         int           // that Redis noted; 0 if it does not tell
	longest, median time.Duration // of a script
	pings           int
	pingP99         time.Duration
}

// manners makes more ticks of each syncer, with a client that pings. It begins at
// the beginning of a window.
func (t *tickRace) manners(ctx context.Context, target redisurl.Target, size int, r *tickResult) error {
	ticks := min(t.o.ticksPerWindow(), max(mannersTicks, mannersEntities/size))
	log, err := openSlowlog(t.info)
	if err != nil {
		r.untold = err.Error()
	}
	defer log.close()
	for i := range t.syncers {
		if err := ctx.Err(); err != nil {
			return err
		}
		log.reset()
		p, err := t.startPinger(target)
		if err != nil {
			return err
		}
		for range ticks {
			t.syncers[i].offer(t.next[i])
			t.next[i]++
			p.ticking.Store(true)
			err = t.syncers[i].sync()
			p.ticking.Store(false)
			if err != nil {
				break
			}
		}
		pings, pingErr := p.stop()
		if err == nil {
			err = pingErr
		}
		if err != nil {
			return fmt.Errorf("%s: %w", tickSyncers[i], err)
		}
		scripts, err := log.scripts()
		if err != nil {
			return err
		}
		r.manners[i] = newTickManners(scripts, pings)
	}
	return nil
}

func newTickManners(scripts, pings []time.Duration) (m tickManners) {
	slices.Sort(scripts)
	slices.Sort(pings)
	if m.scripts = len(scripts); m.scripts > 0 {
		m.longest, m.median = scripts[m.scripts-1], scripts[m.scripts/2]
	}
	if m.pings = len(pings); m.pings > 0 {
		m.pingP99 = pings[min(m.pings-1, m.pings*99/100)]
	}
	return m
}

// A pinger is another client of the same Redis, which asks PING after PING. It
// notes those that a tick overlaps.
type pinger struct {
	conn    redis.Conn
	ticking atomic.Bool
	stopped atomic.Bool
	done    chan error
	pings   []time.Duration // owned by the goroutine until done
}

func (t *tickRace) startPinger(target redisurl.Target) (*pinger, error) {
	conn, err := t.servers.connect(target)
	if err != nil {
		return nil, err
	}
	p := &pinger{conn: conn, done: make(chan error, 1)}
	go func() { p.done <- p.run() }() // stop ends it
	return p, nil
}

func (p *pinger) run() error {
	for !p.stopped.Load() {
		during := p.ticking.Load()
		begin := time.Now()
		if _, err := p.conn.Do("PING"); err != nil {
			return err
		}
		took := time.Since(begin)
		if during || p.ticking.Load() {
			p.pings = append(p.pings, took)
		}
	}
	return nil
}

// stop ends the pinger and returns what it noted.
func (p *pinger) stop() ([]time.Duration, error) {
	p.stopped.Store(true)
	err := <-p.done
	_ = p.conn.Close()
	return p.pings, err
}

// A slowlog has Redis note how long scripts take. One that could not be opened
// notes nothing.
type slowlog struct {
	conn          redis.Conn
	floor, length string // what they were
	open          bool
}

// openSlowlog changes what Redis notes until close.
func openSlowlog(conn redis.Conn) (*slowlog, error) {
	s := &slowlog{conn: conn}
	for name, value := range map[string]*string{"slowlog-log-slower-than": &s.floor, "slowlog-max-len": &s.length} {
		pair, err := redis.Strings(conn.Do("CONFIG", "GET", name))
		if err == nil && len(pair) != 2 {
			err = fmt.Errorf("CONFIG GET %s answers %q", name, pair)
		}
		if err != nil {
			return s, err
		}
		*value = pair[1]
	}
	if _, err := conn.Do("CONFIG", "SET", "slowlog-log-slower-than", slowlogFloor, "slowlog-max-len", slowlogSize); err != nil {
		return s, err
	}
	s.open = true
	return s, nil
}

func (s *slowlog) reset() {
	if s.open {
		_, _ = s.conn.Do("SLOWLOG", "RESET") // what is left over shows as scripts too many
	}
}

// scripts returns how long each script took that Redis noted.
func (s *slowlog) scripts() ([]time.Duration, error) {
	if !s.open {
		return nil, nil
	}
	entries, err := redis.Values(s.conn.Do("SLOWLOG", "GET", slowlogSize))
	if err != nil {
		return nil, err
	}
	return scriptTimes(entries)
}

func (s *slowlog) close() {
	if s.open {
		_, _ = s.conn.Do("CONFIG", "SET", "slowlog-log-slower-than", s.floor, "slowlog-max-len", s.length)
	}
}

// scriptTimes returns the durations of the scripts among what SLOWLOG GET answers:
// for each command an id, a time, its microseconds, and its arguments.
func scriptTimes(entries []any) (times []time.Duration, err error) {
	for _, entry := range entries {
		var id, at, micros int64
		var arguments []string
		fields, err := redis.Values(entry, nil)
		if err != nil {
			return nil, err
		}
		if _, err := redis.Scan(fields, &id, &at, &micros, &arguments); err != nil {
			return nil, err
		}
		if len(arguments) > 0 && (arguments[0] == "EVALSHA" || arguments[0] == "EVAL") {
			times = append(times, time.Duration(micros)*time.Microsecond)
		}
	}
	return times, nil
}
