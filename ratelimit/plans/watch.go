package plans

// This file reads the file again and again, and counts how that goes.

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"
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

// gauges are the metrics of reloads. They are safe for concurrent use.
type gauges struct {
	good, bad  *metrics.Counter
	ok         *metrics.Gauge
	unregister func() // takes them out of sight
}

// openGauges registers metrics, and what write writes, until they are unregistered.
func openGauges(set *metrics.Set, scope string, write func(io.Writer)) *gauges {
	own := set == nil
	if own {
		set = metrics.NewSet()
		metrics.RegisterSet(set)
	}
	var ended atomic.Bool // a writer cannot be taken out of a set
	set.RegisterMetricsWriter(func(w io.Writer) {
		if !ended.Load() {
			write(w)
		}
	})
	var names []string
	name := func(metric, labels string) string {
		full := "global_rate_limiter_plans_" + metric + "{scope=" + strconv.Quote(scope) + labels + "}"
		names = append(names, full)
		return full
	}
	return &gauges{
		good: set.GetOrCreateCounter(name("refresh_total", `,result="ok"`)),
		bad:  set.GetOrCreateCounter(name("refresh_total", `,result="refused"`)),
		ok:   set.GetOrCreateGauge(name("refresh_ok", ""), nil),
		unregister: func() {
			ended.Store(true)
			if own {
				metrics.UnregisterSet(set, true)
				return
			}
			for _, name := range names {
				set.UnregisterMetric(name)
			}
		},
	}
}

// observe counts a reload.
func (g *gauges) observe(ok bool) {
	if ok {
		g.good.Inc()
		g.ok.Set(1)
	} else {
		g.bad.Inc()
		g.ok.Set(0)
	}
}
