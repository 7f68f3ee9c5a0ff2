package repo

// This file checks the shape of sources: their lengths and names.

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strings"
	"testing"
)

func TestFileLengths(t *testing.T) {
	t.Parallel()
	for pattern, limit := range map[string]int{"*.go": 400, "*_test.go": 500, "*.lua": 80} {
		for _, file := range files(t, pattern) {
			source := contents(t, file)
			if isGenerated(source) || pattern == "*.go" && strings.HasSuffix(file, "_test.go") {
				continue
			}
			if got := strings.Count(source, "\n"); got > limit {
				t.Errorf("%s has %d lines, at most %d are allowed: split it by idea", file, got, limit)
			}
		}
	}
}

// emptyNames say nothing about what they name.
var emptyNames = []string{"util", "utils", "common", "type", "types", "helper", "helpers", "misc"}

func TestNamesSayWhatTheyName(t *testing.T) {
	t.Parallel()
	for _, file := range files(t, "*.go") {
		base := strings.TrimSuffix(strings.TrimSuffix(path.Base(file), ".go"), "_test")
		if slices.Contains(emptyNames, base) {
			t.Errorf("%s: a file is named for its idea", file)
		}
		if slices.Contains(emptyNames, strings.TrimSuffix(parse(t, file).Name.Name, "_test")) {
			t.Errorf("%s: a package is named for its idea", file)
		}
	}
}

func parse(t *testing.T, file string) *ast.File {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, contents(t, file), parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}
