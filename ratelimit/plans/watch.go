package plans

// This file reads the file again and again.

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// Run refreshes every interval, a tenth more or less, until ctx ends, and returns ctx's error;
// another one only if the interval is not positive. A file that cannot be read, or is wrong, is
// logged once and counted, and what is in force stays. Run it in a goroutine of its own.
func (p *Plans) Run(ctx context.Context, interval time.Duration) error {
	if interval <= 0 {
		return fmt.Errorf("plans: the interval is %v, want more than 0", interval)
	}
	refresh := func() {
		if ctx.Err() == nil {
			_ = p.Refresh(ctx) // it has logged and counted the error
		}
	}
	if d, ok := p.options.clock.(driver); ok {
		stop := d.Tick(interval, refresh)
		defer stop()
		<-ctx.Done()
		return ctx.Err()
	}
	spread := int64(interval / 10)
	for {
		timer := time.NewTimer(interval - time.Duration(spread) + time.Duration(rand.Int64N(2*spread+1)))
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
		refresh()
	}
}

// A driver is a clock that calls what is due while it advances, as fake clocks do.
type driver interface {
	Tick(interval time.Duration, f func()) (stop func())
}
