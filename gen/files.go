// Generated files: where they are, and whether the tree holds what the tables
// say.

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A file is a generated file.
type file struct {
	path    string // below the module's root, with slashes
	content []byte
}

// staleFiles returns the paths of the files that are missing under root or hold
// something else.
func staleFiles(root string, files []file) ([]string, error) {
	var stale []string
	for _, f := range files {
		have, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(f.path)))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			stale = append(stale, f.path)
		case err != nil:
			return nil, fmt.Errorf("gen: %w", err)
		case !bytes.Equal(have, f.content):
			stale = append(stale, f.path)
		}
	}
	return stale, nil
}

// checkFiles fails if a file under root is stale; the error names each.
func checkFiles(root string, files []file) error {
	stale, err := staleFiles(root, files)
	if err != nil {
		return err
	}
	if len(stale) > 0 {
		return fmt.Errorf("gen: stale: %s\nrun: make generate", strings.Join(stale, ", "))
	}
	return nil
}

// writeFiles writes the stale files under root and reports each to out.
func writeFiles(root string, files []file, out io.Writer) error {
	stale, err := staleFiles(root, files)
	if err != nil {
		return err
	}
	for _, f := range files {
		for _, path := range stale {
			if path != f.path {
				continue
			}
			name := filepath.Join(root, filepath.FromSlash(path))
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				return fmt.Errorf("gen: %w", err)
			}
			if err := os.WriteFile(name, f.content, 0o644); err != nil {
				return fmt.Errorf("gen: %w", err)
			}
			fmt.Fprintf(out, "gen: wrote %s\n", path)
		}
	}
	return nil
}
