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
	for pattern, limit := range map[string]int{"*.go": 400, "*_test.go": 500, "*.lua": 160} {
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

// Every source says first what it is for: in the package's doc comment, or in a
// comment of its own directly before or after the package clause. A test says it
// by its name.
func TestSourcesSayWhatTheyAreFor(t *testing.T) {
	t.Parallel()
	for _, file := range files(t, "*.go") {
		if strings.HasSuffix(file, "_test.go") || isGenerated(contents(t, file)) {
			continue
		}
		if !opensWithComment(parse(t, file)) {
			t.Errorf("%s: no comment before the imports says what the file is for", file)
		}
	}
}

// opensWithComment says whether the first thing in a file beside its package
// clause is a comment that people read: not a constraint, not a directive.
func opensWithComment(f *ast.File) bool {
	for _, group := range f.Comments {
		if len(f.Decls) > 0 && group.Pos() >= f.Decls[0].Pos() {
			return false
		}
		if strings.TrimSpace(group.Text()) == "" {
			continue // directives alone
		}
		// The comment of the first declaration speaks of that, not of the file.
		return len(f.Decls) == 0 || group != docOf(f.Decls[0])
	}
	return false
}

// docOf is a declaration's own comment.
func docOf(d ast.Decl) *ast.CommentGroup {
	if f, ok := d.(*ast.FuncDecl); ok {
		return f.Doc
	}
	return d.(*ast.GenDecl).Doc
}

func TestOpensWithComment(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]bool{
		"package x\n":                                                 false,
		"// Package x is one.\npackage x\n":                           true,
		"// This file.\n\npackage x\nimport \"io\"\n":                 true,
		"package x\n\n// This file.\n\nimport \"io\"\n":               true,
		"package x\n\n// This file.\n\n// F is one.\nfunc F() {}\n":   true,
		"package x\n\n// F is one.\nfunc F() {}\n":                    false,
		"package x\n\n// C is one.\nconst C = 1\n":                    false,
		"package x\nimport \"io\"\n\n// This file.\n":                 false,
		"//go:build linux\n\npackage x\nimport \"io\"\n":              false,
		"//go:build linux\n\npackage x\n\n// This file.\nvar _ int\n": false,
		"//go:build linux\n\n// This file.\n\npackage x\n":            true,
	} {
		parsed, err := parser.ParseFile(token.NewFileSet(), "x.go", source, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if got := opensWithComment(parsed); got != want {
			t.Errorf("opensWithComment = %t, want %t, for:\n%s", got, want, source)
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
