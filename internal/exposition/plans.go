package exposition

// This file holds the metrics of package plans. They stand here, and not in its module, so that
// what is generated for metrics can be compared with what is exposed.

import "github.com/VictoriaMetrics/metrics"

// Plans are the metrics of a file of plans. They are safe for concurrent use.
type Plans struct {
	good, bad *metrics.Counter
	ok        *metrics.Gauge

	// Withdraw takes them out of sight.
	Withdraw func()
}

// OpenPlans exposes the metrics of a scope, in whole, or, if that is nil, with those of package metrics.
func OpenPlans(whole *metrics.Set, scope string) *Plans {
	set := metrics.NewSet()
	name := func(metric, labels string) string {
		return "global_rate_limiter_plans_" + metric + `{scope="` + LabelValue(scope) + `"` + labels + "}"
	}
	return &Plans{
		good: set.NewCounter(name("refresh_total", `,result="ok"`)),
		bad:  set.NewCounter(name("refresh_total", `,result="refused"`)),
		ok:   set.NewGauge(name("refresh_ok", ""), nil),

		Withdraw: ExposeIn(whole, "plans "+scope, set),
	}
}

// Observe counts a reload.
func (p *Plans) Observe(ok bool) {
	if ok {
		p.good.Inc()
		p.ok.Set(1)
	} else {
		p.bad.Inc()
		p.ok.Set(0)
	}
}

// ExposeIn is [Join], or [Expose] if whole is nil.
func ExposeIn(whole *metrics.Set, name string, set *metrics.Set) (withdraw func()) {
	if whole != nil {
		return Join(whole, name, set)
	}
	withdraw, _ = Expose(name, set)
	return withdraw
}
