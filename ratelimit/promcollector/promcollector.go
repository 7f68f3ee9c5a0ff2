// Package promcollector makes a limiter's metrics a [prometheus.Collector], for services
// that have a client_golang registry:
//
//	registry.MustRegister(promcollector.New(lim))
//
// Names, labels, types and help are those of docs/metrics.md. It is a module of its own,
// so that client_golang comes to those alone who use it.
package promcollector

import (
	"bytes"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hanzoai/limiters/internal/exposition"
	"github.com/hanzoai/limiters/ratelimit"
)

// New returns a collector of the metrics of lim that carry its scope, those of a watcher
// of overrides in the same set included. Each collection reads them anew, as of the last
// tick; a closed limiter has none. It describes none beforehand (client_golang calls that
// unchecked), so two limiters with one scope make the gathering fail, not the
// registration. lim must not be nil. Safe for concurrent use.
func New(lim *ratelimit.Limiter) prometheus.Collector {
	return &collector{lim: lim, scope: lim.Config().Scope}
}

// A collector is immutable.
type collector struct {
	lim   *ratelimit.Limiter
	scope string
}

// Describe says nothing: which series there are depends on what fails.
func (*collector) Describe(chan<- *prometheus.Desc) {}

// Collect sends the metrics.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	var text bytes.Buffer
	c.lim.WritePrometheus(&text)
	families, err := exposition.Read(text.String(), exposition.Scope(c.scope))
	if err != nil {
		out <- prometheus.NewInvalidMetric(prometheus.NewInvalidDesc(err), fmt.Errorf("promcollector: %w", err))
		return
	}
	for i := range families {
		for j := range families[i].Samples {
			out <- metricOf(&families[i], &families[i].Samples[j])
		}
	}
}

// metricOf is one time series as client_golang has it.
func metricOf(f *exposition.Family, s *exposition.Sample) prometheus.Metric {
	names, values := make([]string, len(s.Labels)), make([]string, len(s.Labels))
	for i, l := range s.Labels {
		names[i], values[i] = l.Name, l.Value
	}
	desc := prometheus.NewDesc(f.Name, f.Help, names, nil)
	if f.Kind != "histogram" {
		kind := prometheus.GaugeValue
		if f.Kind == "counter" {
			kind = prometheus.CounterValue
		}
		m, err := prometheus.NewConstMetric(desc, kind, s.Value, values...)
		return valid(desc, m, err)
	}
	buckets := make(map[float64]uint64, len(s.Buckets))
	for _, b := range s.Buckets {
		buckets[b.UpperBound] = b.Count
	}
	m, err := prometheus.NewConstHistogram(desc, s.Count, s.Sum, buckets, values...)
	return valid(desc, m, err)
}

func valid(desc *prometheus.Desc, m prometheus.Metric, err error) prometheus.Metric {
	if err != nil {
		return prometheus.NewInvalidMetric(desc, fmt.Errorf("promcollector: %w", err))
	}
	return m
}
