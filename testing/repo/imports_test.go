package repo

// This file checks what imports what.

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
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
	command := exec.Command("go", append([]string{"list", "-json=ImportPath,Standard,Imports,Module"}, args...)...)
	command.Dir = root
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

// Imports of the library point one way, from the limiter down.
func TestImportsPointOneWay(t *testing.T) {
	t.Parallel()
	for _, p := range goList(t, "./...") {
		local := strings.TrimPrefix(p.ImportPath, module+"/")
		for _, path := range p.Imports {
			imported, ours := strings.CutPrefix(path, module+"/")
			if !ours {
				continue
			}
			if strings.HasPrefix(local, "internal/") && imported == "ratelimit" {
				t.Errorf("%s imports ratelimit, which stands above it", local)
			}
			if local == "lua" || local == "ratelimit/store" || local == "internal/clock" || local == "internal/hashring" {
				t.Errorf("%s imports %s; it stands at the bottom and imports nothing of ours", local, imported)
			}
		}
	}
}
