package command

import (
	"flag"
	"io"
	"strings"
	"testing"
	"time"
)

func TestAFlagWithBoundsSaysWhatItTakes(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ args, fails string }{
		{"-n 1", ""},
		{"-n 9", ""},
		{"-n 0", `invalid value "0" for flag -n: want an integer from 1 to 9`},
		{"-n 10", "want an integer from 1 to 9"},
		{"-n many", "want an integer from 1 to 9"},
		{"-share NaN", "want a number from 0 to 1"},
		{"-time 1m", ""},
		{"-time 60", "want a duration such as 10s or 250ms from 1s to 1h0m0s"},
		{"-seed 18446744073709551615", ""},
		{"-seed -1", "want an integer from 0 to 18446744073709551615"},
	} {
		flags := flag.NewFlagSet("x", flag.ContinueOnError)
		flags.SetOutput(io.Discard)
		var n int
		var share float64
		var wait time.Duration
		var seed uint64
		Ranged(flags, &n, "n", 5, 1, 9, Integers, "a number")
		Ranged(flags, &share, "share", 0.5, 0, 1, Floats, "a share")
		Ranged(flags, &wait, "time", time.Second, time.Second, time.Hour, Durations, "a time")
		Ranged(flags, &seed, "seed", 1, 0, 1<<64-1, Unsigned, "a seed")
		err := flags.Parse(strings.Fields(row.args))
		if (err == nil) != (row.fails == "") || err != nil && !strings.Contains(err.Error(), row.fails) {
			t.Errorf("%s: error %v, want %q", row.args, err, row.fails)
		}
	}
}
