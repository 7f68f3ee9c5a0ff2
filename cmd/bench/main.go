// Command bench runs the limiter: how fast it decides, what it costs Redis, and
// whether every unit that was counted arrives there once.
//
// Without a command it makes the throughput run: several limiters ("nodes") in
// one process, on real servers or on one that it embeds, under a load with a
// power law's popularity. It prints a summary, and exits with status 1 if the
// units do not add up and 2 if it was asked for something it cannot do.
//
//	go run ./cmd/bench
//	go run ./cmd/bench -redis redis://127.0.0.1:6379,redis://127.0.0.1:6380 -nodes 8
//
// The files in the order of a run: main, flags, settings, throughput, backend
// (embedded, servers, memory; meter), calibrate, mix, traffic, fleet, worker,
// latency, progress, readback, conserve, result, report.
package main

import (
	"context"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
)

// The exit statuses.
const (
	exitOK     = 0
	exitFailed = 1 // the run failed, or what it checks does not hold
	exitUsage  = 2 // wrong flags or configuration
)

// A command is one of the bench's runs. It returns the exit status, and ends
// early, with what it has, when ctx ends.
type command func(ctx context.Context, args []string, stdout, stderr io.Writer) int

// defaultCommand runs when the first argument is no command's name.
const defaultCommand = "throughput"

// commands are the runs that are asked for by name. A run that is added adds
// itself here.
func commands() map[string]command {
	return map[string]command{
		defaultCommand: throughput,
		"page":         page,
		"accuracy":     accuracyRun,
		"one-key":      oneKeyRun,
		"tick":         tickRun,
	}
}

func main() {
	// The first interrupt ends the run with its summary; a second one kills it.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run picks the command.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	name := defaultCommand
	if len(args) > 0 && commands()[args[0]] != nil {
		name, args = args[0], args[1:]
	}
	return commands()[name](ctx, args, stdout, stderr)
}

// commandNames lists the commands.
func commandNames() string {
	return strings.Join(slices.Sorted(maps.Keys(commands())), ", ")
}
