package goredis

// This file starts redis-server processes on 127.0.0.1 for the tests.

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// patience is how long a test waits for servers to reach a state.
const patience = 60 * time.Second

// program returns the server to run. Without one it skips the test, and says why;
// with REQUIRE_REDIS=1 in the environment that is a failure.
func program(t *testing.T) string {
	t.Helper()
	path, err := redisProgram()
	if err != nil && (os.Getenv("REQUIRE_REDIS") == "1" || os.Getenv("REDIS_SERVER") != "") {
		t.Fatal(err)
	} else if err != nil {
		t.Skipf("SKIPPED, NOT TESTED: %v", err)
	}
	return path
}

// redisProgram is the server that the environment names, or else the one on PATH.
func redisProgram() (path string, err error) {
	names := []string{"redis-server", "valkey-server"}
	if named := os.Getenv("REDIS_SERVER"); named != "" {
		names = []string{named}
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("there is no %s on PATH", strings.Join(names, " or "))
}

// A process is a running server.
type process struct {
	addr    string
	command *exec.Cmd
	log     string // path
}

// startServer starts a server in a directory of its own, with a line of
// configuration for each setting, and waits until it answers. The test's end kills
// it.
func startServer(t *testing.T, settings ...string) *process {
	t.Helper()
	return startProgram(t, false, settings...)
}

func startProgram(t *testing.T, sentinel bool, settings ...string) *process {
	t.Helper()
	path := program(t)
	dir := t.TempDir()
	p := &process{log: filepath.Join(dir, "log")}
	for try := range 5 { // another process may take the port first
		port := freePort(t)
		p.addr = fmt.Sprintf("127.0.0.1:%d", port)
		lines := append([]string{
			"bind 127.0.0.1", fmt.Sprintf("port %d", port), "dir " + dir, "logfile " + p.log,
		}, settings...)
		args := []string{filepath.Join(dir, "server.conf")}
		if sentinel {
			args = append(args, "--sentinel")
		} else {
			lines = append(lines, `save ""`)
		}
		if err := os.WriteFile(args[0], []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		p.command = exec.Command(path, args...)
		p.command.SysProcAttr = dieWithParent()
		if err := p.command.Start(); err != nil {
			t.Fatal(err)
		}
		command := p.command
		exited := make(chan struct{})
		go func() { // ends with the process, which the cleanup ends
			_ = command.Wait()
			close(exited)
		}()
		t.Cleanup(func() {
			_ = command.Process.Kill()
			<-exited
		})
		if err := p.await(exited); err == nil {
			return p
		} else if try == 4 {
			text, _ := os.ReadFile(p.log)
			t.Fatalf("%s %v: %v\n%s", path, settings, err, text)
		}
	}
	return nil
}

// await waits until the process answers.
func (p *process) await(exited <-chan struct{}) error {
	c := redis.NewClient(&redis.Options{Addr: p.addr, MaxRetries: -1, Protocol: 2})
	defer func() { _ = c.Close() }()
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		err := c.Ping(context.Background()).Err()
		if err == nil {
			return nil
		}
		select {
		case <-exited:
			return errors.New("it ended")
		default:
		}
		if time.Now().After(deadline) {
			return err
		}
	}
}

// client returns a client of the test's own.
func (p *process) client(t *testing.T) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: p.addr})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// freePort returns a port that nothing listens on, nor on that of its cluster bus.
func freePort(t *testing.T) int {
	t.Helper()
	for range 100 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		_ = l.Close()
		if port > 55535 {
			continue
		}
		bus, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port+10000))
		if err != nil {
			continue
		}
		_ = bus.Close()
		return port
	}
	t.Fatal("no free port")
	return 0
}

// eventually waits until condition is nil.
func eventually(t *testing.T, what string, condition func() error) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		err := condition()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, err)
		}
	}
}
