package throughput

// This file is what a throughput run found out, as a value and as JSON.

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"time"
)

// A result is the outcome of a throughput run. Its JSON names are a contract with
// whoever reads them: names are added, never changed.
type result struct {
	// What ran.
	Backend    string  `json:"backend"` // embedded, redis or memory
	Partitions int     `json:"partitions"`
	Nodes      int     `json:"nodes"`
	Workers    int     `json:"workers"`
	Cores      int     `json:"cores"` // those that this process may use
	Keys       int     `json:"keys"`
	Zipf       float64 `json:"zipf"`
	Seed       uint64  `json:"seed"`
	Prefix     string  `json:"prefix"`
	Threshold  uint64  `json:"threshold"`
	// ThresholdDerived says that the threshold was made to fit the load.
	ThresholdDerived bool          `json:"threshold_derived"`
	Window           time.Duration `json:"window_ns"`
	Tick             time.Duration `json:"tick_ns"`
	Interrupted      bool          `json:"interrupted"`

	// What the workers saw.
	Elapsed         time.Duration `json:"elapsed_ns"`
	Checks          uint64        `json:"checks"`
	ChecksPerSecond float64       `json:"checks_per_second"`
	// NsPerCheck is core time: elapsed × cores in use / checks, with the share of
	// the syncs and of an embedded server.
	NsPerCheck float64       `json:"ns_per_check"`
	P99        int64         `json:"p99_ns"`
	Latency    latencyReport `json:"latency"`
	Allowed    uint64        `json:"allowed"`
	Limited    uint64        `json:"limited"`
	Tiers      [4]int        `json:"tiers"`      // keys, from idle to hot, by the fleet's counts at the end
	NodeTiers  [4]int        `json:"node_tiers"` // entities of all nodes, by the nodes' last scans
	Entities   int           `json:"entities"`   // of all nodes

	// What the syncs cost.
	Syncs         uint64        `json:"syncs"` // nodes × partitions × ticks, the one at Close included
	Scripts       uint64        `json:"scripts"`
	RoundTrips    uint64        `json:"round_trips"`
	Retries       uint64        `json:"retries"`
	Writes        uint64        `json:"writes"`
	Reads         uint64        `json:"reads"`
	ReadsOfAll    uint64        `json:"reads_of_all"` // both counters of every entity, once per sync interval
	BytesSent     uint64        `json:"bytes_sent"`
	BytesReceived uint64        `json:"bytes_received"`
	Close         time.Duration `json:"close_ns"`
	CloseError    string        `json:"close_error,omitempty"`

	// Where the units are.
	UnitsCounted     uint64   `json:"units_counted"`
	UnitsInRedis     uint64   `json:"units_in_redis"`
	UnitsUndelivered uint64   `json:"units_undelivered"`
	UnitsUnknown     uint64   `json:"units_unknown"`
	UnitsDropped     uint64   `json:"units_dropped"` // for known causes
	Conserved        bool     `json:"conserved"`
	KeyByKey         bool     `json:"key_by_key"` // each key was held to equality
	Broken           []string `json:"broken,omitempty"`
	Counters         uint64   `json:"counters_read_back"`
}

// addChecks fills in what follows from the number of checks.
func (r *result) addChecks(checks, allowed uint64, elapsed time.Duration) {
	r.Elapsed, r.Checks, r.Allowed, r.Limited = elapsed, checks, allowed, checks-allowed
	if checks == 0 || elapsed <= 0 {
		return
	}
	r.ChecksPerSecond = math.Round(float64(checks) / elapsed.Seconds())
	busy := float64(min(r.Workers, r.Cores))
	r.NsPerCheck = math.Round(10*float64(elapsed.Nanoseconds())*busy/float64(checks)) / 10
}

// addAudit fills in where the units are.
func (r *result) addAudit(a *audit) {
	r.UnitsCounted, r.UnitsInRedis = a.Counted, a.Found
	r.UnitsUndelivered, r.UnitsUnknown, r.UnitsDropped = a.Loss.Undelivered, a.Loss.Unknown, a.Loss.Dropped
	r.Conserved, r.KeyByKey, r.Broken = a.conserved(), a.Exact, a.Broken
}

// writeJSON writes the result to where -json says.
func (r *result) writeJSON(target string, stdout io.Writer) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("the results as JSON: %w", err)
	}
	text = append(text, '\n')
	if target == "-" {
		_, err = stdout.Write(text)
	} else {
		err = os.WriteFile(target, text, 0o644)
	}
	if err != nil {
		return fmt.Errorf("-json %s: %w", target, err)
	}
	return nil
}
