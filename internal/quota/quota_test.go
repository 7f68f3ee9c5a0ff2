package quota

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hanzoai/limiters/ratelimit"
)

func TestNumbersOfFields(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		d    time.Duration
		want int64
	}{
		{0, 0}, {1, 1}, {time.Second - 1, 1}, {time.Second, 1}, {time.Second + 1, 2}, {time.Hour, 3600}, {math.MaxInt64, 9223372037},
	} {
		if got := Seconds(row.d); got != row.want {
			t.Errorf("%v: got %v, want %v", row.d.String(), got, row.want)
		}
	}
	for _, row := range []struct {
		n    uint64
		want string
	}{
		{0, "0"}, {1, "1"}, {maxInteger, "999999999999999"}, {maxInteger + 1, "999999999999999"}, {math.MaxUint64, "999999999999999"},
	} {
		if got := Integer(row.n); got != row.want {
			t.Errorf("%v: got %v, want %v", row.want, got, row.want)
		}
	}
	for _, inclusive := range []bool{false, true} {
		cfg := ratelimit.DefaultConfig()
		cfg.Inclusive = inclusive
		p := New("default", "", cfg)
		want := []uint64{0, 0, math.MaxUint64 - 1}
		if inclusive {
			want = []uint64{0, 1, math.MaxUint64}
		}
		if got := []uint64{p.Passes(0), p.Passes(1), p.Passes(math.MaxUint64)}; !slices.Equal(got, want) {
			t.Errorf("inclusive %v: of 0, 1 and the most units pass %v, want %v", inclusive, got, want)
		}
	}
	for _, text := range []string{"\x1f", "\x7f", "é", "\n"} {
		if Printable(text) {
			t.Errorf("Printable(%q)", text)
		}
	}
	if !Printable(" ~") {
		t.Error("the ends of printable ASCII are not printable")
	}
}

// A window that is not of whole seconds is announced as a longer one, at the same rate.
func TestWindowsThatAreNotOfWholeSeconds(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		window    time.Duration
		threshold uint64
		want      string
	}{
		{100 * time.Millisecond, 4, `q=30;w=1`},
		{250 * time.Millisecond, 11, `q=40;w=1`},
		{999 * time.Millisecond, 1001, `q=1001;w=1`},
		{time.Second, 1001, `q=1000;w=1`},
		{1500 * time.Millisecond, 7, `q=8;w=2`},
		{1500 * time.Millisecond, 1, `q=0;w=2`},
		{time.Minute + 1, 1001, `q=1016;w=61`},
		{100 * time.Millisecond, math.MaxUint64, `q=999999999999999;w=1`},
	} {
		cfg := ratelimit.DefaultConfig()
		cfg.WindowInterval = row.window
		p := New("default", "", cfg)
		got := strings.TrimPrefix(p.Item(row.threshold), `"default";`)
		if got := got; got != row.want {
			t.Errorf("%v: got %v, want %v", fmt.Sprint(row.window, " of ", row.threshold), got, row.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		window := time.Duration(rapid.Int64Range(int64(100*time.Millisecond), int64(20*24*time.Hour)).Draw(t, "window"))
		quota := rapid.Uint64Range(0, maxInteger).Draw(t, "quota")
		cfg := ratelimit.DefaultConfig()
		cfg.WindowInterval = window
		p := New("default", "", cfg)
		exact := float64(quota) * float64(p.whole) * 1e9 / float64(window)
		if got := float64(p.perPolicy(quota)); got > exact*(1+1e-12) || got < exact*(1-1e-12)-1 {
			t.Errorf("%d per %v announced as %v per %d s", quota, window, got, p.whole)
		}
		if off := time.Duration(p.whole)*time.Second - window; off < 0 || off >= time.Second {
			t.Errorf("%v announced as %d s", window, p.whole)
		}
	})
}
