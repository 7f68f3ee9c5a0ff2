// Api lists what the public packages export, one file for each in docs/api, so that a
// change of the API is seen in a diff:
//
//	go run ./gen/api          write the files
//	go run ./gen/api -check   exit 1 and name the files that are stale
//
// It is run from the root of the module.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// listings is where the files are, from the root.
const listings = "docs/api"

// private are the directories whose packages are no API (docs/versioning.md).
var private = []string{"cmd", "gen", "docs", "bin", "testing/integration", "testing/repo", "ratelimit/envoylimit/beside"}

func main() {
	if err := run(os.Args[1:], ".", os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run writes or checks the listings under root, and reports to out.
func run(args []string, root string, out io.Writer) error {
	flags := flag.NewFlagSet("api", flag.ContinueOnError)
	flags.SetOutput(out)
	check := flags.Bool("check", false, "write nothing; fail if a file is stale")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("api: %w", err)
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("api: unexpected argument %q", flags.Arg(0))
	}
	files, err := list(root)
	if err != nil {
		return fmt.Errorf("api: %w", err)
	}
	if *check {
		return stale(root, files)
	}
	return write(root, files, out)
}

// list returns the listing of each public package, by its file's path from the root.
func list(root string) (map[string][]byte, error) {
	files := map[string][]byte{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		local, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		local = filepath.ToSlash(local)
		if name := entry.Name(); name == "internal" || name == "testdata" || local != "." && name[0] == '.' || slices.Contains(private, local) {
			return filepath.SkipDir
		}
		text, err := listing(path, local)
		if len(text) > 0 {
			files[listings+"/"+strings.ReplaceAll(local, "/", "-")+".txt"] = text
		}
		return err
	})
	return files, err
}

// stale returns an error that names each listing which is missing, differs or has no
// package any more.
func stale(root string, files map[string][]byte) error {
	var errs []error
	for file, text := range files {
		if found, err := os.ReadFile(filepath.Join(root, file)); err != nil || !bytes.Equal(found, text) {
			errs = append(errs, fmt.Errorf("api: %s is stale", file))
		}
	}
	for _, file := range leftOver(root, files) {
		errs = append(errs, fmt.Errorf("api: %s lists no package", file))
	}
	return errors.Join(errs...)
}

// write writes the listings that differ and removes those of packages that are gone.
func write(root string, files map[string][]byte, out io.Writer) error {
	if err := os.MkdirAll(filepath.Join(root, listings), 0o755); err != nil {
		return err
	}
	for _, file := range leftOver(root, files) {
		if err := os.Remove(filepath.Join(root, file)); err != nil {
			return err
		}
	}
	for file, text := range files {
		path := filepath.Join(root, file)
		if found, err := os.ReadFile(path); err == nil && bytes.Equal(found, text) {
			continue
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return err
		}
		fmt.Fprintln(out, file)
	}
	return nil
}

// leftOver returns the files among the listings that list nothing which is there.
func leftOver(root string, files map[string][]byte) (names []string) {
	entries, _ := os.ReadDir(filepath.Join(root, listings)) // which may not exist yet
	for _, entry := range entries {
		if file := listings + "/" + entry.Name(); files[file] == nil {
			names = append(names, file)
		}
	}
	return names
}
