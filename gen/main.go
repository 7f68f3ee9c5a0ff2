// Gen writes what is derived from the tables in this directory: the typed
// configuration, the metrics, the reference page of each, the dashboard and the
// alert rules.
//
//	go run ./gen          write the files
//	go run ./gen -check   exit 1 and name the files that are stale
//
// It is run from the root of the module.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
)

var allTables = tables{Config: configTable, Metrics: metricsTable, Dashboard: dashboardTable, Alerts: alertsTable}

func main() {
	if err := run(os.Args[1:], ".", os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run writes or checks the generated files under root, and reports to out.
func run(args []string, root string, out io.Writer) error {
	flags := flag.NewFlagSet("gen", flag.ContinueOnError)
	flags.SetOutput(out)
	check := flags.Bool("check", false, "write nothing; fail if a file is stale")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("gen: %w", err)
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("gen: unexpected argument %q", flags.Arg(0))
	}
	files, err := generate(allTables)
	if err != nil {
		return err
	}
	if *check {
		return checkFiles(root, files)
	}
	return writeFiles(root, files, out)
}
