package throughput

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hanzoai/limiters/cmd/bench/internal/backend"
)

// counters is a backend.CounterReader over a map.
type counters map[string]uint64

func (c counters) Read(keys []string, totals []uint64) error {
	if len(keys) != len(totals) || len(keys) > readChunk {
		return errors.New("a chunk of the wrong size")
	}
	for i, key := range keys {
		if c[key] == 666 {
			return errors.New("cursed")
		}
		totals[i] += c[key]
	}
	return nil
}

func TestReadBackSumsTheEpochsOfEveryKey(t *testing.T) {
	t.Parallel()
	const window = 10 * time.Second
	end := time.Unix(1_000_005, 0) // half into epoch 100,000
	names := backend.KeyNames(2*readChunk + 1)
	last := names[2*readChunk]
	c := counters{
		"p:" + names[0] + ":99998":  1, // too old to weigh
		"p:" + names[0] + ":99999":  4,
		"p:" + names[0] + ":100000": 2,
		"p:" + last + ":100000":     9,
		"p:" + names[1] + ":99997":  5, // before the run
		"q:" + names[1] + ":100000": 5, // another run's
	}
	got, err := readBack(c, "p", names, 99_998, 100_001, end, window)
	if err != nil {
		t.Fatal(err)
	}
	units, levels := make([]uint64, len(names)), make([]float64, len(names))
	units[0], units[2*readChunk] = 7, 9
	levels[0], levels[2*readChunk] = 4*0.5+2, 9
	if !slices.Equal(got.units, units) || !slices.Equal(got.levels, levels) {
		t.Errorf("units of the first key %d, of the last %d; levels %v, %v", got.units[0], got.units[2*readChunk], got.levels[0], got.levels[2*readChunk])
	}
	if want := uint64(4 * len(names)); got.counters != want {
		t.Errorf("counters = %d, want %d", got.counters, want)
	}
}

func TestReadBackSaysWhatItCouldNotRead(t *testing.T) {
	t.Parallel()
	names := backend.KeyNames(1)
	_, err := readBack(counters{"p:" + names[0] + ":7": 666}, "p", names, 6, 8, time.Unix(70, 0), 10*time.Second)
	if err == nil || !strings.Contains(err.Error(), "epoch 7") || !strings.Contains(err.Error(), "cursed") {
		t.Errorf("error = %v", err)
	}
}

func TestEpochsTouchedLeaveOneOnEachSide(t *testing.T) {
	t.Parallel()
	first, last := epochsTouched(time.Unix(100, 0), time.Unix(119, 0), 10*time.Second)
	if first != 9 || last != 12 {
		t.Errorf("epochs %d to %d, want 9 to 12", first, last)
	}
}
