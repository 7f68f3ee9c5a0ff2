package main

// This file makes the accuracy run a command.

import (
	"context"
	"io"

	"github.com/hanzoai/limiters/cmd/bench/internal/accuracy"
)

// accuracyRun is the command: what fleets admit beside what they should, in virtual
// time.
func accuracyRun(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return accuracy.Run(ctx, args, stdout, stderr)
}
