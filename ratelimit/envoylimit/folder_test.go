package envoylimit_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hanzoai/limiters/ratelimit/envoylimit"
	"github.com/hanzoai/limiters/testing/ratelimittest"
)

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A mounted ConfigMap is read once, through the links that its version is swapped by.
func TestFolderReads(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	path := filepath.Join(root, "config")
	write(t, filepath.Join(path, "..2026_01", "b.yaml"), "b1")
	write(t, filepath.Join(path, "a"), "a")
	write(t, filepath.Join(path, "sub", "c.yaml"), "")
	write(t, filepath.Join(path, ".hidden"), "h")
	for link, target := range map[string]string{"..data": "..2026_01", "b.yaml": "..data/b.yaml", "dir": "sub"} {
		if err := os.Symlink(target, filepath.Join(path, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("config", filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		folder envoylimit.Folder
		want   string
	}{
		{envoylimit.Folder{Path: path}, ".hidden=h a=a b.yaml=b1 sub/c.yaml="},
		{envoylimit.Folder{Path: filepath.Join(root, "link"), IgnoreDotFiles: true}, "a=a b.yaml=b1 sub/c.yaml="},
	} {
		files, err := test.folder.Read()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, file := range files {
			got = append(got, strings.TrimPrefix(file.Name, test.folder.Path+"/")+"="+string(file.Content))
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("got %q, want %s", got, test.want)
		}
	}
	if _, err := (envoylimit.Folder{Path: filepath.Join(root, "none")}).Read(); err == nil {
		t.Error("a folder that is not there: no error")
	}
	if err := os.Symlink("nowhere", filepath.Join(path, "dangling")); err != nil {
		t.Fatal(err)
	}
	if _, err := (envoylimit.Folder{Path: path}).Read(); err == nil {
		t.Error("a file that cannot be read: no error")
	}
}

// A log is written to by the service and read by the test.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.text.Reset()
	return l.text.String()
}

// Rules follow their files. A bad file leaves the last good rules and is told of once, with file, line
// and field.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := t.TempDir()
		file := filepath.Join(path, "rules.yaml")
		clock := ratelimittest.NewClock()
		var log log
		s := newService(t, clock, ratelimittest.NewStore(clock), "", &log)
		folder := envoylimit.Folder{Path: path}
		write(t, file, perMinute)
		if err := s.Load(folder); err != nil {
			t.Fatal(err)
		}
		log.take()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var following sync.WaitGroup
		following.Go(func() { s.Follow(ctx, folder, 0) })
		for row, step := range []struct {
			change func()
			passed int // of 20 of a key that is new in each row
			logged []string
		}{
			{func() {}, 10, nil},
			{func() { write(t, file, strings.Replace(perMinute, "10", "3", 1)) }, 3, []string{"rules are in force"}},
			{func() { write(t, file, "domain: d\ndescriptors:\n  - key: k\n    rate_limit: {unit: now}") }, 3, []string{"the rules before stay in force", "rules.yaml:4: descriptors[0].rate_limit.unit"}},
			{func() {}, 3, nil},
			{func() { _ = os.Rename(path, path+"x") }, 3, []string{"the rules before stay in force", "no such file"}},
			{func() {}, 3, nil},
			{func() { _ = os.Rename(path+"x", path); write(t, file, strings.Replace(perMinute, "10", "7", 1)) }, 7, []string{"rules are in force"}},
			{func() { write(t, file, strings.Replace(perMinute, "10", "3", 1)) }, 3, []string{"rules are in force"}},
			{func() { _ = os.Remove(file) }, 20, []string{"rules are in force"}},
		} {
			step.change()
			time.Sleep(3 * time.Second)
			synctest.Wait()
			logged := log.take()
			if got := passes(t, s, "k", string(rune('a'+row)), 20); got != step.passed {
				t.Errorf("row %d: %d pass, want %d", row, got, step.passed)
			}
			if lines := strings.Count(logged, "\n"); lines > 1 || lines != min(1, len(step.logged)) {
				t.Errorf("row %d: logged %s", row, logged)
			}
			for _, want := range step.logged {
				if !strings.Contains(logged, want) {
					t.Errorf("row %d: logged %s, want %s", row, logged, want)
				}
			}
		}
		cancel()
		following.Wait()
	})
}

// A service that never had rules says so.
func TestLoadWithoutRules(t *testing.T) {
	t.Parallel()
	clock := ratelimittest.NewClock()
	s := newService(t, clock, ratelimittest.NewStore(clock), "", io.Discard)
	path := t.TempDir()
	write(t, filepath.Join(path, "a.yaml"), perMinute)
	write(t, filepath.Join(path, "b.yaml"), perMinute)
	if err := s.Load(envoylimit.Folder{Path: path}); err == nil || !strings.Contains(err.Error(), `b.yaml:1: domain: "d" is in another file already`) {
		t.Errorf("two files of a domain: got %v", err)
	}
	if s.Rules() != nil {
		t.Error("there are rules")
	}
}
