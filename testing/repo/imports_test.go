package repo

// This file checks what imports what.

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A listed package is what go list -json says of one.
type listed struct {
	ImportPath string
	Standard   bool
	Imports    []string
	Module     *struct{ Path string }
}

func goList(t *testing.T, args ...string) []listed {
	t.Helper()
	return goListIn(t, ".", args...)
}

// goListIn is goList in a directory from the root.
func goListIn(t *testing.T, directory string, args ...string) []listed {
	t.Helper()
	command := exec.Command("go", append([]string{"list", "-json=ImportPath,Standard,Imports,Module"}, args...)...)
	command.Dir = filepath.Join(root, directory)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", command.Args, err, stderr.Bytes())
	}
	var packages []listed
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatalf("%v: %v", command.Args, err)
		}
		packages = append(packages, p)
	}
}

// What the library brings with it is decided, not drifted into: a new module goes
// into testdata/dependencies.txt in the commit that says why.
func TestLibraryDependencies(t *testing.T) {
	t.Parallel()
	const list = "testing/repo/testdata/dependencies.txt"
	var want []string
	for line := range strings.Lines(contents(t, list)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			want = append(want, line)
		}
	}
	var got []string
	for _, p := range goList(t, "-deps", "./ratelimit") {
		if p.Module != nil && p.Module.Path != module && !slices.Contains(got, p.Module.Path) {
			got = append(got, p.Module.Path)
		}
	}
	for _, path := range got {
		if !slices.Contains(want, path) {
			t.Errorf("ratelimit depends on %s, which is not in %s", path, list)
		}
	}
	for _, path := range want {
		if !slices.Contains(got, path) {
			t.Errorf("%s lists %s, on which ratelimit does not depend", list, path)
		}
	}
}

func TestLibraryImportsNothingForTests(t *testing.T) {
	t.Parallel()
	for _, p := range goList(t, "-deps", "./ratelimit") {
		for _, path := range p.Imports {
			if !p.Standard && isForTests(path) {
				t.Errorf("%s, a dependency of ratelimit, imports %s", p.ImportPath, path)
			}
		}
	}
}

func TestOnlyTestsAndTheBenchImportTesting(t *testing.T) {
	t.Parallel()
	for _, p := range goList(t, "./...") {
		local := strings.TrimPrefix(p.ImportPath, module+"/")
		if strings.HasPrefix(local, "testing/") || strings.HasPrefix(local, "cmd/bench") {
			continue
		}
		for _, path := range p.Imports {
			if isForTests(path) {
				t.Errorf("%s imports %s", p.ImportPath, path)
			}
		}
	}
}

func isForTests(path string) bool {
	return path == "testing" || strings.HasPrefix(path, "testing/") || strings.HasPrefix(path, module+"/testing/")
}

// modules are the directories with modules of their own, the root first.
func modules(t *testing.T) (directories []string) {
	t.Helper()
	directories = []string{"."}
	for _, file := range files(t, "go.mod") {
		if directory := path.Dir(file); directory != "." {
			directories = append(directories, directory)
		}
	}
	return directories
}

// A drawn is where the drawing in docs/design.md has a package: its row from the top and
// its place in the row. A directory with all below it stands in one place.
type drawn struct {
	directory  string
	row, place int
	whole      bool
}

// drawing reads the rows of packages in docs/design.md: a name in words, two spaces or
// more, and the packages with two spaces between them.
func drawing(t *testing.T) (all []drawn) {
	t.Helper()
	_, section, _ := strings.Cut(contents(t, "docs/design.md"), "\n## Packages\n")
	section, _, _ = strings.Cut(section, "\n## ")
	row := 0
	for line := range strings.Lines(section) {
		if !strings.HasPrefix(line, "    ") || strings.TrimSpace(line) == "│" {
			continue
		}
		row++
		for place, name := range regexp.MustCompile(` {2,}`).Split(strings.TrimSpace(line), -1)[1:] {
			directory, whole := strings.CutSuffix(name, "/…")
			all = append(all, drawn{directory, row, place, whole})
		}
	}
	return all
}

func (d drawn) holds(local string) bool {
	return local == d.directory || d.whole && strings.HasPrefix(local, d.directory+"/")
}

// above says whether a package here may import one there.
func (d drawn) above(other drawn) bool {
	return d.row < other.row || d.row == other.row && d.place > other.place || d.whole && d == other
}

func TestImportsPointTheWayThatTheDrawingShows(t *testing.T) {
	t.Parallel()
	all := drawing(t)
	find := func(local string) (drawn, bool) {
		for _, d := range all {
			if d.holds(local) {
				return d, true
			}
		}
		return drawn{}, false
	}
	seen := map[drawn]bool{}
	for _, directory := range modules(t) {
		for _, p := range goListIn(t, directory, "-find", "./...") {
			local := strings.TrimPrefix(p.ImportPath, module+"/")
			from, ok := find(local)
			if !ok {
				t.Errorf("the drawing of packages in docs/design.md lacks %s", local)
				continue
			}
			seen[from] = true
			for _, imported := range p.Imports {
				imported, ours := strings.CutPrefix(imported, module+"/")
				if to, ok := find(imported); ours && ok && !from.above(to) {
					t.Errorf("%s imports %s, which the drawing in docs/design.md has above or right of it", local, imported)
				}
			}
		}
	}
	for _, d := range all {
		if !seen[d] {
			t.Errorf("the drawing of packages in docs/design.md has %s, where there is no package", d.directory)
		}
	}
}
