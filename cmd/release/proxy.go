package main

// This file serves the modules as a module proxy does, from a directory.

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// publish writes the modules of the tree into the directory of a file-system proxy, as
// they are when a version is released.
func publish(root, proxy, version string, all []localModule) error {
	for _, m := range all {
		if err := publishOne(root, proxy, version, m); err != nil {
			return fmt.Errorf("release: %s: %w", m.path, err)
		}
	}
	return nil
}

func publishOne(root, proxy, version string, m localModule) error {
	escaped, err := module.EscapePath(m.path)
	if err != nil {
		return err
	}
	directory := filepath.Join(proxy, filepath.FromSlash(escaped), "@v")
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return err
	}
	text, err := m.released(version)
	if err != nil {
		return err
	}
	info := fmt.Sprintf(`{"Version":%q,"Time":%q}`, version, time.Unix(0, 0).UTC().Format(time.RFC3339))
	for name, content := range map[string]string{"list": version + "\n", version + ".info": info, version + ".mod": string(text)} {
		if err := os.WriteFile(filepath.Join(directory, name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	archive, err := os.Create(filepath.Join(directory, version+".zip"))
	if err != nil {
		return err
	}
	defer archive.Close()
	files, err := contents(filepath.Join(root, m.directory), text)
	if err != nil {
		return err
	}
	if err := zip.Create(archive, module.Version{Path: m.path, Version: version}, files); err != nil {
		return err
	}
	return archive.Close()
}

// contents returns the files of the module in a directory, with another go.mod.
func contents(directory string, goMod []byte) (files []zip.File, err error) {
	checked, err := zip.CheckDir(directory)
	if err != nil {
		return nil, err
	}
	for _, path := range checked.Valid {
		name, err := filepath.Rel(directory, path)
		if err != nil {
			return nil, err
		}
		f := moduleFile{name: filepath.ToSlash(name), path: path}
		if name == "go.mod" {
			f.text = goMod
		}
		files = append(files, f)
	}
	return files, nil
}

// A moduleFile is a file of a module; its content is text if that is not nil.
type moduleFile struct {
	name, path string
	text       []byte
}

func (f moduleFile) Path() string { return f.name }

func (f moduleFile) Lstat() (os.FileInfo, error) { return os.Lstat(f.path) }

func (f moduleFile) Open() (io.ReadCloser, error) {
	if f.text == nil {
		return os.Open(f.path)
	}
	return io.NopCloser(bytes.NewReader(f.text)), nil
}
