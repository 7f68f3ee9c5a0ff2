package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tree writes files below a new directory.
func tree(t *testing.T, files map[string]string) (root string) {
	t.Helper()
	root = t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

const source = `// Package a is documented.
package a

import "time"

// Most is exported.
const Most, least = 2, 1

// A T has fields.
type T struct {
	Wait time.Duration // exported
	held int
}

// Do does.
func (t *T) Do(n int) error { return nil }

func (t *T) hidden() {}

// New makes one.
func New(options ...func(*T)) *T { return &T{held: least} }

// An I is an interface.
type I interface{ Do(n int) error }
`

const listed = `package a // pkg/a

const Most, _ = 2, 1

type I interface{ Do(n int) error }

type T struct{ Wait time.Duration }

func New(options ...func(*T)) *T

func (t *T) Do(n int) error
`

func TestWhatAPackageExportsIsListed(t *testing.T) {
	t.Parallel()
	root := tree(t, map[string]string{
		"pkg/a/a.go":          source,
		"pkg/a/a_test.go":     "package a\n\nfunc Tested() {}\n",
		"pkg/internal/b/b.go": "package b\n\nfunc Hidden() {}\n",
		"cmd/c/main.go":       "package main\n\nfunc main() {}\n",
		"gen/d.go":            "package d\n\nfunc Hidden() {}\n",
	})
	if err := run(nil, root, io.Discard); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "docs/api/pkg-a.txt"))
	if err != nil || string(text) != listed {
		t.Errorf("the listing is %v\n%s\nwant\n%s", err, text, listed)
	}
	if entries, _ := os.ReadDir(filepath.Join(root, listings)); len(entries) != 1 {
		t.Errorf("%d packages are listed, want 1", len(entries))
	}
	if err := run([]string{"-check"}, root, io.Discard); err != nil {
		t.Errorf("what was just written: %v", err)
	}
}

func TestAChangedAPIIsStale(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(root string) error{
		"a.txt is stale": func(root string) error {
			return os.WriteFile(filepath.Join(root, "pkg/a/more.go"), []byte("package a\n\nfunc More() {}\n"), 0o644)
		},
		"a.txt lists no package": func(root string) error { return os.RemoveAll(filepath.Join(root, "pkg/a")) },
		"b.txt is stale": func(root string) error {
			return os.CopyFS(filepath.Join(root, "pkg/b"), os.DirFS(filepath.Join(root, "pkg/a")))
		},
	} {
		root := tree(t, map[string]string{"pkg/a/a.go": source})
		if err := run(nil, root, io.Discard); err != nil {
			t.Fatal(err)
		}
		if err := change(root); err != nil {
			t.Fatal(err)
		}
		if err := run([]string{"-check"}, root, io.Discard); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v, want %q", err, name)
		}
		if err := run(nil, root, io.Discard); err != nil {
			t.Fatal(err)
		}
		if err := run([]string{"-check"}, root, io.Discard); err != nil {
			t.Errorf("%s, written again: %v", name, err)
		}
	}
}

func TestACommentIsNoChange(t *testing.T) {
	t.Parallel()
	root := tree(t, map[string]string{"pkg/a/a.go": source})
	if err := run(nil, root, io.Discard); err != nil {
		t.Fatal(err)
	}
	changed := strings.ReplaceAll(source, "is documented", "says more") + "\nfunc unexported() {}\n"
	if err := os.WriteFile(filepath.Join(root, "pkg/a/a.go"), []byte(changed), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := run([]string{"-check"}, root, io.Discard); err != nil {
		t.Errorf("a comment and what is not exported: %v", err)
	}
}

func TestWrongArgumentsAreErrors(t *testing.T) {
	t.Parallel()
	root := tree(t, map[string]string{"pkg/a/a.go": source, "pkg/b/b.go": "package b\n\nfunc {\n"})
	for _, args := range [][]string{{"-nonsense"}, {"more"}, nil} {
		if err := run(args, root, io.Discard); err == nil {
			t.Errorf("%q in a tree that does not parse: no error", args)
		}
	}
}
