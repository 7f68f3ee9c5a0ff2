package overrides

// This file holds a watcher's metrics.

import (
	"github.com/VictoriaMetrics/metrics"

	"github.com/hanzoai/limiters/internal/exposition"
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

// openGauges makes metrics in a set of their own. They are exposed with those of
// package metrics or, if set is not nil, as a part of it; while another watcher of the
// scope has them there, they are out of sight.
func openGauges(set *metrics.Set, scope string) *gauges {
	own := metrics.NewSet()
	name := func(metric, labels string) string {
		return "global_rate_limiter_overrides_" + metric + `{scope="` + exposition.LabelValue(scope) + `"` + labels + "}"
	}
	g := &gauges{
		ok:    own.NewGauge(name("refresh_ok", ""), nil),
		since: own.NewGauge(name("refresh_success_timestamp_seconds", ""), nil),
	}
	for r := range g.refreshes {
		g.refreshes[r] = own.NewCounter(name("refresh_total", `,result="`+exposition.LabelValue(result(r).String())+`"`))
	}
	if set == nil {
		g.unregister, _ = exposition.Expose("overrides "+scope, own)
	} else {
		g.unregister = exposition.Join(set, "overrides "+scope, own)
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
