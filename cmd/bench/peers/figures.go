package main

// This file makes the ratios.

import (
	"fmt"
	"io"
	"slices"
)

// A figure is a ratio by name, and the same in processor time: other programs take
// time from ours, but not processor time.
type figure struct {
	name  string
	ratio float64
	cpu   float64
}

// ratios returns one figure for each peer in the order of names, then those of the
// floor, of parallel growth, of one hot key, of sliding windows beside leaky ones, and of
// Allow.
func ratios(all table, names []string) (found []figure) {
	for _, name := range names {
		if name != ours && name != floor && name != loop {
			found = append(found, beside(all, name))
		}
	}
	found = append(found, beside(all, floor), figure{
		name:  "parallel",
		ratio: median(growth(all, ours, "Parallel", "Serial", elapsed)),
		cpu:   median(growth(all, ours, "Parallel", "Serial", processor)),
	}, figure{
		name:  "hotkey",
		ratio: median(quotients(all["HotSerial"][ours], all["HotParallel"][ours], elapsed)),
		cpu:   median(quotients(all["HotSerial"][ours], all["HotParallel"][ours], processor)),
	},
		variants(all, "sliding", "HotSerial", "sliding", "leaky"),
		variants(all, "sliding_10000", "Serial", "sliding", "leaky"),
		variants(all, "sliding_refused", "HotSerial", "sliding_refused", "leaky_refused"),
	)
	return append(found, allowFigures(all)...)
}

// variants is the time of a decision of one of our variants / that of another's, in one
// kind of run.
func variants(all table, name, kind, over, under string) figure {
	return figure{
		name:  name,
		ratio: median(quotients(all[kind][over], all[kind][under], elapsed)),
		cpu:   median(quotients(all[kind][over], all[kind][under], processor)),
	}
}

// beside is the time of our decision / that of a peer's, serial.
func beside(all table, name string) figure {
	serial := all["Serial"]
	return figure{
		name:  name,
		ratio: median(quotients(serial[ours], serial[name], elapsed)),
		cpu:   median(quotients(serial[ours], serial[name], processor)),
	}
}

// growth is, round by round, how much more a contestant's throughput grows from one kind
// of run to another than the floor's.
func growth(all table, name, to, from string, of func(reading) float64) []float64 {
	mine := quotients(all[from][name], all[to][name], of)
	bare := quotients(all[from][floor], all[to][floor], of)
	for i := range mine {
		mine[i] /= bare[i]
	}
	return mine
}

// quotients divides round by round.
func quotients(over, under []reading, of func(reading) float64) []float64 {
	list := make([]float64, min(len(over), len(under)))
	for i := range list {
		list[i] = of(over[i]) / of(under[i])
	}
	return list
}

func elapsed(r reading) float64   { return r.ns }
func processor(r reading) float64 { return r.cpu }

// median is the middle of the values, the mean of the middle two if they are even
// in number, 0 of none.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// writeRatios writes the last lines.
func writeRatios(w io.Writer, all table, found []figure) {
	hot := median(quotients(all["Serial"][ours], all["HotParallel"][ours], elapsed))
	fmt.Fprintf(w, "# throughput on one key by all cores / serially on all keys: %.3f\n", hot)
	for _, f := range found {
		fmt.Fprintf(w, "# by processor time: %s %.3f\n", f.name, f.cpu)
	}
	for _, f := range found {
		fmt.Fprintf(w, "ratio %s %.3f\n", f.name, f.ratio)
	}
}
