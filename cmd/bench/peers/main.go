// Command peers measures a decision beside those of other libraries, in one run.
//
// Ten rounds; in each, every contestant makes the same decisions in the same loop,
// in an order that rotates, so that whatever else the machine does hits all alike.
// What it prints is benchstat's input; its last lines are
//
//	ratio NAME VALUE      time of a decision, ours / theirs: serial, median of the rounds
//	ratio floor VALUE     the same beside the bare floor: a look-up and an atomic add
//	ratio parallel VALUE  our growth in throughput from one core to all / the floor's
//	ratio hotkey VALUE    our throughput on one key, all cores / one core
//	ratio sliding VALUE   our time in a sliding window / in a leaky one, one key
//	ratio sliding_10000   the same on all keys (10,000)
//	ratio sliding_refused the same of refusals, one key
//	ratio allow VALUE     time of Allow / x/time/rate's, serial
//	ratio allow_floor     the same / the floor's
//	ratio allow_parallel  as parallel, of Allow
//	ratio allow_hotkey    time of Allow / the floor's, all cores on one key
//	ratio allow_onekey    the same, one core on one key
//	ratio allow_low       time of Allow / of Check at a threshold of 100, serial
//	ratio allow_low_1000  the same at 1,000
//	ratio allow_low_outage the same at 100 with Redis away
//	ratio checkfleet VALUE decisions of CheckFleet per second of Redis' processor time /
//	                      redis_rate's, 64 callers, 10,000 keys
//	ratio checkfleet_64   the same on 64 keys
//	ratio checkfleet_one  the same on one
//	ratio fleet_alone VALUE p99 of a lone CheckFleet beside a tick of 20,000 entities /
//	                      (the longest script + a round trip)
//
// A ratio is computed within each round; the median of the rounds is printed.
//
// It is a module of its own so that nobody inherits these libraries. The files in
// the order of a run: main, contestant (memory, allowing, remote), asking, alone, slot, rounds,
// figures, plot, gate.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"
)

// The exit statuses.
const (
	exitOK     = 0
	exitFailed = 1 // something cannot be measured, or a ratio fails the gate
	exitUsage  = 2
)

// options are the flags.
type options struct {
	rounds int
	slot   time.Duration
	keys   int
	redis  string // host:port; "" starts a server
	gate   string // file with committed ratios; "" none
	plot   string // file; "" none
}

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run measures, prints, and judges if asked to.
func run(args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		fmt.Fprintf(stderr, "peers: %v\n", err)
		return exitUsage
	}
	var committed map[string]float64
	if o.gate != "" {
		if committed, err = readRatios(o.gate); err != nil {
			fmt.Fprintf(stderr, "peers: -gate: %v\n", err)
			return exitUsage
		}
	}
	contestants := inMemory()
	remote, address, stop, err := openRemote(o.redis)
	if err == nil {
		contestants = append(contestants, remote)
		defer stop()
	} else {
		fmt.Fprintf(stderr, "peers: NOT MEASURED: redis_rate: %v\n", err)
	}

	writeHeader(stdout, o, err)
	asking, err := measureFleet(o, address, stdout)
	if err != nil {
		fmt.Fprintf(stderr, "peers: %v\n", err)
		return exitFailed
	}
	all, err := measure(o, contestants, stdout)
	if err != nil {
		fmt.Fprintf(stderr, "peers: %v\n", err)
		return exitFailed
	}
	found := append(ratios(all, names(contestants)), asking...)
	writeRatios(stdout, all, found)
	if o.plot != "" {
		if err := writePlot(o.plot, o, all, names(contestants)); err != nil {
			fmt.Fprintf(stderr, "peers: -plot: %v\n", err)
			return exitFailed
		}
	}
	if o.gate == "" {
		return exitOK
	}
	if problems := judge(found, committed); len(problems) > 0 {
		for _, problem := range problems {
			fmt.Fprintf(stderr, "peers: SLOWER: %s\n", problem)
		}
		return exitFailed
	}
	fmt.Fprintf(stderr, "peers: within %.1f × the committed ratios of %s\n", margin, o.gate)
	return exitOK
}

func parse(args []string, help io.Writer) (*options, error) {
	o := &options{}
	flags := flag.NewFlagSet("peers", flag.ContinueOnError)
	flags.SetOutput(help)
	flags.IntVar(&o.rounds, "rounds", 10, "rounds")
	flags.DurationVar(&o.slot, "time", 200*time.Millisecond, "how long each contestant decides, per round and kind of run")
	flags.IntVar(&o.keys, "keys", 10_000, "different keys")
	flags.StringVar(&o.redis, "redis", "", "`host:port` of a Redis for redis_rate; without it a redis-server from PATH is started")
	flags.StringVar(&o.gate, "gate", "", "fail if a ratio exceeds the one in this `file` by more than half")
	flags.StringVar(&o.plot, "plot", "", "draw what was measured into this SVG `file`")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	switch {
	case flags.NArg() > 0:
		return nil, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case o.rounds < 1:
		return nil, fmt.Errorf("invalid value %d for flag -rounds: want at least 1", o.rounds)
	case o.slot <= 0:
		return nil, fmt.Errorf("invalid value %v for flag -time: want more than 0", o.slot)
	case o.keys < runtime.GOMAXPROCS(0):
		return nil, fmt.Errorf("invalid value %d for flag -keys: want at least one for each core (%d)", o.keys, runtime.GOMAXPROCS(0))
	}
	return o, nil
}
