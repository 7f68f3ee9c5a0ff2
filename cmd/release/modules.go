package main

// This file finds the modules of the repository and what they are when released.

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// A localModule is a module of the repository.
type localModule struct {
	path      string // as it is imported
	directory string // from the root, with slashes; "." for the root
	file      *modfile.File
}

// modules returns all modules below root, the root's first.
func modules(root string) (all []localModule, err error) {
	err = filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() && file != root && (name[0] == '.' || name == "testdata" || name == "bin") {
			return filepath.SkipDir
		}
		if name != "go.mod" || entry.IsDir() {
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		parsed, err := modfile.Parse(file, text, nil)
		if err != nil {
			return err
		}
		local, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			return err
		}
		all = append(all, localModule{path: parsed.Module.Mod.Path, directory: filepath.ToSlash(local), file: parsed})
		return nil
	})
	slices.SortFunc(all, func(a, b localModule) int { return cmp.Compare(a.directory, b.directory) }) // "." comes first
	if err == nil && (len(all) == 0 || all[0].directory != ".") {
		err = fmt.Errorf("release: there is no go.mod in %s: run this from the root of the repository", root)
	}
	return all, err
}

// released returns the module's go.mod for a version: without replacements, and with
// our own modules required at that version.
func (m *localModule) released(version string) ([]byte, error) {
	file := m.file
	for _, replaced := range file.Replace {
		if err := file.DropReplace(replaced.Old.Path, replaced.Old.Version); err != nil {
			return nil, err
		}
	}
	for _, required := range file.Require {
		if ours(required.Mod.Path) {
			if err := file.AddRequire(required.Mod.Path, version); err != nil {
				return nil, err
			}
		}
	}
	file.Cleanup()
	return file.Format()
}

// tag is the name that a version of the module has in git.
func (m *localModule) tag(version string) string {
	return path.Join(m.directory, version)
}

// repository is the path of the root's module.
const repository = "github.com/hanzoai/limiters"

func ours(path string) bool {
	return path == repository || strings.HasPrefix(path, repository+"/")
}
