// Command release prepares a release of the repository's modules and tries one.
//
//	go run ./cmd/release check              build consumers outside the tree
//	go run ./cmd/release prepare v0.1.0     make every go.mod that of the release
//
// In the repository the modules replace each other by their directories. A user gets
// them without that: check serves the modules from a file-system proxy, as they would
// be tagged, and builds, vets and runs a module that imports every public package, and
// installs every command. It is run from the root of the repository.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"

	"golang.org/x/mod/semver"
)

// tried is the version under which check serves the modules. It must be the one that
// they require each other at.
const tried = "v0.1.0"

const usage = "usage: go run ./cmd/release check | prepare vMAJOR.MINOR.PATCH"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], ".", os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run does what args say to the repository at root.
func run(ctx context.Context, args []string, root string, out io.Writer) error {
	switch {
	case len(args) == 1 && args[0] == "check":
		return check(ctx, root, out)
	case len(args) == 2 && args[0] == "prepare":
		if version := args[1]; semver.Canonical(version) != version {
			return fmt.Errorf("release: %q is no version: want vMAJOR.MINOR.PATCH", version)
		}
		return prepare(root, args[1], out)
	}
	return errors.New(usage)
}

// prepare makes every go.mod of the tree that of the release, and says what to tag.
func prepare(root, version string, out io.Writer) error {
	all, err := modules(root)
	if err != nil {
		return err
	}
	for _, m := range all {
		text, err := m.released(version)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(root, m.directory, "go.mod"), text, 0o644); err != nil {
			return err
		}
	}
	fmt.Fprintln(out, "Commit this on a branch of its own, and tag the commit:")
	for _, m := range all {
		fmt.Fprintf(out, "  git tag %s\n", m.tag(version))
	}
	return nil
}
