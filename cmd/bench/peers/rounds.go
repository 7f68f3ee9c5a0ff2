package main

// This file makes the rounds.

import (
	"fmt"
	"io"
	"runtime"
)

// A table holds every reading by kind of run, contestant and round.
type table map[string]map[string][]reading

// measure makes the rounds and prints every reading as it is taken.
func measure(o *options, contestants []contestant, w io.Writer) (table, error) {
	all, keys := table{}, makeKeys(o.keys)
	for _, k := range kinds {
		all[k.name] = map[string][]reading{}
	}
	for _, c := range contestants {
		i, err := c.open(len(keys))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		err = verify(c.name, i, keys[0])
		if i.close != nil {
			_ = i.close()
		}
		if err != nil {
			return nil, err
		}
	}
	for round := range o.rounds {
		for _, k := range kinds {
			for _, c := range rotated(contestants, round) {
				if c.remote && k.hot || c.serial && (k.hot || k.perCore) {
					continue
				}
				r, err := take(c, k, keys, o.slot)
				if err != nil {
					return nil, err
				}
				all[k.name][c.name] = append(all[k.name][c.name], r)
				writeReading(w, k, c.name, o.keys, r)
			}
		}
	}
	return all, nil
}

// rotated returns the contestants with another one first in each round.
func rotated(contestants []contestant, round int) []contestant {
	first := round % len(contestants)
	return append(append([]contestant(nil), contestants[first:]...), contestants[:first]...)
}

// writeHeader writes what was measured where, as go test does.
func writeHeader(w io.Writer, o *options, noRemote error) {
	fmt.Fprintf(w, "goos: %s\ngoarch: %s\npkg: github.com/hanzoai/limiters/cmd/bench/peers\n", runtime.GOOS, runtime.GOARCH)
	if model := processorModel(); model != "" {
		fmt.Fprintf(w, "cpu: %s\n", model)
	}
	fmt.Fprintf(w, "# %s, %d cores, %d rounds of %v, GOGC and all else as by default\n", runtime.Version(), runtime.GOMAXPROCS(0), o.rounds, o.slot)
	if noRemote != nil {
		fmt.Fprintf(w, "# NOT MEASURED: redis_rate: %v\n", noRemote)
	}
}

// writeReading writes a line that benchstat reads.
func writeReading(w io.Writer, k kind, name string, keys int, r reading) {
	if k.hot {
		keys = 1
	}
	fmt.Fprintf(w, "Benchmark%s/keys=%d/peer=%s-%d\t%d\t%.2f ns/op\t%.2f cpu-ns/op\t%.0f B/op\t%.0f allocs/op\n",
		k.name, keys, name, runtime.GOMAXPROCS(0), r.ops, r.ns, r.cpu, r.bytes, r.allocs)
}
