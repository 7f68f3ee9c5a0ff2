package overrides

// This file is the file source.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// File returns the source that is a file with the JSON object that [Parse] reads.
//
// Each Load opens the path anew and reads all of it, so a file that is replaced by
// a rename, or behind a symbolic link that is switched over (as Kubernetes does
// with a ConfigMap), is noticed at the next refresh, on every file system. Replace
// the file by a rename: one that is written in place may be read half-written,
// which is malformed and changes nothing.
func File(path string) Source {
	return SourceFunc(func(context.Context) (map[string]uint64, error) { return loadFile(path) })
}

func loadFile(path string) (map[string]uint64, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: %w", ErrAbsent, err)
	case err != nil:
		return nil, fmt.Errorf("overrides: %w", err)
	case !info.Mode().IsRegular(): // a pipe would block
		return nil, malformed("%s is no regular file", path)
	}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %w", ErrAbsent, err)
	} else if err != nil {
		return nil, fmt.Errorf("overrides: %w", err)
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("overrides: %w", err)
	}
	parsed, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return parsed, nil
}
