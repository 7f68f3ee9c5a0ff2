package throughput

// This file is the summary of a throughput run, for people.

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/hanzoai/limiters/cmd/bench/internal/figures"
)

// caveats is what the figures do not show.
const caveats = `
What this does not show: nodes, load and %s share the cores of one
machine, so a node of its own is faster and a network slower than this; checks run
in a loop that keeps their entities in the cache; an embedded server is several
times slower than Redis. Compare figures of one machine only, and of several runs.
`

// writeSummary writes the result as text.
func (r *result) writeSummary(w io.Writer) {
	fmt.Fprintf(w, "\n%d nodes, %d workers on %d cores, %s keys, %s\n", r.Nodes, r.Workers, r.Cores, figures.Grouped(uint64(r.Keys)), r.place())
	fmt.Fprintf(w, "threshold %s per %v%s, tick %v, zipf %v, seed %d, keys in Redis begin with %s\n\n",
		figures.Grouped(r.Threshold), r.Window, r.thresholdOrigin(), r.Tick, r.Zipf, r.Seed, r.Prefix)

	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(table, name+"\t"+format+"\n", args...)
	}
	row("checks", "%s in %s%s: %s/s, %.1f ns of a core each", figures.Grouped(r.Checks), figures.Seconds(r.Elapsed), r.interruption(), figures.Grouped(uint64(r.ChecksPerSecond)), r.NsPerCheck)
	row("latency", "p50 %s, p90 %s, p99 %s, p99.9 %s, max %s", figures.Nanoseconds(r.Latency.P50), figures.Nanoseconds(r.Latency.P90), figures.Nanoseconds(r.Latency.P99), figures.Nanoseconds(r.Latency.P999), figures.Nanoseconds(r.Latency.Max))
	row("", "of %s checks, 1 in %d, with the clock's own %d ns", figures.Grouped(uint64(r.Latency.Samples)), sampleEvery, r.Latency.Clock)
	row("verdicts", "%s allowed, %s limited (%s)", figures.Grouped(r.Allowed), figures.Grouped(r.Limited), figures.Percent(float64(r.Limited), float64(r.Checks)))
	row("tiers", "%s of %s keys, by the fleet's counts", tiersText(r.Tiers), figures.Grouped(uint64(r.Keys)))
	if r.NodeTiers != [4]int{} { // there was a scan
		row("", "%s of %s entities on the nodes, by their last scans", tiersText(r.NodeTiers), figures.Grouped(uint64(r.Entities)))
	}
	row("syncs", "%s (nodes × partitions × ticks): %s scripts, %s round trips, %s retries", figures.Grouped(r.Syncs), figures.Grouped(r.Scripts), figures.Grouped(r.RoundTrips), figures.Grouped(r.Retries))
	row("each sync", "%.2f scripts, %.2f round trips, %s", each(r.Scripts, r.Syncs), each(r.RoundTrips, r.Syncs), r.bytesText())
	row("writes", "%s counters added to, %.1f checks each", figures.Grouped(r.Writes), each(r.Checks, r.Writes))
	row("reads", "%s counters, %s of them saved: reading both of every entity once per sync interval takes %s", figures.Grouped(r.Reads), figures.Percent(float64(r.saved()), float64(r.ReadsOfAll)), figures.Grouped(r.ReadsOfAll))
	row("closing", "%s%s", figures.Seconds(r.Close), r.closeProblem())
	row(r.conservation(), "%s units counted, %s in Redis, %s undelivered, %s unknown, %s dropped", figures.Grouped(r.UnitsCounted), figures.Grouped(r.UnitsInRedis), figures.Grouped(r.UnitsUndelivered), figures.Grouped(r.UnitsUnknown), figures.Grouped(r.UnitsDropped))
	row("", "%s", r.rule())
	for _, problem := range r.Broken {
		row("", "%s", problem)
	}
	_ = table.Flush()

	server := "the embedded server"
	switch r.Backend {
	case "memory":
		server = "the store"
	case "redis":
		server = "any Redis that is local"
	}
	fmt.Fprintf(w, caveats, server)
}

// place says where the counts were.
func (r *result) place() string {
	switch r.Backend {
	case "embedded":
		return "an embedded server over loopback"
	case "memory":
		return "one store in memory, shared by the nodes in the place of memory://"
	default:
		return fmt.Sprintf("%d Redis", r.Partitions)
	}
}

func (r *result) thresholdOrigin() string {
	if r.ThresholdDerived {
		return " (made to fit the load)"
	}
	return ""
}

func (r *result) interruption() string {
	if r.Interrupted {
		return " (interrupted)"
	}
	return ""
}

// tiersText is the shares of the tiers.
func tiersText(tiers [4]int) string {
	total, text := 0, make([]string, len(tiers))
	for _, n := range tiers {
		total += n
	}
	for i, n := range tiers {
		text[i] = tierNames[i] + " " + figures.Percent(float64(n), float64(total))
	}
	return strings.Join(text, ", ")
}

// bytesText says what a sync puts on the wire.
func (r *result) bytesText() string {
	if r.Backend == "memory" {
		return "no bytes: the store is called directly"
	}
	return fmt.Sprintf("%s sent, %s received", figures.Bytes(each(r.BytesSent, r.Syncs)), figures.Bytes(each(r.BytesReceived, r.Syncs)))
}

func (r *result) closeProblem() string {
	if r.CloseError != "" {
		return ": " + r.CloseError
	}
	return ""
}

// saved is how many reads the tiers and the answers of writes made needless.
func (r *result) saved() uint64 { return r.ReadsOfAll - min(r.ReadsOfAll, r.Reads) }

func (r *result) conservation() string {
	if r.Conserved {
		return "CONSERVED"
	}
	return "NOT CONSERVED"
}

// rule says which rule the counts were held to.
func (r *result) rule() string {
	if r.KeyByKey {
		return fmt.Sprintf("every key held to equality, %s counters read back", figures.Grouped(r.Counters))
	}
	return "no key above its count; counted − unknown − undelivered ≤ in Redis + dropped ≤ counted"
}

// each is a mean; of nothing it is 0.
func each(n, among uint64) float64 {
	if among == 0 {
		return 0
	}
	return float64(n) / float64(among)
}
