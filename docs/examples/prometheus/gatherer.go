package main

// This file makes a limiter a source of metrics for client_golang: the part to copy.

import (
	"bytes"
	"fmt"
	"io"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// gather returns a gatherer of what write writes in the Prometheus text format,
// such as Limiter.WritePrometheus. It reads anew at every scrape, so a closed
// limiter's metrics vanish.
func gather(write func(io.Writer)) prometheus.Gatherer {
	return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		var text bytes.Buffer
		write(&text)
		parser := expfmt.NewTextParser(model.UTF8Validation)
		byName, err := parser.TextToMetricFamilies(&text)
		if err != nil {
			return nil, fmt.Errorf("reading a limiter's metrics: %w", err)
		}
		families := make([]*dto.MetricFamily, 0, len(byName))
		for _, family := range byName {
			families = append(families, family)
		}
		return families, nil
	})
}
