package localredis

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/gomodule/redigo/redis"
)

func TestAServerAnswersUntilItIsStopped(t *testing.T) {
	t.Parallel()
	s, err := Start()
	if errors.Is(err, ErrNone) && os.Getenv("REQUIRE_REDIS") != "1" {
		t.Skipf("SKIPPED, NOT TESTED: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	conn, err := redis.DialURL(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if saved, err := redis.Strings(conn.Do("CONFIG", "GET", "save")); err != nil || saved[1] != "" {
		t.Errorf("CONFIG GET save = %q, %v; want that it persists nothing", saved, err)
	}
	if err := s.Stop(); err != nil {
		t.Errorf("Stop: %v", err)
	}
	if err := ping(s.Address()); err == nil {
		t.Error("it answers after Stop")
	}
	if _, err := os.Stat(s.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its directory is left: %v", err)
	}
}

func TestFindTakesTheFirstThatIsThere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var programs []string
	for _, name := range []string{"absent", "second", "third"} {
		programs = append(programs, filepath.Join(dir, name))
	}
	if _, err := find(programs); !errors.Is(err, ErrNone) {
		t.Errorf("of nothing: error %v, want ErrNone", err)
	}
	for _, path := range programs[1:] {
		if err := os.WriteFile(path, nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if path, err := find(programs); err != nil || path != programs[1] {
		t.Errorf("find = %q, %v; want %q", path, err, programs[1])
	}
}
