package overrides

// This file holds a watcher's metrics.

import (
	"strconv"

	"github.com/VictoriaMetrics/metrics"
)

// A result is how a refresh ended, and a metric label.
type result int

const (
	resultOK          result = iota
	resultAbsent             // the source does not exist
	resultUnreachable        // the source cannot be asked
	resultMalformed          // the source holds no overrides
	results
)

func (r result) String() string {
	return [results]string{"ok", "absent", "unreachable", "malformed"}[r]
}

// gauges are a watcher's metrics. They are safe for concurrent use.
type gauges struct {
	refreshes  [results]*metrics.Counter
	ok, since  *metrics.Gauge
	unregister func() // takes them out of sight
}

func openGauges(set *metrics.Set, scope string) *gauges {
	own := set == nil
	if own {
		set = metrics.NewSet()
		metrics.RegisterSet(set)
	}
	var names []string
	name := func(metric, labels string) string {
		full := "global_rate_limiter_overrides_" + metric + "{scope=" + strconv.Quote(scope) + labels + "}"
		names = append(names, full)
		return full
	}
	g := &gauges{
		ok:    set.GetOrCreateGauge(name("refresh_ok", ""), nil),
		since: set.GetOrCreateGauge(name("refresh_success_timestamp_seconds", ""), nil),
	}
	for r := range g.refreshes {
		g.refreshes[r] = set.GetOrCreateCounter(name("refresh_total", ",result="+strconv.Quote(result(r).String())))
	}
	g.unregister = func() {
		if own {
			metrics.UnregisterSet(set, true)
			return
		}
		for _, name := range names {
			set.UnregisterMetric(name)
		}
	}
	return g
}

// observe counts a refresh that ended at wall, in nanoseconds since the Unix epoch.
func (g *gauges) observe(r result, wall int64) {
	g.refreshes[r].Inc()
	if r != resultOK {
		g.ok.Set(0)
		return
	}
	g.ok.Set(1)
	g.since.Set(float64(wall) / 1e9)
}
