// Package page brings what was measured into a page: each place in it that names a
// file of results gets the file's text. `make performance` measures and calls it.
package page

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/hanzoai/limiters/cmd/bench/internal/command"
)

// A place in the page is
//
//	<!-- results: performance-data/tick.txt -->
//	…
//	<!-- end -->
//
// with a path from the page's directory. What stands between is replaced: by the
// text in a code block, by an image if the name ends in .svg, and by a line that
// says so if there is no such file.
var resultsPlace = regexp.MustCompile(`(?s)(<!-- results: (\S+) -->\n).*?(<!-- end -->)`)

// notMeasured is what stands where there is no file.
const notMeasured = "*Not measured yet: `make performance` does.*\n"

// Run is the command.
func Run(_ context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("bench page", flag.ContinueOnError)
	flags.SetOutput(stderr)
	path := flags.String("page", "docs/performance.md", "the page to bring up to date, a `file`")
	about := flags.Bool("about", false, "print when and where this is instead: the head of a page's results")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return command.OK
	case err != nil || flags.NArg() > 0:
		fmt.Fprintln(stderr, "bench page: want flags only (bench page -h lists them)")
		return command.Usage
	}
	if *about {
		writeAbout(stdout)
		return command.OK
	}
	text, err := os.ReadFile(*path)
	if err == nil {
		var filled string
		if filled, err = fillPage(string(text), filepath.Dir(*path)); err == nil {
			err = os.WriteFile(*path, []byte(filled), 0o644)
		}
	}
	if err != nil {
		fmt.Fprintf(stderr, "bench page: %v\n", err)
		return command.Failed
	}
	return command.OK
}

// fillPage returns the page with the results of the files below dir.
func fillPage(text, dir string) (filled string, err error) {
	if !resultsPlace.MatchString(text) {
		return "", errors.New("the page has no place for results")
	}
	filled = resultsPlace.ReplaceAllStringFunc(text, func(place string) string {
		parts := resultsPlace.FindStringSubmatch(place)
		shown, failed := shownResults(dir, parts[2])
		err = errors.Join(err, failed)
		return parts[1] + shown + parts[3]
	})
	return filled, err
}

// shownResults returns what a page shows of a file.
func shownResults(dir, name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return notMeasured, nil
	case err != nil:
		return "", err
	case strings.HasSuffix(name, ".svg"):
		alternative := strings.TrimSuffix(filepath.Base(name), ".svg")
		return fmt.Sprintf("![%s](%s)\n", alternative, name), nil
	case strings.Contains(string(text), "```"):
		return "", fmt.Errorf("%s would end its code block", name)
	}
	return "```text\n" + strings.Trim(string(text), "\n") + "\n```\n", nil
}
