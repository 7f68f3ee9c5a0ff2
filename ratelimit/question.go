package ratelimit

// This file asks a partition without traffic whether it is there.

import (
	"context"
	"fmt"
	"time"

	"github.com/hanzoai/limiters/internal/level"
	"github.com/hanzoai/limiters/ratelimit/store"
)

// questionInterval is how long a partition without traffic is left alone. One whose last
// attempt failed is asked at every tick.
const questionInterval = 10 * time.Second

// askIfIdle asks if the partition has not been asked for so long, or never was. Silence is
// no failure, and no health either. It requires the turn.
func (p *partition) askIfIdle(ctx context.Context, lowest rank) error {
	if lowest > rankIdle || p.l.closing.begun() {
		return nil
	}
	now := p.l.readNow()
	p.mu.Lock()
	h := &p.health
	due := !h.tried || h.failing > 0 || level.Elapsed(now.mono, h.askedAt) >= int64(questionInterval)
	p.mu.Unlock()
	if !due {
		return nil
	}
	return p.question(ctx)
}

// question makes a round trip that changes nothing and leaves no trace, and notes how it
// ended. It requires the turn.
func (p *partition) question(ctx context.Context) error {
	look := p.neighbors.batch // a look like theirs, at nothing
	look.Reads = nil
	reply := store.Reply{Number: 1}
	sent := p.l.readNow()
	err := p.store.Apply(ctx, &look, &reply)
	if err == nil && (reply.Number != 0 || reply.Outcome != store.Looked) {
		err = &store.Error{
			Step: store.StepDecode, Cause: store.CauseMalformed,
			Err: fmt.Errorf("a look was answered with number %d and outcome %d", reply.Number, reply.Outcome),
		}
	}
	now := p.l.readNow()
	p.mu.Lock()
	if !p.settled {
		p.attemptedLocked(err, sent, now)
	}
	p.mu.Unlock()
	return err
}

// asked returns how often the partition was asked for anything.
func (p *partition) asked() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.health.asked
}
