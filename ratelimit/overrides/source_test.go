package overrides

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/gomodule/redigo/redis"
	"github.com/google/go-cmp/cmp"
)

// load expects a source to hold overrides, or to fail with the sentinel.
func load(t *testing.T, when string, s Source, want map[string]uint64, sentinel error) {
	t.Helper()
	got, err := s.Load(context.Background())
	if !errors.Is(err, sentinel) || sentinel == nil && err != nil {
		t.Errorf("%s: error %v, want %v", when, err, sentinel)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", when, diff)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "overrides.json")
	s := File(path)
	load(t, "no file", s, nil, ErrAbsent)
	write(t, path, `{"a":1}`)
	load(t, "a file", s, map[string]uint64{"a": 1}, nil)

	// The same size and the same time of change: a source that trusts them is wrong.
	then := time.Unix(1_700_000_000, 0)
	write(t, path, `{"a":2}`)
	if err := os.Chtimes(path, then, then); err != nil {
		t.Fatal(err)
	}
	load(t, "written in place", s, map[string]uint64{"a": 2}, nil)
	write(t, path, `{"a":3}`)
	if err := os.Chtimes(path, then, then); err != nil {
		t.Fatal(err)
	}
	load(t, "written in place again", s, map[string]uint64{"a": 3}, nil)

	write(t, path, `{"a":3,"b":`)
	load(t, "half-written", s, nil, ErrMalformed)
	write(t, path, "")
	load(t, "empty", s, nil, ErrMalformed)

	write(t, path+".new", `{"b":4}`)
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	load(t, "renamed over", s, map[string]uint64{"b": 4}, nil)
	write(t, path, `{}`)
	load(t, "an empty object", s, map[string]uint64{}, nil)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	load(t, "removed", s, nil, ErrAbsent)

	write(t, path, strings.Repeat(" ", MaxBytes)+"{}")
	load(t, "too large", s, nil, ErrMalformed)
	load(t, "a directory", File(dir), nil, ErrMalformed)
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	load(t, "a pipe", File(fifo), nil, ErrMalformed)
	if _, err := File(filepath.Join(dir, "fifo", "x")).Load(context.Background()); err == nil || errors.Is(err, ErrAbsent) || errors.Is(err, ErrMalformed) {
		t.Errorf("a path through a file: %v, want unreachable", err)
	}
}

// Kubernetes switches the link to a directory.
func TestFileBehindALinkThatIsSwitched(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, version := range []string{"1", "2"} {
		if err := os.Mkdir(filepath.Join(dir, version), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, version, "overrides.json"), `{"version":`+version+`}`)
	}
	link := filepath.Join(dir, "data")
	if err := os.Symlink("1", link); err != nil {
		t.Fatal(err)
	}
	s := File(filepath.Join(link, "overrides.json"))
	load(t, "before", s, map[string]uint64{"version": 1}, nil)
	if err := os.Symlink("2", link+".new"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(link+".new", link); err != nil {
		t.Fatal(err)
	}
	load(t, "after", s, map[string]uint64{"version": 2}, nil)
}

func TestRedisKey(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	pool := &redis.Pool{MaxIdle: 1, DialContext: func(ctx context.Context) (redis.Conn, error) {
		return redis.DialContext(ctx, "tcp", m.Addr())
	}}
	t.Cleanup(func() { _ = pool.Close() })
	s := RedisKey(pool, "limits")
	load(t, "no key", s, nil, ErrAbsent)
	for text, want := range map[string]map[string]uint64{`{"a":1}`: {"a": 1}, `{}`: {}} {
		if err := m.Set("limits", text); err != nil {
			t.Fatal(err)
		}
		load(t, text, s, want, nil)
	}
	for _, text := range []string{`{"a":1.0}`, "x", strings.Repeat(" ", MaxBytes) + "{}"} {
		if err := m.Set("limits", text); err != nil {
			t.Fatal(err)
		}
		load(t, "malformed", s, nil, ErrMalformed)
	}
	if err := m.Set("limits", ""); err != nil {
		t.Fatal(err)
	}
	load(t, "the empty string", s, nil, ErrAbsent)
	m.Del("limits")
	if _, err := m.Push("limits", "x"); err != nil {
		t.Fatal(err)
	}
	load(t, "a list", s, nil, ErrMalformed)
	m.SetError("LOADING Redis is loading the dataset in memory")
	unreachable(t, "loading", s)
	m.SetError("")
	m.Close()
	unreachable(t, "gone", s)
}

func unreachable(t *testing.T, when string, s Source) {
	t.Helper()
	if got, err := s.Load(context.Background()); err == nil || got != nil || resultOf(err) != resultUnreachable {
		t.Errorf("%s: %v, %v, want unreachable", when, got, err)
	}
}

// A server that hangs holds a Load for as long as its context allows.
func TestRedisKeyEndsWithItsContext(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	pool := &redis.Pool{DialContext: func(ctx context.Context) (redis.Conn, error) {
		return redis.DialContext(ctx, "tcp", l.Addr().String())
	}}
	t.Cleanup(func() { _ = pool.Close() })
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if got, err := RedisKey(pool, "limits").Load(ctx); got != nil || resultOf(err) != resultUnreachable {
		t.Errorf("Load = %v, %v, want unreachable", got, err)
	}
}
