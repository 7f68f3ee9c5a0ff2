// Package tick is the tick run: what a sync costs Redis and the node, beside plain
// pipelines that do as much. The files in the order of a run: tick, load, limiter,
// pipeline, measure (usage), manners, profile, result, report.
package tick

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/hanzoai/limiters/cmd/bench/internal/command"
	"github.com/hanzoai/limiters/cmd/bench/internal/figures"
	"github.com/hanzoai/limiters/cmd/bench/localredis"
	"github.com/hanzoai/limiters/internal/redisurl"
)

// options are the flags of a tick run. Immutable after parseOptions.
type options struct {
	redis  string // URL; "" starts a server
	sizes  []int
	window time.Duration
	tick   time.Duration
	json   string // "-" is standard output; "" none

	cpuProfile, memProfile string // files; "" none
}

// ticksPerWindow is how many ticks are measured.
func (o *options) ticksPerWindow() int { return int(o.window / o.tick) }

// Run is the command: it measures every size and prints the ratios. Time is
// virtual, so that a window of ticks takes as long as they take.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parseOptions(args, stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return command.OK
	case err != nil:
		fmt.Fprintf(stderr, "bench tick: %v\n(bench tick -h lists the flags)\n", err)
		return command.Usage
	}
	target, stop, err := serverAt(o.redis)
	if err != nil {
		fmt.Fprintf(stderr, "bench tick: %v\n", err)
		return command.Usage
	}
	defer stop()
	text := stdout // what people read
	if o.json == "-" {
		text = stderr
	}
	all, err := measureSizes(ctx, o, target, stderr)
	if err != nil {
		fmt.Fprintf(stderr, "bench tick: %v\n", err)
		return command.Failed
	}
	writeReport(text, o, all)
	if o.json != "" {
		if err := writeJSON(o.json, stdout, all); err != nil {
			fmt.Fprintf(stderr, "bench tick: %v\n", err)
			return command.Failed
		}
	}
	return command.OK
}

// measureSizes measures one size after the other, and profiles if asked to.
func measureSizes(ctx context.Context, o *options, target redisurl.Target, stderr io.Writer) (all []result, err error) {
	stop, err := startProfiles(o.cpuProfile, o.memProfile)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	for _, size := range o.sizes {
		fmt.Fprintf(stderr, "%s entities ...\n", figures.Grouped(uint64(size)))
		r, err := measure(ctx, o, target, size)
		if err != nil {
			return nil, fmt.Errorf("%s entities: %w", figures.Grouped(uint64(size)), err)
		}
		all = append(all, r)
	}
	return all, nil
}

// serverAt returns the Redis to run on, and what ends it if the run started it.
func serverAt(url string) (target redisurl.Target, stop func(), err error) {
	stop = func() {}
	if url == "" {
		server, err := localredis.Start()
		if errors.Is(err, localredis.ErrNone) {
			return target, stop, fmt.Errorf("a Redis is needed, for its processor time is measured: give -redis url, or install one (%w)", err)
		}
		if err != nil {
			return target, stop, err
		}
		url, stop = server.URL(), func() { _ = server.Stop() }
	}
	targets, err := redisurl.ParseList([]string{url})
	if err == nil && (len(targets) != 1 || targets[0].Memory) {
		err = errors.New("want the URL of one server")
	}
	if err != nil {
		stop()
		return target, func() {}, fmt.Errorf("invalid value for flag -redis: %w", err)
	}
	return targets[0], stop, nil
}

func parseOptions(args []string, help io.Writer) (*options, error) {
	o := &options{sizes: []int{100, 1000, 5000, 20_000}}
	flags := flag.NewFlagSet("bench tick", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Usage = func() {}
	flags.StringVar(&o.redis, "redis", "", "the server to run on, a `url`; none: a redis-server from PATH is started")
	flags.Func("sizes", "active `entities` per tick, as 100,1000 (default 100,1000,5000,20000)", func(list string) (err error) {
		o.sizes, err = parseSizes(list)
		return err
	})
	command.Ranged(flags, &o.window, "window", time.Minute, time.Second, time.Hour, command.Durations, "sliding `window`, and how many ticks are measured: those of one")
	command.Ranged(flags, &o.tick, "tick", time.Second, 10*time.Millisecond, time.Minute, command.Durations, "`time` between two ticks, virtual")
	flags.StringVar(&o.json, "json", "", "write an object for each size and baseline, one on a line, to this `file`; -: to standard output")
	flags.StringVar(&o.cpuProfile, "cpuprofile", "", "write a CPU profile of the whole run to this `file`; (*tickedLimiter).sync is our ticks")
	flags.StringVar(&o.memProfile, "memprofile", "", "write a profile of the whole run's allocations to this `file`")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprint(help, "Usage: bench tick [flags]\n\nMeasures one window of ticks beside plain pipelines for the same entities.\n\n")
			flags.SetOutput(help)
			flags.PrintDefaults()
		}
		return nil, err
	}
	switch {
	case flags.NArg() > 0:
		return nil, fmt.Errorf("unexpected argument %q: want flags only", flags.Arg(0))
	case o.tick > o.window/10 || o.window%o.tick != 0:
		return nil, fmt.Errorf("invalid value %v for flag -tick: want a tenth of -window (%v) or a smaller part of it", o.tick, o.window)
	case o.window%time.Second != 0:
		return nil, fmt.Errorf("invalid value %v for flag -window: want whole seconds", o.window)
	}
	return o, nil
}

// maxSize bounds what a tick is asked to do at once.
const maxSize = 1_000_000

// parseSizes reads numbers between commas.
func parseSizes(list string) (sizes []int, err error) {
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || n < 1 || n > maxSize {
			return nil, fmt.Errorf("want integers from 1 to %d between commas", maxSize)
		}
		sizes = append(sizes, n)
	}
	return sizes, nil
}
