package main

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tree writes files below a new directory: a root module and one below it.
func tree(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	for name, text := range map[string]string{
		"go.mod":      "module github.com/hanzoai/limiters\n\ngo 1.26.0\n",
		"a.go":        "package limiters\n",
		"sub/go.mod":  "module github.com/hanzoai/limiters/sub\n\ngo 1.26.0\n\nrequire (\n\tgithub.com/hanzoai/limiters v0.0.1\n\texample.com/other v1.0.0\n)\n\nreplace github.com/hanzoai/limiters => ..\n",
		"sub/b.go":    "package sub\n",
		"bin/go.mod":  "module example.com/ignored\n",
		".x/y/go.mod": "module example.com/ignored\n",
	} {
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

const releasedSub = "module github.com/hanzoai/limiters/sub\n\ngo 1.26.0\n\nrequire (\n\texample.com/other v1.0.0\n\tgithub.com/hanzoai/limiters v0.2.0\n)\n"

func TestPreparedModulesReplaceNothing(t *testing.T) {
	t.Parallel()
	root := tree(t)
	var out bytes.Buffer
	if err := run(t.Context(), []string{"prepare", "v0.2.0"}, root, &out); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "sub/go.mod"))
	if err != nil || !sameLines(string(text), releasedSub) {
		t.Errorf("sub/go.mod is %v\n%s\nwant\n%s", err, text, releasedSub)
	}
	for _, tag := range []string{"git tag v0.2.0\n", "git tag sub/v0.2.0\n"} {
		if !strings.Contains(out.String(), tag) {
			t.Errorf("it says %q, which lacks %q", &out, tag)
		}
	}
}

// sameLines compares texts but for the order of their lines.
func sameLines(a, b string) bool {
	count := map[string]int{}
	for line := range strings.Lines(a) {
		count[line]++
	}
	for line := range strings.Lines(b) {
		count[line]--
	}
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return true
}

func TestTheProxyServesEachModuleByItself(t *testing.T) {
	t.Parallel()
	root, proxy := tree(t), t.TempDir()
	all, err := modules(root)
	if err != nil {
		t.Fatal(err)
	}
	if err := publish(root, proxy, "v0.2.0", all); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string][]string{
		"github.com/hanzoai/limiters":     {"go.mod", "a.go"},
		"github.com/hanzoai/limiters/sub": {"go.mod", "b.go"},
	} {
		archive, err := zip.OpenReader(filepath.Join(proxy, path, "@v/v0.2.0.zip"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { archive.Close() })
		found := map[string]string{}
		for _, file := range archive.File {
			name := strings.TrimPrefix(file.Name, path+"@v0.2.0/")
			opened, err := file.Open()
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(opened)
			if err != nil {
				t.Fatal(err)
			}
			found[name] = string(text)
		}
		for _, name := range want {
			if _, ok := found[name]; !ok {
				t.Errorf("%s has no %s", path, name)
			}
		}
		for name := range found {
			if strings.HasPrefix(name, "sub/") || strings.HasPrefix(name, "bin/") {
				t.Errorf("%s has %s, which is another module's", path, name)
			}
		}
		if strings.Contains(found["go.mod"], "replace") || strings.Contains(found["go.mod"], "v0.0.1") {
			t.Errorf("%s has the go.mod\n%s", path, found["go.mod"])
		}
	}
}

func TestWrongArgumentsAreErrors(t *testing.T) {
	t.Parallel()
	root := tree(t)
	for _, args := range [][]string{nil, {"prepare"}, {"prepare", "0.2.0"}, {"prepare", "v0.2"}, {"check", "more"}, {"publish"}} {
		if err := run(t.Context(), args, root, io.Discard); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
	if err := run(t.Context(), []string{"check"}, filepath.Join(root, ".x"), io.Discard); err == nil || !strings.Contains(err.Error(), "root of the repository") {
		t.Errorf("in another directory: %v", err)
	}
}
