// Command limits looks at files of plans.
//
//	limits check plans.yaml
//	limits check -method GET -path /v1/x -key free-1 plans.yaml
//	limits schema
//
// check says all that is wrong with a file, with line and field, and ends with status 1 then. With
// a path it prints what would apply to such a request. Key functions that a program names
// itself are taken to be there. schema prints the file's JSON schema.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	_ "time/tzdata" // files name time zones

	"github.com/hanzoai/limiters/ratelimit/plans"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr, time.Now())) }

const usage = `usage: limits check [-method GET] [-host HOST] [-path PATH] [-key KEY] plans.yaml
       limits schema
`

// run returns the status of the process: 1 if the file is wrong, 2 if the command line is.
func run(args []string, out, errs io.Writer, now time.Time) int {
	if len(args) == 1 && args[0] == "schema" {
		_, _ = out.Write(plans.Schema())
		return 0
	}
	if len(args) == 0 || args[0] != "check" {
		fmt.Fprint(errs, usage)
		return 2
	}
	flags := flag.NewFlagSet("limits check", flag.ContinueOnError)
	flags.SetOutput(errs)
	flags.Usage = func() { fmt.Fprint(errs, usage); flags.PrintDefaults() }
	method := flags.String("method", "GET", "the request's `method`")
	host := flags.String("host", "", "the request's `host`")
	path := flags.String("path", "", "the request's `path`; without it the file alone is checked")
	key := flags.String("key", "", "the `key` that the request counts under")
	file, ok := parseArgs(flags, args[1:])
	if !ok {
		return 2
	}
	text, err := os.ReadFile(file)
	if err != nil {
		fmt.Fprintln(errs, err)
		return 1
	}
	f, err := plans.Parse(file, text)
	if err != nil {
		fmt.Fprintln(errs, err)
		return 1
	}
	fmt.Fprintf(out, "%s: good: %s, %s, %s\n", file, plural(len(f.Limits), "limit"), plural(len(f.Plans), "plan"), plural(len(f.Routes), "route"))
	if *path == "" {
		return 0
	}
	target := *path
	if *host != "" {
		target = "http://" + *host + target
	}
	e, err := f.Explain(*method, target, *key, now)
	if err != nil {
		fmt.Fprintln(errs, err)
		return 2
	}
	explain(out, *method+" "+target, *key, e)
	return 0
}

// parseArgs reads flags before and after the name of the file, of which there is one.
func parseArgs(flags *flag.FlagSet, args []string) (file string, ok bool) {
	var files []string
	for {
		if flags.Parse(args) != nil {
			return "", false
		}
		if flags.NArg() == 0 {
			break
		}
		files, args = append(files, flags.Arg(0)), flags.Args()[1:]
	}
	if len(files) != 1 {
		flags.Usage()
		return "", false
	}
	return files[0], true
}

// explain prints what applies to a request.
func explain(out io.Writer, request, key string, e plans.Explanation) {
	if e.Pattern == "" {
		fmt.Fprintf(out, "%s matches no route: it is not limited\n", request)
		return
	}
	fmt.Fprintf(out, "%s takes the route %q\n", request, e.Pattern)
	plan := "has no plan"
	if e.Plan != "" {
		plan = "has the plan " + e.Plan
	}
	fmt.Fprintf(out, "the key %q %s\n", key, plan)
	if e.List != "" {
		what, until := "is blocked", ""
		if e.List == "allow" {
			what = "is on the allow list, and passes uncounted"
		}
		if !e.Until.IsZero() {
			until = " until " + e.Until.Format(time.RFC3339)
		}
		fmt.Fprintf(out, "it %s%s\n", what, until)
		return
	}
	if len(e.Limits) == 0 {
		fmt.Fprintln(out, "no limit applies")
	}
	for _, l := range e.Limits {
		notes := []string{l.Kind, "by " + l.By}
		if l.Cost != 1 {
			notes = append(notes, "cost "+fmt.Sprint(l.Cost))
		}
		if l.Fleet {
			notes = append(notes, "asks Redis")
		}
		if l.DryRun {
			notes = append(notes, "dry run")
		}
		fmt.Fprintf(out, "  %s: %d per %s (%s)\n", l.Limit, l.Threshold, l.Window, strings.Join(notes, ", "))
	}
}

func plural(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}
