package ratelimit

// This file makes sure that the stores can be reached.

import (
	"context"
	"errors"

	"github.com/hanzoai/limiters/internal/clock"
)

// Ping makes a round trip to every partition, all at once, and returns nil if each answered:
// a service may refuse to start without, though the limiter would not mind. It changes
// nothing, on no counter. The error joins a [*PartitionError] for each partition that did
// not answer within its timeouts and ctx; after Close it is [ErrClosed]. Ping waits for the
// script under way. It is safe for concurrent use.
func (l *Limiter) Ping(ctx context.Context) error {
	if l.closing.begun() {
		return ErrClosed
	}
	errs := make(chan error, len(l.partitions))
	for _, p := range l.partitions {
		go func() { errs <- p.ping(ctx) }() // ends with the round trip
	}
	var failed []error
	for range l.partitions {
		failed = append(failed, <-errs)
	}
	return errors.Join(failed...)
}

// ping makes one round trip.
func (p *partition) ping(ctx context.Context) error {
	fail := func(err error) error { return &PartitionError{Partition: p.name, Err: err} }
	if err := ctx.Err(); err != nil {
		return fail(err)
	}
	select {
	case <-p.turn:
	case <-ctx.Done():
		return fail(ctx.Err())
	}
	defer p.endTurn()
	if err := p.question(clock.AtOnce(ctx)); err != nil {
		return fail(err)
	}
	return nil
}
