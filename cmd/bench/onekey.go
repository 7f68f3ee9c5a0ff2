package main

// This file makes one key's life a command.

import (
	"context"
	"io"

	"github.com/hanzoai/limiters/cmd/bench/internal/onekey"
)

// oneKeyRun is the command: a minute of one key on two nodes, second by second.
func oneKeyRun(_ context.Context, args []string, stdout, stderr io.Writer) int {
	return onekey.Run(args, stdout, stderr)
}
