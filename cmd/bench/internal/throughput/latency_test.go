package throughput

import (
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

func TestLatenciesMerge(t *testing.T) {
	t.Parallel()
	a, b := newLatencies(), newLatencies()
	for range 99 {
		recordLatency(a, 100*time.Nanosecond)
	}
	recordLatency(b, 20*time.Microsecond)
	got := mergeLatencies([]*hdrhistogram.Histogram{a, b}, 40*time.Nanosecond)
	if got.Samples != 100 || got.P50 != 100 || got.P99 != 100 || got.Clock != 40 {
		t.Errorf("report = %+v", got)
	}
	if got.P999 < 20_000 || got.P999 > 20_200 || got.Max < 20_000 || got.Max > 20_200 {
		t.Errorf("p99.9 = %d, max = %d, want 20,000 to 1 %%", got.P999, got.Max)
	}
}

func TestLatenciesOutOfRangeCountAsTheBound(t *testing.T) {
	t.Parallel()
	h := newLatencies()
	recordLatency(h, 0)
	recordLatency(h, -time.Second)
	recordLatency(h, time.Hour)
	got := mergeLatencies([]*hdrhistogram.Histogram{h}, 0)
	if got.Samples != 3 || got.P50 != 1 || got.Max < int64(maxLatency) {
		t.Errorf("report = %+v, want 3 samples within 1 ns and %v", got, maxLatency)
	}
}
