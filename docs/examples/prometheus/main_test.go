package main

// This file scrapes the endpoint as Prometheus does, in each of its formats.

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/hanzoai/limiters/ratelimit"
)

func newLimiter(t *testing.T, scope string) *ratelimit.Limiter {
	t.Helper()
	cfg := ratelimit.DefaultConfig()
	cfg.GlobalThreshold, cfg.Scope = 3, scope
	cfg.RedisURLs = []string{"memory://"}
	lim, err := ratelimit.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lim.Close(context.Background()) })
	return lim
}

// The Accept headers of scrapers.
var formats = map[string]string{
	"text":         "text/plain;version=0.0.4",
	"open metrics": "application/openmetrics-text;version=1.0.0",
	"protobuf":     "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited",
	"a browser":    "text/html,*/*",
}

// scrape gets /metrics and returns its families by name; two of one name are a
// failure.
func scrape(t *testing.T, url, accept string) map[string]*dto.MetricFamily {
	t.Helper()
	request, err := http.NewRequest("GET", url+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", accept)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(response.Body)
		t.Fatalf("/metrics answers %s:\n%s", response.Status, body)
	}
	format := expfmt.ResponseFormat(response.Header)
	if format.FormatType() == expfmt.TypeUnknown {
		return parseOpenMetrics(t, response.Body)
	}
	families := map[string]*dto.MetricFamily{}
	for decoder := expfmt.NewDecoder(response.Body, format); ; {
		family := new(dto.MetricFamily)
		if err := decoder.Decode(family); errors.Is(err, io.EOF) {
			return families
		} else if err != nil {
			t.Fatal(err)
		}
		if families[family.GetName()] != nil {
			t.Errorf("%s occurs twice", family.GetName())
		}
		families[family.GetName()] = family
	}
}

// parseOpenMetrics reads what of OpenMetrics is the text format too, after checking
// the end mark. A counter's family there lacks _total.
func parseOpenMetrics(t *testing.T, body io.Reader) map[string]*dto.MetricFamily {
	t.Helper()
	content, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	text, found := strings.CutSuffix(string(content), "# EOF\n")
	if !found || strings.Contains(text, "# EOF") {
		t.Errorf("want one end mark, at the end:\n%s", content)
	}
	var plain strings.Builder
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if fields[0] == "#" && fields[len(fields)-1] == "counter" {
			line = "# TYPE " + fields[2] + "_total counter\n"
		} else if fields[0] == "#" && fields[1] != "TYPE" {
			continue
		}
		plain.WriteString(line)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(plain.String()))
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// wantCounter fails unless the family is a counter of which one series, the one
// with the label's value if there is one, has this value.
func wantCounter(t *testing.T, what string, family *dto.MetricFamily, label string, want float64) {
	t.Helper()
	if family.GetType() != dto.MetricType_COUNTER {
		t.Errorf("%s: %v is no counter", what, family)
		return
	}
	for _, m := range family.Metric {
		matches := label == ""
		for _, pair := range m.Label {
			matches = matches || pair.GetValue() == label
		}
		if matches && m.Counter.GetValue() == want {
			return
		}
	}
	t.Errorf("%s: no series %q of %v is %v", what, label, family, want)
}

func TestOneEndpoint(t *testing.T) {
	t.Parallel()
	lim := newLimiter(t, "one endpoint")
	server := httptest.NewServer(newHandler(lim, prometheus.NewRegistry()))
	defer server.Close()
	for range 5 {
		response, err := http.Get(server.URL + "/hello?who=me")
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
	}
	if err := lim.Sync(context.Background()); err != nil {
		t.Fatal(err)
	}
	for name, accept := range formats {
		families := scrape(t, server.URL, accept)
		wantCounter(t, name, families["hello_served_total"], "", 3)
		wantCounter(t, name, families["global_rate_limiter_eval_counts_total"], "allowed", 3)
		wantCounter(t, name, families["global_rate_limiter_eval_counts_total"], "limited", 2)
		if f := families["global_rate_limiter_pipeline_ms"]; f.GetType() != dto.MetricType_HISTOGRAM || len(f.Metric[0].Histogram.Bucket) < 14 {
			t.Errorf("%s: %v is no histogram", name, f)
		}
	}
}

// A registry that has a limiter's name already makes the scrape fail rather than
// show a series twice.
func TestSeriesTwice(t *testing.T) {
	t.Parallel()
	lim := newLimiter(t, "twice")
	all := prometheus.Gatherers{gather(lim.WritePrometheus), gather(lim.WritePrometheus)}
	if _, err := all.Gather(); err == nil || !strings.Contains(err.Error(), "was collected before") {
		t.Errorf("gathering a limiter twice = %v, want an error", err)
	}
}

func TestGatherFails(t *testing.T) {
	t.Parallel()
	broken := gather(func(w io.Writer) { io.WriteString(w, "no metric\n") })
	if families, err := broken.Gather(); err == nil {
		t.Errorf("Gather = %v, want an error", families)
	}
}

func TestGatherAfterClose(t *testing.T) {
	t.Parallel()
	lim := newLimiter(t, "closed")
	before, err := gather(lim.WritePrometheus).Gather()
	if err != nil || len(before) == 0 {
		t.Fatalf("before Close: %v, %v", before, err)
	}
	if err := lim.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if after, err := gather(lim.WritePrometheus).Gather(); err != nil || len(after) != 0 {
		t.Errorf("after Close: %d families, %v, want none", len(after), err)
	}
}
