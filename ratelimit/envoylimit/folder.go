package envoylimit

// This file reads rules from a folder, and again when its files change.

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// A Folder holds configuration files: every file in it and below it, whatever its name. Names
// that begin with two dots are passed over: Kubernetes keeps a mounted ConfigMap's versions
// there. A symbolic link to a file is read, one to a folder is not followed, but for Path
// itself. It is a value.
type Folder struct {
	Path           string
	IgnoreDotFiles bool // pass over names that begin with one dot too
	Merge          bool // several files may be of one domain, see ReadRules
}

// Read returns the files, in the order of their names. A file that cannot be read is an error:
// without it a domain would have no limits.
func (f Folder) Read() ([]File, error) {
	root, err := filepath.EvalSymlinks(f.Path)
	if err != nil {
		return nil, fmt.Errorf("envoylimit: %w", err)
	}
	var files []File
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path == root:
			return nil
		case strings.HasPrefix(entry.Name(), ".."), f.IgnoreDotFiles && strings.HasPrefix(entry.Name(), "."):
			if entry.IsDir() {
				return filepath.SkipDir
			}
			return nil
		case entry.IsDir():
			return nil
		}
		content, err := readRegular(path)
		if content == nil || err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		files = append(files, File{Name: filepath.Join(f.Path, name), Content: content})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("envoylimit: %w", err)
	}
	return files, nil
}

// maxFileBytes bounds one file.
const maxFileBytes = 64 << 20

// readRegular returns a file's content; nil if it is no regular file.
func readRegular(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return nil, err
	}
	if info.Size() > maxFileBytes {
		return nil, fmt.Errorf("%s has %d bytes, at most %d are read", path, info.Size(), maxFileBytes)
	}
	content, err := os.ReadFile(path)
	if content == nil {
		content = []byte{}
	}
	return content, err
}

// Load reads the folder and puts its rules in force. The rules before stay if there is an error,
// which says what is wrong in which file, line and field. Warnings are logged.
func (s *Service) Load(f Folder) error {
	s.loading.Lock()
	defer s.loading.Unlock()
	files, err := f.Read()
	if err != nil {
		s.metrics.loadFailed.Inc()
		return err
	}
	s.loadedSum = sumOf(files)
	return s.load(f, files)
}

func (s *Service) load(f Folder, files []File) error {
	rules, warnings, err := ReadRules(files, f.Merge)
	if err != nil {
		s.metrics.loadFailed.Inc()
		return err
	}
	if err := s.SetRules(rules); err != nil {
		return err
	}
	for _, warning := range warnings {
		s.cfg.Logger.Warn("envoylimit: " + warning)
	}
	s.cfg.Logger.Info("envoylimit: rules are in force", "files", len(files), "domains", rules.Domains())
	return nil
}

// Follow loads the folder whenever its files are not what was loaded or tried last, until ctx ends. It
// looks every interval, a second if that is 0, at names and contents, so it does not
// matter how files are replaced. What is wrong is logged once for each change; the last good rules
// stay in force.
func (s *Service) Follow(ctx context.Context, f Folder, interval time.Duration) {
	if interval <= 0 {
		interval = time.Second
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	problem := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			problem = s.look(f, problem)
		}
	}
}

// look loads the folder if it changed. It returns what kept it from reading it; before is what did
// so at the last look.
func (s *Service) look(f Folder, before string) (problem string) {
	s.loading.Lock()
	defer s.loading.Unlock()
	files, err := f.Read()
	if err != nil {
		if err.Error() != before {
			s.metrics.loadFailed.Inc()
			s.complain(err)
		}
		return err.Error()
	}
	if sum := sumOf(files); sum != s.loadedSum {
		s.loadedSum = sum
		if err := s.load(f, files); err != nil {
			s.complain(err)
		}
	}
	return ""
}

func (s *Service) complain(err error) {
	text := "envoylimit: the rules before stay in force"
	if s.Rules() == nil {
		text = "envoylimit: there are no rules yet"
	}
	s.cfg.Logger.Error(text, "error", err)
}

// sumOf is different for different files.
func sumOf(files []File) (sum [sha256.Size]byte) {
	h := sha256.New()
	for _, file := range files {
		for _, part := range [][]byte{[]byte(file.Name), file.Content} {
			var length [8]byte
			binary.BigEndian.PutUint64(length[:], uint64(len(part)))
			h.Write(length[:])
			h.Write(part)
		}
	}
	h.Sum(sum[:0])
	return sum
}
