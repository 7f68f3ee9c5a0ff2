// Package accuracy measures what a fleet admits beside what it should: scenarios of
// traffic by schedules of syncing, in virtual time, the same every time.
//
// The files in the order of a run: accuracy, own, scenario, scenarios, schedules, run,
// simulate, exact, targets, table, figure, picture, page.
package accuracy

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/hanzoai/limiters/cmd/bench/internal/command"
)

// usualSeed is that of docs/accuracy.md.
const usualSeed = 1

// options are the flags. Immutable after parseOptions.
type options struct {
	json  string // file; "-" is standard output; "" none
	svg   string // file; "" none
	page  string // file; "" none
	kinds string // file; "" none
	seed  uint64
	own   own
}

// Run makes the run that args ask for, without the command's name, and returns the
// exit status. It prints the table to stdout, or to stderr if the JSON goes there.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parseOptions(args, stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return command.OK
	case err != nil:
		fmt.Fprintf(stderr, "bench accuracy: %v\n(bench accuracy -h lists the flags)\n", err)
		return command.Usage
	}
	specs := scenarios()
	if o.own.asked {
		specs = []scenario{o.own.scenario()}
	}
	rows, err := measure(ctx, specs, o.seed)
	if err == nil {
		err = o.write(rows, stdout, stderr)
	}
	if err != nil {
		fmt.Fprintf(stderr, "bench accuracy: %v\n", err)
		return command.Failed
	}
	lines := missed(rows)
	for _, line := range lines {
		fmt.Fprintf(stderr, "missed: %s\n", line)
	}
	if len(lines) > 0 {
		return command.Failed
	}
	return command.OK
}

func parseOptions(args []string, help io.Writer) (*options, error) {
	o := &options{}
	flags := flag.NewFlagSet("bench accuracy", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Usage = func() {}
	flags.StringVar(&o.json, "json", "", "write the rows as JSON to this `file`; -: to standard output")
	flags.StringVar(&o.svg, "svg", "", "draw the worst windows into this `file`")
	flags.StringVar(&o.kinds, "kinds", "", "draw one burst under each kind of window into this `file`")
	flags.StringVar(&o.page, "page", "", "write docs/accuracy.md to this `file`")
	flags.Uint64Var(&o.seed, "seed", usualSeed, "`seed` of the traffic")
	o.own.flags(flags)
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprint(help, "Usage: bench accuracy [flags]\n\n"+
				"Simulates fleets in virtual time and prints what they admit beside what they should:\n"+
				"many kinds of traffic, or, if one of "+ownFlags+" is given, a steady load of your own.\n\n")
			flags.SetOutput(help)
			flags.PrintDefaults()
		}
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q: want flags only", flags.Arg(0))
	}
	if err := o.own.check(flags); err != nil {
		return nil, err
	}
	if o.own.asked && o.page+o.svg+o.kinds != "" {
		return nil, errors.New("-page, -svg and -kinds show all scenarios, not one of your own")
	}
	return o, nil
}

// write writes the rows in every form that is asked for.
func (o *options) write(rows []row, stdout, stderr io.Writer) error {
	text := stdout
	if o.json == "-" {
		text = stderr
	}
	if err := writeTable(text, rows); err != nil {
		return err
	}
	for _, out := range []struct {
		file  string
		write func(io.Writer, []row) error
	}{{o.json, writeJSON}, {o.svg, writeFigure}, {o.kinds, writePicture}, {o.page, writePage}} {
		var err error
		switch out.file {
		case "":
		case "-":
			err = out.write(stdout, rows)
		default:
			err = writeFile(out.file, rows, out.write)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// writeFile writes the rows to a file. An error leaves it in part.
func writeFile(name string, rows []row, write func(io.Writer, []row) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(f, rows), f.Close())
}

// writeJSON writes an array of rows, one a line.
func writeJSON(w io.Writer, rows []row) error {
	between := "[\n"
	for i := range rows {
		line, err := json.Marshal(&rows[i])
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "%s  %s", between, line); err != nil {
			return err
		}
		between = ",\n"
	}
	_, err := fmt.Fprint(w, "\n]\n")
	return err
}
