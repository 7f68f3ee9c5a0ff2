package throughput

// This file is the command line of the throughput run.

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	"github.com/hanzoai/limiters/cmd/bench/internal/command"
	"github.com/hanzoai/limiters/internal/redisurl"
)

// options are the flags of a throughput run. Immutable after parseOptions.
type options struct {
	duration  time.Duration
	nodes     int
	workers   int
	keys      int
	zipf      float64
	threshold uint64 // 0: derived from the load
	window    time.Duration
	tick      time.Duration
	slice     int      // draws between two ticks, all workers together
	redis     []string // URLs; none: the embedded server
	clean     bool
	json      string // file; "-" is standard output; "" none
	seed      uint64
	env       bool
	closing   time.Duration // how long Close may take
	set       map[string]bool
}

// parseOptions reads the arguments. An error names the flag, the value and what
// is accepted. After flag.ErrHelp the caller has nothing left to say: the usage
// was written to help.
func parseOptions(args []string, help io.Writer) (*options, error) {
	o := &options{set: map[string]bool{}}
	flags := flagSet(o)
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			usage(flags, help)
		}
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q: want flags only, or one of the commands first: %s", flags.Arg(0), strings.Join(command.Names(), ", "))
	}
	flags.Visit(func(f *flag.Flag) { o.set[f.Name] = true })
	if o.workers == 0 {
		o.workers = max(o.nodes, runtime.GOMAXPROCS(0)/o.nodes*o.nodes)
	}
	return o, o.check()
}

// flagSet defines the flags with their defaults.
func flagSet(o *options) *flag.FlagSet {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Usage = func() {}
	command.Ranged(flags, &o.duration, "duration", 10*time.Second, 100*time.Millisecond, time.Hour, command.Durations, "how `long` to check; the counts of every window of it are kept and read back")
	command.Ranged(flags, &o.nodes, "nodes", 4, 1, 256, command.Integers, "`limiters` in this process")
	command.Ranged(flags, &o.workers, "workers", 0, 0, 4096, command.Integers, "goroutines that check; 0: one for each `core`, and as many on each node")
	command.Ranged(flags, &o.keys, "keys", 100_000, 1, 10_000_000, command.Integers, "different entity `keys`")
	command.Ranged(flags, &o.zipf, "zipf", defaultExponent, 1.01, 10, command.Floats, "`exponent` of the keys' popularity")
	command.Ranged(flags, &o.threshold, "threshold", 0, 0, 1<<53-1, command.Unsigned, "`units` per window and key; 0: such that a tenth of the keys reach a tenth of it")
	command.Ranged(flags, &o.window, "window", 10*time.Second, 100*time.Millisecond, 24*time.Hour, command.Durations, "sliding `window`")
	command.Ranged(flags, &o.tick, "tick", time.Second, 10*time.Millisecond, time.Hour, command.Durations, "`time` between two syncs; at most a quarter of the window")
	command.Ranged(flags, &o.slice, "slice", 16_384, 1, 1<<24, command.Integers, "`draws` of a key between two ticks, by all workers; they are repeated until the tick")
	command.Ranged(flags, &o.seed, "seed", 1, 0, 1<<64-1, command.Unsigned, "`seed` of the traffic")
	command.Ranged(flags, &o.closing, "close-timeout", 30*time.Second, time.Millisecond, time.Hour, command.Durations, "how `long` closing the limiters may take")
	flags.Func("redis", "servers to run on, as `url,url`; none: an embedded one", func(list string) error {
		o.redis = strings.Split(list, ",")
		return nil
	})
	flags.BoolVar(&o.clean, "clean", false, "delete the run's keys from the servers when it ends")
	flags.StringVar(&o.json, "json", "", "write the results as JSON to this `file`; -: to standard output")
	flags.BoolVar(&o.env, "env", false, "take the configuration from GLOBAL_RATE_LIMIT_… and print it; other flags win over it")
	return flags
}

// check judges flags against each other.
func (o *options) check() error {
	switch {
	case o.workers < o.nodes || o.workers%o.nodes != 0:
		return fmt.Errorf("invalid value %d for flag -workers: want a multiple of -nodes (%d), or 0", o.workers, o.nodes)
	case !o.env && o.tick > o.window/4:
		return fmt.Errorf("invalid value %v for flag -tick: want at most a quarter of -window (%v)", o.tick, o.window)
	case o.set["redis"]:
		return o.checkRedis()
	}
	return nil
}

// checkRedis judges -redis. It is not the flag package's to do, for that shows the
// value, which may hold a password.
func (o *options) checkRedis() error {
	targets, err := redisurl.ParseList(o.redis)
	if err == nil && len(targets) == 0 {
		err = errors.New("no URL: want at least one")
	}
	for _, target := range targets {
		if target.Memory {
			err = errors.New("memory:// is no server: want redis://, rediss:// or unix:// URLs, or -env for memory://")
		}
	}
	if err != nil {
		return fmt.Errorf("invalid value for flag -redis: %w", err)
	}
	return nil
}

// usage writes what the flags are.
func usage(flags *flag.FlagSet, help io.Writer) {
	fmt.Fprintf(help, "Usage: bench [flags], or bench command [flags] with one of the commands: %s\n\n", strings.Join(command.Names(), ", "))
	fmt.Fprint(help, "Runs limiters against a shared Redis at full speed and accounts for every unit.\n\n")
	flags.SetOutput(help)
	flags.PrintDefaults()
}
