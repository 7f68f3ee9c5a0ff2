package main

import "testing"

func TestFigures(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ got, want string }{
		{grouped(0), "0"},
		{grouped(999), "999"},
		{grouped(1000), "1,000"},
		{grouped(1234567), "1,234,567"},
		{grouped(1<<64 - 1), "18,446,744,073,709,551,615"},
		{byteSize(0), "0 B"},
		{byteSize(9999), "9999 B"},
		{byteSize(12_345), "12.3 kB"},
		{byteSize(98_765_432), "98.8 MB"},
		{percent(1, 8), "12.5 %"},
		{percent(1, 0), "0.0 %"},
		{nanoseconds(987), "987 ns"},
		{nanoseconds(9_999), "9999 ns"},
		{nanoseconds(12_345), "12 µs"},
		{nanoseconds(12_345_678), "12 ms"},
		{seconds(1_250_000_000), "1.2 s"},
	} {
		if row.got != row.want {
			t.Errorf("got %q, want %q", row.got, row.want)
		}
	}
}
