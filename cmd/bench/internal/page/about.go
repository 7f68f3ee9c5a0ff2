package page

// This file says when and where results were made.

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"
)

// writeAbout writes the date, the commit, the machine and the programs.
func writeAbout(w io.Writer) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range [][2]string{
		{"date", time.Now().UTC().Format(time.DateOnly)},
		{"commit", commit()},
		{"processor", fmt.Sprintf("%s, %d cores", processorModel(), runtime.NumCPU())},
		{"system", runtime.GOOS + "/" + runtime.GOARCH},
		{"Go", runtime.Version()},
		{"Redis", said("redis-server", "--version")},
	} {
		fmt.Fprintf(table, "%s\t%s\n", row[0], row[1])
	}
	_ = table.Flush()
}

// commit is the commit that is checked out, marked if files differ from it.
func commit() string {
	name := said("git", "rev-parse", "--short=12", "HEAD")
	if said("git", "status", "--porcelain", "--untracked-files=no", "--", ":!docs") != "" {
		name += " and changes"
	}
	return name
}

// said is the first line that a program prints, or why there is none.
func said(program string, args ...string) string {
	text, err := exec.Command(program, args...).Output()
	if err != nil {
		return "unknown: " + err.Error()
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	return line
}

// processorModel is the processor's name where /proc tells it.
func processorModel() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown processor"
	}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown processor"
}
