package tick

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
	// mannersEntities bounds the ticks beside a pinging client: so many entities are
	// synced, but at least mannersTicks ticks are made.
	mannersEntities = 400_000
	mannersTicks    = 10
	// slowlogFloor is what Redis notes, in microseconds: every script of some size.
	slowlogFloor = 20
	slowlogSize  = 100_000
	// pingPause lies between two pings, so that they do not keep a core busy.
	pingPause = 100 * time.Microsecond
)

// A manners is what another client notices of ticks.
type manners struct {
	scripts         int           // that Redis noted; 0 if it does not tell
	longest, median time.Duration // of a script
	p99             time.Duration // of a script
	pings           int
	pingP99         time.Duration
}

// manners makes more ticks: ours alone for a window, to see how long scripts take
// with nobody in their way, and then each syncer's beside a client that pings. Both
// begin at the beginning of a window.
func (t *race) manners(ctx context.Context, target redisurl.Target, size int, r *result) error {
	scripts, err := t.scripts(r)
	if err != nil {
		return err
	}
	ticks := min(t.o.ticksPerWindow(), max(mannersTicks, mannersEntities/size))
	for i := range t.syncers {
		if err := ctx.Err(); err != nil {
			return err
		}
		pings, err := t.pinged(i, ticks, target)
		if err != nil {
			return err
		}
		r.manners[i] = newManners(nil, pings)
		if i == 0 {
			r.manners[i] = newManners(scripts, pings)
		}
	}
	return nil
}

// scripts makes a window of our ticks and returns how long each script took.
func (t *race) scripts(r *result) ([]time.Duration, error) {
	log, err := openSlowlog(t.info)
	defer log.close()
	if err != nil {
		r.untold = err.Error()
	}
	log.reset()
	for range t.o.ticksPerWindow() {
		if err := t.step(0); err != nil {
			return nil, err
		}
	}
	return log.scripts()
}

// pinged makes a syncer's next ticks beside a client that pings, and returns how
// long that waited.
func (t *race) pinged(i, ticks int, target redisurl.Target) ([]time.Duration, error) {
	p, err := t.startPinger(target)
	if err != nil {
		return nil, err
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
	pings, failed := p.stop()
	if err == nil {
		err = failed
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", syncers[i], err)
	}
	return pings, nil
}

func newManners(scripts, pings []time.Duration) (m manners) {
	slices.Sort(scripts)
	slices.Sort(pings)
	if m.scripts = len(scripts); m.scripts > 0 {
		m.longest, m.median, m.p99 = scripts[m.scripts-1], scripts[m.scripts/2], percentile99(scripts)
	}
	if m.pings = len(pings); m.pings > 0 {
		m.pingP99 = percentile99(pings)
	}
	return m
}

// percentile99 is the value that a hundredth of the sorted values exceeds.
func percentile99(sorted []time.Duration) time.Duration {
	return sorted[min(len(sorted)-1, len(sorted)*99/100)]
}

// A pinger is another client of the same Redis, which asks PING now and
// again. It notes those that a tick overlaps.
type pinger struct {
	conn    redis.Conn
	ticking atomic.Bool
	stopped atomic.Bool
	done    chan error
	pings   []time.Duration // owned by the goroutine until done
}

func (t *race) startPinger(target redisurl.Target) (*pinger, error) {
	conn, err := t.servers.Connect(target)
	if err != nil {
		return nil, err
	}
	p := &pinger{conn: conn, done: make(chan error, 1)}
	go func() { p.done <- p.run() }() // stop ends it
	return p, nil
}

func (p *pinger) run() error {
	for ; !p.stopped.Load(); time.Sleep(pingPause) {
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
