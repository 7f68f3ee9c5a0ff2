package ratelimit

// This file adapts a partition to what its store can do: how long a reply is waited
// for, and how many entities a batch takes.

import (
	"time"
)

// smallestBatch is how many entities a batch may take however late replies are.
const smallestBatch = 32

// A pace is how long a partition waits for a reply, and how much it says at once. A
// batch that got none in time is waited for longer each time: nobody else waits for it,
// and where the way to the store is slower than the timeout no other wait ever ends. The
// partition's mu guards it.
type pace struct {
	timeout   time.Duration // immutable; how long the stores that New makes wait by themselves
	longest   time.Duration // immutable; patience ends here
	batchSize int           // immutable; Config.MaxKeysPerScript

	patience time.Duration // of the next attempt; 0 leaves it to the store
	entities int           // that the next batch may take
	late     bool          // an attempt at the batch under way got no reply in time
	lateTook time.Duration // of the last batch, if it was late; else 0
}

func paceOf(cfg Config) pace {
	return pace{
		timeout:   max(cfg.GlobalReadTimeout, cfg.GlobalWriteTimeout),
		longest:   max(cfg.TickInterval, time.Second),
		batchSize: cfg.MaxKeysPerScript,
		entities:  cfg.MaxKeysPerScript,
	}
}

// missed notes an attempt that was sent and got no answer.
func (c *pace) missed(timedOut bool) {
	c.patience = min(2*max(c.patience, c.timeout), c.longest)
	c.late = c.late || timedOut
}

// answered notes that a batch of so many entities was answered, the last attempt at it
// within took. If that was nearly too long for the store's own timeout, the next batch is
// given more time from the start. If an attempt was too long, the next batch takes half
// as many entities, and those after it ever more again; but as many as ever at once if
// fewer made it no faster: then it is the way that is long.
func (c *pace) answered(entities int, took time.Duration) {
	c.patience = 0
	if took > c.timeout/2 {
		c.patience = min(2*took, c.longest)
	}
	switch {
	case c.late:
		c.late, c.lateTook = false, took
		c.entities = min(c.batchSize, max(smallestBatch, min(c.entities, entities)/2))
		return
	case 4*took > 3*c.lateTook && c.lateTook > 0:
		c.entities = c.batchSize
	default:
		c.entities = min(c.batchSize, c.entities+c.entities/4+1)
	}
	c.lateTook = 0
}

// gaveUp notes that the batch under way is sent no more.
func (c *pace) gaveUp() { c.late = false }
