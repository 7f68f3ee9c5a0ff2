// Package onekey lives one key's minute on two nodes, on the virtual clock, and writes
// it down second by second: docs/one-key.md and its pictures.
//
// The files in the order of a run: onekey, story, live, reasons, page, picture.
package onekey

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/hanzoai/limiters/cmd/bench/internal/command"
)

// Run makes the run that args ask for, without the command's name, and returns the exit
// status. Without flags it prints the page.
func Run(_ context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("bench one-key", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Usage = func() {}
	page := flags.String("page", "", "write docs/one-key.md to this `file`; empty: to standard output")
	svg := flags.String("svg", "", "draw the levels into this `file`; empty: not at all")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, "Usage: bench one-key [flags]\n\n"+
			"Lives one key's minute on two nodes, in virtual time, and writes it down second by second.\n\n")
		flags.SetOutput(stdout)
		flags.PrintDefaults()
		return command.OK
	case err == nil && flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q: want flags only", flags.Arg(0))
	}
	if err != nil {
		fmt.Fprintf(stderr, "bench one-key: %v\n(bench one-key -h lists the flags)\n", err)
		return command.Usage
	}
	if err := write(*page, *svg, stdout); err != nil {
		fmt.Fprintf(stderr, "bench one-key: %v\n", err)
		return command.Failed
	}
	return command.OK
}

// write lives the minute under each kind and writes what is asked for.
func write(page, svg string, stdout io.Writer) error {
	var lives []life
	for _, kind := range kinds {
		l, err := live(kind)
		if err != nil {
			return err
		}
		lives = append(lives, l)
	}
	if page == "" {
		return errors.Join(writePage(stdout, lives), toFile(svg, lives, writePicture))
	}
	return errors.Join(toFile(page, lives, writePage), toFile(svg, lives, writePicture))
}

// toFile writes the lives to a file, if it has a name. An error leaves it in part.
func toFile(name string, lives []life, write func(io.Writer, []life) error) error {
	if name == "" {
		return nil
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(f, lives), f.Close())
}
