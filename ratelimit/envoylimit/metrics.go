package envoylimit

// This file counts what the service answers.

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/VictoriaMetrics/metrics"
)

// maxPaths is how many descriptors have metrics of their own. Values of requests come into their names
// with detailed_metric and value_to_metric, so there must be an end.
const maxPaths = 10_000

// otherPath stands for the descriptors beyond maxPaths.
const otherPath = "(other)"

// A serviceMetrics is the metrics of one service. It is safe for concurrent use.
type serviceMetrics struct {
	set *metrics.Set

	loaded, loadFailed, refused, unknownDomain, shadowed, notFleet *metrics.Counter

	paths sync.Map     // of descriptors, to *hits
	known atomic.Int64 // how many paths hold
}

// hits are the units of one descriptor's requests, by what became of them. Near ones are
// within or over as well.
type hits struct{ total, within, near, over, shadow *metrics.Counter }

func newServiceMetrics() *serviceMetrics {
	set := metrics.NewSet()
	return &serviceMetrics{
		set:           set,
		loaded:        set.NewCounter(`envoylimit_config_loads_total{result="ok"}`),
		loadFailed:    set.NewCounter(`envoylimit_config_loads_total{result="error"}`),
		refused:       set.NewCounter(`envoylimit_request_errors_total`),
		unknownDomain: set.NewCounter(`envoylimit_unknown_domain_total`),
		shadowed:      set.NewCounter(`envoylimit_global_shadow_total`),
		notFleet:      set.NewCounter(`envoylimit_not_fleet_total`),
	}
}

// of returns the counters of a descriptor.
func (m *serviceMetrics) of(path string) *hits {
	if known, ok := m.paths.Load(path); ok {
		return known.(*hits)
	}
	if m.known.Load() >= maxPaths && path != otherPath {
		return m.of(otherPath)
	}
	counter := func(result string) *metrics.Counter {
		return m.set.GetOrCreateCounter(fmt.Sprintf(`envoylimit_hits_total{descriptor="%s",result="%s"}`, labelValue(path), result))
	}
	made := &hits{counter("total"), counter("within"), counter("near"), counter("over"), counter("shadow")}
	if before, loaded := m.paths.LoadOrStore(path, made); loaded {
		return before.(*hits)
	}
	m.known.Add(1)
	return made
}

var labelEscapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

func labelValue(text string) string {
	return labelEscapes.Replace(strings.ToValidUTF8(text, "\uFFFD"))
}

// count adds one answer: after is the level with this request's hits.
func (m *serviceMetrics) count(q *question, after float64, over bool, nearRatio float32) {
	h := m.of(q.metric)
	requests := float64(q.rule.limit.GetRequestsPerUnit())
	near := math.Floor(float64(float32(requests) * nearRatio))
	units := float64(q.hits)
	before := max(0, after-units)
	add := func(counter *metrics.Counter, units float64) { counter.AddInt64(int64(min(units, math.MaxInt64/2))) }
	add(h.total, units)
	if !over {
		add(h.within, units)
		if after > near {
			add(h.near, min(units, after-near))
		}
		return
	}
	above := min(units, after-requests)
	add(h.over, above)
	add(h.near, max(0, requests-max(near, before)))
	if q.rule.shadow {
		add(h.shadow, above)
	}
}
