//go:build ignore

// Tools runs a development tool at the version pinned here:
//
//	go run tools.go staticcheck ./...
//
// The tools are not in go.mod, so neither their dependencies nor the Go version
// they need become those of the library's users.
package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
)

var tools = map[string]string{
	"benchstat":   "golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da",
	"gofumpt":     "mvdan.cc/gofumpt@v0.12.0",
	"govulncheck": "golang.org/x/vuln/cmd/govulncheck@v1.9.0",
	"staticcheck": "honnef.co/go/tools/cmd/staticcheck@v0.8.2",
}

func main() {
	if len(os.Args) < 2 || tools[os.Args[1]] == "" {
		fmt.Fprintf(os.Stderr, "usage: go run tools.go tool [arguments]\ntools: %v\n", slices.Sorted(maps.Keys(tools)))
		os.Exit(2)
	}
	command := exec.Command("go", append([]string{"run", tools[os.Args[1]]}, os.Args[2:]...)...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := command.Run()
	var failed *exec.ExitError
	switch {
	case errors.As(err, &failed):
		os.Exit(failed.ExitCode())
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
