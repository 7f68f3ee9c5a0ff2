// This file is the backend that runs a program on PATH.

package redistest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hanzoai/limiters/internal/heldport"
)

// A process is a server program with a directory and a port of its own.
type process struct {
	program string
	args    []string
	port    *heldport.Port // held while the server is down, too
	running *exec.Cmd
}

// Program returns the path of the server to run: REDIS_SERVER of the environment, a name
// or a path, and nothing else if it is set; or else redis-server or valkey-server on
// PATH.
func Program() (path string, err error) {
	if named := os.Getenv("REDIS_SERVER"); named != "" {
		if path, err = exec.LookPath(named); err != nil {
			// Not to be learned: without the variable there may be another.
			return "", fmt.Errorf("REDIS_SERVER=%s: %w (%w)", named, err, errPassed)
		}
		return path, nil
	}
	for _, name := range []string{"redis-server", "valkey-server"} {
		if path, err = exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("neither redis-server nor valkey-server on PATH")
}

func startProcess(tb testing.TB, s *settings) (instance, string, error) {
	program, err := Program()
	if err != nil {
		return nil, "", err
	}
	version, err := exec.Command(program, "--version").Output()
	if err != nil {
		return nil, "", fmt.Errorf("%s --version: %w", program, err)
	}
	port, err := heldport.Hold()
	if err != nil {
		return nil, "", err
	}
	dir := tb.TempDir()
	p := &process{program: program, port: port, args: append([]string{
		"--port", strconv.Itoa(port.Number()), "--bind", heldport.Host, "--dir", dir, "--save", "", "--appendonly", "no",
	}, s.args...)}
	if err := p.restart(); err != nil {
		return nil, "", errors.Join(err, port.Release())
	}
	describe(Process, strings.Join(strings.Fields(string(version))[:3], " "))
	return p, fmt.Sprintf("redis://%s:%d", heldport.Host, port.Number()), nil
}

func (p *process) restart() error {
	if p.running != nil {
		return errors.New("it runs")
	}
	command := exec.Command(p.program, p.args...)
	command.SysProcAttr = dieWithParent()
	if err := command.Start(); err != nil {
		return err
	}
	p.running = command
	return nil
}

func (p *process) stop() { _, _ = p.kill(), p.port.Release() }

func (p *process) kill() error {
	if p.running == nil {
		return nil
	}
	err := p.running.Process.Kill()
	_ = p.running.Wait() // it was killed: that is its exit status
	p.running = nil
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

func (p *process) advance(time.Duration) error { return errNot }

func (p *process) signal(s syscall.Signal) error {
	if p.running == nil {
		return errors.New("it does not run")
	}
	return p.running.Process.Signal(s)
}
