// Command bench runs the limiter: how fast it decides, what it costs Redis, how
// accurate a fleet is, and whether every unit that was counted arrives once.
//
// Without a command it makes the throughput run. Each run is a package of its own:
//
//	throughput  internal/throughput  decisions per second, and conservation
//	tick        internal/tick        a sync beside plain pipelines
//	accuracy    internal/accuracy    what a fleet admits, in virtual time
//	one-key     internal/onekey      a key's minute, second by second
//	page        internal/page        docs/performance.md from committed results
//
// A run exits with status 1 if it fails or what it checks does not hold, and 2 if it
// was asked for something it cannot do.
//
//	go run ./cmd/bench
//	go run ./cmd/bench -redis redis://127.0.0.1:6379,redis://127.0.0.1:6380 -nodes 8
package main

import (
	"context"
	"io"
	"os"
	"os/signal"

	"github.com/hanzoai/limiters/cmd/bench/internal/accuracy"
	"github.com/hanzoai/limiters/cmd/bench/internal/command"
	"github.com/hanzoai/limiters/cmd/bench/internal/onekey"
	"github.com/hanzoai/limiters/cmd/bench/internal/page"
	"github.com/hanzoai/limiters/cmd/bench/internal/throughput"
	"github.com/hanzoai/limiters/cmd/bench/internal/tick"
)

// runs are what the first argument chooses from. A run that is added is added here and
// in command.Names.
var runs = map[string]command.Command{
	"accuracy":   accuracy.Run,
	"one-key":    onekey.Run,
	"page":       page.Run,
	"throughput": throughput.Run,
	"tick":       tick.Run,
}

func main() {
	// The first interrupt ends the run with its summary; a second one kills it.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run picks the run: that of throughput if the first argument is no run's name.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 {
		if chosen := runs[args[0]]; chosen != nil {
			return chosen(ctx, args[1:], stdout, stderr)
		}
	}
	return throughput.Run(ctx, args, stdout, stderr)
}
