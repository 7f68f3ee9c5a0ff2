package tick

// This file is the tables of a tick run, for people.

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/hanzoai/limiters/cmd/bench/internal/figures"
)

// targets are docs/performance.md's, as the ratios that are to be reached.
var targets = map[string]struct{ redis, node, bytes float64 }{
	baselineEvery:  {0.75, 0.5, 0.5},
	baselineTiered: {1.1, 0.5, 0.5},
}

// longestTarget is how long one script may hold Redis.
const longestTarget = 3 * time.Millisecond

// caveats is what the figures do not show.
const caveats = `
every: INCRBY + EXPIRE + MGET of both counters per entity and tick, pipelined.
tiered: the same, with the MGET only as often as the entity's tier asks.
A quarter of the entities is in each tier. Averages over one window of ticks at a
steady load, the load itself left out; node CPU is the whole process's, garbage
collection included. Ticks follow each other without a pause (time is virtual), so
counters do not expire meanwhile. PING: of another client, while ticks are made.
`

// writeReport writes the tables.
func writeReport(w io.Writer, o *options, all []result) {
	fmt.Fprintf(w, "\nOne window (%v) of ticks (%v), per entity and tick:\n\n", o.window, o.tick)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "entities\tby\tRedis CPU\tnode CPU\tsent\treceived\tallocs\ttick\tround trips\tPING p99\tscript median\tp99\tlongest\t")
	for i := range all {
		for j, name := range syncers {
			all[i].writeCost(table, j, name)
		}
	}
	_ = table.Flush()

	fmt.Fprint(w, "\nOurs / theirs (the target):\n\n")
	table = tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "entities\tbaseline\tRedis CPU\tnode CPU\tbytes\tround trips per tick\tlongest script\t")
	for i := range all {
		for _, r := range all[i].ratios() {
			target := targets[r.Baseline]
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%.2f\t%.2f ms%s\t\n", figures.Grouped(uint64(r.Entities)), r.Baseline,
				beside(r.RedisCPU, target.redis), beside(r.NodeCPU, target.node), beside(r.Bytes, target.bytes),
				r.RoundTrips, r.LongestScript, missed(all[i].manners[0].longest > longestTarget))
		}
	}
	_ = table.Flush()
	writeFit(w, all)
	for i := range all {
		if all[i].untold != "" {
			fmt.Fprintf(w, "\nRedis does not tell how long scripts took: %s\n", all[i].untold)
			break
		}
	}
	fmt.Fprint(w, caveats)
}

// writeCost writes a row: what one syncer took.
func (r *result) writeCost(w io.Writer, i int, name string) {
	c, m := r.costs[i], r.manners[i]
	each := func(total float64) float64 { return total / float64(max(1, c.ticks*r.entities)) }
	fmt.Fprintf(w, "%s\t%s\t%.2f µs\t%.2f µs\t%.0f B\t%.0f B\t%.2f\t%.2f ms\t%.2f\t%.2f ms\t%s\t%s\t%s\t\n",
		figures.Grouped(uint64(r.entities)), name, each(float64(c.redis)/1e3), each(float64(c.node)/1e3),
		each(float64(c.sent)), each(float64(c.received)), each(float64(c.allocs)),
		c.tickMS(), float64(c.trips)/float64(max(1, c.ticks)), milliseconds(m.pingP99),
		scriptTime(m, m.median), scriptTime(m, m.p99), scriptTime(m, m.longest))
}

// tickMS is the mean duration of a tick.
func (c *cost) tickMS() float64 { return milliseconds(c.elapsed) / float64(max(1, c.ticks)) }

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// scriptTime writes a script's duration, if there were scripts.
func scriptTime(m manners, d time.Duration) string {
	if m.scripts == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f ms", milliseconds(d))
}

// beside writes a ratio beside its target, and marks one that misses it.
func beside(ratio, target float64) string {
	return fmt.Sprintf("%.3f (≤ %.2f)%s", ratio, target, missed(ratio > target))
}

func missed(is bool) string {
	if is {
		return " !"
	}
	return ""
}

// writeFit says how a tick grows with the entities, if there are several sizes.
func writeFit(w io.Writer, all []result) {
	if len(all) < 2 {
		return
	}
	sizes := make([]float64, len(all))
	var ticks, redis, node []float64
	for i := range all {
		c := all[i].costs[0]
		sizes[i] = float64(all[i].entities)
		ticks = append(ticks, c.tickMS())
		redis = append(redis, milliseconds(c.redis)/float64(max(1, c.ticks)))
		node = append(node, milliseconds(c.node)/float64(max(1, c.ticks)))
	}
	fmt.Fprintln(w)
	for _, row := range []struct {
		what string
		of   []float64
	}{{"a tick takes", ticks}, {"of Redis", redis}, {"of the node", node}} {
		line := fitLine(sizes, row.of)
		fmt.Fprintf(w, "fitted: %s %.3f ms + %.2f µs for each entity\n", row.what, line.at0, 1000*line.slope)
	}
}
