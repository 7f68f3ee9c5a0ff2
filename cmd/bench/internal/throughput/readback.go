package throughput

// This file reads the fleet's counts back after a run.

import (
	"fmt"
	"strconv"
	"time"

	"github.com/hanzoai/limiters/cmd/bench/internal/backend"
)

// readChunk is how many counters one read asks for: as many as an MGET takes.
const readChunk = 1000

// epochsTouched returns the first and last epoch that a run from start to end may
// have counted in, and one more on each side: a unit there would be a wrong one.
func epochsTouched(start, end time.Time, window time.Duration) (first, last int64) {
	return start.UnixNano()/int64(window) - 1, end.UnixNano()/int64(window) + 1
}

// A tally is what the fleet's counts hold for each key.
type tally struct {
	units    []uint64  // all of the run's
	levels   []float64 // what weighed in the sliding window when the load ended
	counters uint64    // read
}

// readBack tallies the epochs from first to last; end is when the load ended.
func readBack(reader backend.CounterReader, prefix string, names []string, first, last int64, end time.Time, window time.Duration) (*tally, error) {
	t := &tally{units: make([]uint64, len(names)), levels: make([]float64, len(names))}
	keys := make([]string, 0, readChunk)
	totals := make([]uint64, readChunk)
	for epoch := first; epoch <= last; epoch++ {
		suffix, weight := ":"+strconv.FormatInt(epoch, 10), weightAt(epoch, end, window)
		for from := 0; from < len(names); from += readChunk {
			keys = keys[:0]
			for _, name := range names[from:min(from+readChunk, len(names))] {
				keys = append(keys, prefix+":"+name+suffix)
			}
			clear(totals)
			if err := reader.Read(keys, totals[:len(keys)]); err != nil {
				return nil, fmt.Errorf("reading the counts of epoch %d back: %w", epoch, err)
			}
			for i := range keys {
				t.units[from+i] += totals[i]
				t.levels[from+i] += weight * float64(totals[i])
			}
			t.counters += uint64(len(keys))
		}
	}
	return t, nil
}
