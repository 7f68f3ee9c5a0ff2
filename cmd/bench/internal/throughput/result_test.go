package throughput

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hanzoai/limiters/cmd/bench/internal/backend"
)

// sample is a result with every part filled in.
func sample() *result {
	r := &result{
		Backend: "embedded", Partitions: 1, Nodes: 4, Workers: 4, Cores: 2, Keys: 3, Zipf: 1.5, Seed: 1, Prefix: "p",
		Threshold: 1000, ThresholdDerived: true, Window: 10 * time.Second, Tick: time.Second,
		Latency: latencyReport{Samples: 7, P50: 100, P90: 200, P99: 300, P999: 12_000, Max: 15_000_000, Clock: 40}, P99: 300,
		Tiers: [4]int{90, 8, 1, 1}, NodeTiers: [4]int{3, 1, 0, 0}, Entities: 4,
		Syncs: 8, Scripts: 16, RoundTrips: 18, Retries: 1, Writes: 50, Reads: 30, ReadsOfAll: 120,
		BytesSent: 80_000, BytesReceived: 16_000, Close: 1300 * time.Millisecond, Counters: 12,
	}
	r.addChecks(4000, 3000, 2*time.Second)
	r.addAudit(newAudit(backend.KeyNames(2), []uint64{2000, 1000}, []uint64{2000, 1000}, 3000, lossReport{}))
	return r
}

func TestChecksBecomeRates(t *testing.T) {
	t.Parallel()
	r := sample()
	if r.Limited != 1000 || r.ChecksPerSecond != 2000 {
		t.Errorf("limited %d, %v checks/s; want 1000, 2000", r.Limited, r.ChecksPerSecond)
	}
	// 2 s on 2 cores for 4,000 checks.
	if r.NsPerCheck != 1_000_000 {
		t.Errorf("%v ns per check, want 1,000,000", r.NsPerCheck)
	}
	none := &result{Workers: 1, Cores: 1}
	none.addChecks(0, 0, 0)
	if none.ChecksPerSecond != 0 || none.NsPerCheck != 0 {
		t.Errorf("without checks: %v checks/s, %v ns", none.ChecksPerSecond, none.NsPerCheck)
	}
}

func TestJSONHoldsWhatOthersRead(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := sample().writeJSON("-", &out); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatalf("%v in %s", err, &out)
	}
	for name, want := range map[string]any{
		"checks": 4000.0, "checks_per_second": 2000.0, "ns_per_check": 1_000_000.0, "p99_ns": 300.0, "allowed": 3000.0, "limited": 1000.0,
		"scripts": 16.0, "round_trips": 18.0, "units_counted": 3000.0, "units_in_redis": 3000.0, "units_undelivered": 0.0, "units_dropped": 0.0,
		"conserved": true, "backend": "embedded",
	} {
		if got[name] != want {
			t.Errorf("%s = %v, want %v", name, got[name], want)
		}
	}
}

func TestJSONGoesToAFile(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "result.json")
	if err := sample().writeJSON(name, nil); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(name)
	if err != nil || !json.Valid(text) {
		t.Errorf("file holds %q, %v", text, err)
	}
	missing := filepath.Join(t.TempDir(), "missing", "result.json")
	if err := sample().writeJSON(missing, nil); err == nil || !strings.Contains(err.Error(), "-json") {
		t.Errorf("error = %v, want one that names -json", err)
	}
}

func TestSummary(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	sample().writeSummary(&out)
	for _, want := range []string{
		"4 nodes, 4 workers on 2 cores, 3 keys, an embedded server over loopback",
		"threshold 1,000 per 10s (made to fit the load)",
		"4,000 in 2.0 s: 2,000/s, 1000000.0 ns of a core each",
		"p50 100 ns, p90 200 ns, p99 300 ns, p99.9 12 µs, max 15 ms",
		"3,000 allowed, 1,000 limited (25.0 %)",
		"idle 90.0 %, low 8.0 %, normal 1.0 %, hot 1.0 %",
		"8 (nodes × partitions × ticks): 16 scripts, 18 round trips, 1 retries",
		"2.00 scripts, 2.25 round trips, 10.0 kB sent, 2000 B received",
		"30 counters, 75.0 % of them saved",
		"closing", "1.3 s",
		"3,000 units counted, 3,000 in Redis, 0 undelivered, 0 unknown, 0 dropped",
		"every key held to equality, 12 counters read back",
		"What this does not show",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the summary lacks %q:\n%s", want, &out)
		}
	}
	if strings.Contains(out.String(), "NOT CONSERVED") {
		t.Error("the summary says NOT CONSERVED")
	}
}

func TestSummarySaysWhatIsBroken(t *testing.T) {
	t.Parallel()
	r := sample()
	r.addAudit(newAudit(backend.KeyNames(2), []uint64{2000, 1000}, []uint64{2000, 999}, 3000, lossReport{Unknown: 2}))
	r.Interrupted, r.CloseError, r.Backend = true, "2 units unknown", "memory"
	if !r.Conserved || r.KeyByKey {
		t.Errorf("conserved %v, key by key %v; want true, false", r.Conserved, r.KeyByKey)
	}
	r.addAudit(newAudit(backend.KeyNames(2), []uint64{2000, 1000}, []uint64{2000, 1001}, 3000, lossReport{Unknown: 2}))
	var out bytes.Buffer
	r.writeSummary(&out)
	for _, want := range []string{"NOT CONSERVED", "entity_0000000001: counted 1,000, found 1,001", "(interrupted)", "2 units unknown", "≤ counted", "shared by the nodes in the place of memory://"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the summary lacks %q:\n%s", want, &out)
		}
	}
}
