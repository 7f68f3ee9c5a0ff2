package tick

// This file is what a tick is compared with: plain pipelines, written with the same
// client library and as carefully as one would: keys are made once per epoch.

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/hanzoai/limiters/cmd/bench/internal/backend"
	"github.com/hanzoai/limiters/internal/level"
	"github.com/hanzoai/limiters/internal/redisurl"
)

// The baselines. "every" is as fresh as the library: each entity's counters are
// read in each tick. "tiered" reads them only as often as the entity's tier asks,
// and is as stale in between.
const (
	baselineEvery  = "every"
	baselineTiered = "tiered"
)

// A pipelined is the syncer that a baseline is.
type pipelined struct {
	o      *options
	tiered bool
	prefix string
	names  []string
	ttl    any // of a counter, seconds
	meter  backend.Meter
	conn   redis.Conn
	trips  uint64

	now        time.Time
	epoch      int64
	curr, prev []any // keys of epoch, and of the one before, made once per epoch
	entities   []pipelinedEntity
}

// A pipelinedEntity is what a baseline knows of one entity.
type pipelinedEntity struct {
	pending    uint64 // units since the last tick
	curr, prev int64  // totals as last read
	estimate   float64
	local      uint64 // units since the totals were read
	readAt     time.Time
	reads      bool // in this tick
}

// newPipelined returns a baseline whose time begins at start.
func newPipelined(o *options, target redisurl.Target, prefix string, names []string, start time.Time, baseline string) (*pipelined, error) {
	p := &pipelined{
		o: o, tiered: baseline == baselineTiered, prefix: prefix, names: names, ttl: int64(2 * o.window / time.Second),
		now: start, entities: make([]pipelinedEntity, len(names)),
	}
	var err error
	p.conn, err = backend.Dial(context.Background(), target, p.meter.Dial)
	return p, err
}

func (p *pipelined) offer(tick int) {
	for i := range p.entities {
		units := unitsOf(i, tick, p.o.ticksPerWindow())
		p.entities[i].pending += units
		p.entities[i].local += units
	}
}

// sync sends one pipeline for all entities and reads its replies.
func (p *pipelined) sync() error {
	p.now = p.now.Add(p.o.tick)
	p.makeKeys()
	if err := p.send(); err != nil {
		return err
	}
	if err := p.conn.Flush(); err != nil {
		return err
	}
	p.trips++
	return p.receive()
}

// makeKeys makes the keys of an epoch when it begins.
func (p *pipelined) makeKeys() {
	epoch := p.now.UnixNano() / int64(p.o.window)
	if epoch == p.epoch {
		return
	}
	p.epoch, p.curr, p.prev = epoch, p.prev, p.curr
	if p.prev == nil {
		p.prev = p.keysOf(nil, epoch-1)
	}
	p.curr = p.keysOf(p.curr, epoch)
}

func (p *pipelined) keysOf(keys []any, epoch int64) []any {
	keys = keys[:0]
	for _, name := range p.names {
		keys = append(keys, fmt.Sprintf("%s:%s:%d", p.prefix, name, epoch))
	}
	return keys
}

func (p *pipelined) send() error {
	for i := range p.entities {
		e := &p.entities[i]
		e.reads = !p.tiered || e.due(p.now, p.o.window)
		if err := p.conn.Send("INCRBY", p.curr[i], int64(e.pending)); err != nil {
			return err
		}
		if err := p.conn.Send("EXPIRE", p.curr[i], p.ttl); err != nil {
			return err
		}
		if !e.reads {
			continue
		}
		if err := p.conn.Send("MGET", p.curr[i], p.prev[i]); err != nil {
			return err
		}
	}
	return nil
}

func (p *pipelined) receive() error {
	progress := float64(p.now.UnixNano()%int64(p.o.window)) / float64(p.o.window)
	for i := range p.entities {
		e := &p.entities[i]
		if _, err := redis.Int64(p.conn.Receive()); err != nil {
			return err
		}
		if _, err := redis.Int64(p.conn.Receive()); err != nil {
			return err
		}
		e.pending = 0
		if !e.reads {
			continue
		}
		totals, err := redis.Values(p.conn.Receive())
		if err != nil {
			return err
		}
		if e.curr, err = total(totals[0]); err != nil {
			return err
		}
		if e.prev, err = total(totals[1]); err != nil {
			return err
		}
		e.estimate, e.local, e.readAt = float64(e.prev)*(1-progress)+float64(e.curr), 0, p.now
	}
	return nil
}

// total is a counter's value; one that is not there is 0.
func total(value any) (int64, error) {
	n, err := redis.Int64(value, nil)
	if errors.Is(err, redis.ErrNil) {
		return 0, nil
	}
	return n, err
}

// due reports whether the document's tiers ask for a read: the tier of what the
// entity counts as now, against the age of its last read; sync is window / 4.
func (e *pipelinedEntity) due(now time.Time, window time.Duration) bool {
	if e.readAt.IsZero() {
		return true
	}
	age, sync := now.Sub(e.readAt), window/4
	leaked := threshold * float64(age) / float64(window)
	switch level.TierOf((max(0, e.estimate-leaked) + float64(e.local)) / threshold) {
	case level.Idle:
		return false
	case level.Low:
		return age >= 4*sync
	case level.Normal:
		return age >= sync
	default:
		return age >= sync/2
	}
}

func (p *pipelined) bytes() (sent, received uint64) {
	return p.meter.Bytes()
}

func (p *pipelined) roundTrips() uint64 { return p.trips }

func (p *pipelined) close() error { return p.conn.Close() }
