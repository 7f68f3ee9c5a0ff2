package figures

import "testing"

func TestFigures(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ got, want string }{
		{Grouped(0), "0"},
		{Grouped(999), "999"},
		{Grouped(1000), "1,000"},
		{Grouped(1234567), "1,234,567"},
		{Grouped(1<<64 - 1), "18,446,744,073,709,551,615"},
		{Bytes(0), "0 B"},
		{Bytes(9999), "9999 B"},
		{Bytes(12_345), "12.3 kB"},
		{Bytes(98_765_432), "98.8 MB"},
		{Percent(1, 8), "12.5 %"},
		{Percent(1, 0), "0.0 %"},
		{Nanoseconds(987), "987 ns"},
		{Nanoseconds(9_999), "9999 ns"},
		{Nanoseconds(12_345), "12 µs"},
		{Nanoseconds(12_345_678), "12 ms"},
		{Seconds(1_250_000_000), "1.2 s"},
	} {
		if row.got != row.want {
			t.Errorf("got %q, want %q", row.got, row.want)
		}
	}
}
