// Package command is what the bench's runs have in common as commands.
package command

import (
	"context"
	"io"
)

// The exit statuses.
const (
	OK     = 0
	Failed = 1 // the run failed, or what it checks does not hold
	Usage  = 2 // wrong flags or configuration
)

// A Command is one of the bench's runs. It gets the arguments after its name, returns
// the exit status, and ends early, with what it has, when ctx ends.
type Command func(ctx context.Context, args []string, stdout, stderr io.Writer) int
