package main

import "testing"

func TestCommandsIn(t *testing.T) {
	t.Parallel()
	const stats = "# Commandstats\r\ncmdstat_incrby:calls=700,usec=1\r\ncmdstat_expire:calls=40,usec=1\r\ncmdstat_evalsha:calls=7,usec=2\r\n" +
		"cmdstat_info:calls=9,usec=1\r\ncmdstat_hello:calls=2,usec=1\r\ncmdstat_script|load:calls=1,usec=1\r\n"
	if got := commandsIn(stats, true); got != 80 {
		t.Errorf("the original's: got %d, want 80", got)
	}
	if got := commandsIn(stats, false); got != 10 {
		t.Errorf("ours: got %d, want 10", got)
	}
}

func TestMedian(t *testing.T) {
	t.Parallel()
	of := func(r result) float64 { return r.cpu }
	if got := median([]result{{cpu: 9}, {cpu: 1}, {cpu: 4}}, of); got != 4 {
		t.Errorf("got %v, want 4", got)
	}
	if got := median([]result{{cpu: 9}, {cpu: 1}, {cpu: 4}, {cpu: 2}}, of); got != 3 {
		t.Errorf("got %v, want 3", got)
	}
}
