// Package localredis runs a Redis of the bench's own: a redis-server or
// valkey-server from PATH, on a loopback port, that persists nothing and ends with
// the bench. Package testing/redistest does this for tests, which alone can use it.
package localredis

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/hanzoai/limiters/internal/heldport"
)

// programs are the servers that will do, the best known first.
var programs = []string{"redis-server", "valkey-server"}

// ErrNone is the error of [Start] if no server program is on PATH.
var ErrNone = errors.New("neither redis-server nor valkey-server is on PATH")

// startTimeout is how long a server may take until it answers.
const startTimeout = 10 * time.Second

// A Server is a running server. Its methods may be called from any goroutine.
type Server struct {
	address string         // immutable
	port    *heldport.Port // immutable
	dir     string         // immutable
	command *exec.Cmd      // immutable
}

// Start starts a server and waits until it answers. Stop it.
func Start() (*Server, error) {
	program, err := find(programs)
	if err != nil {
		return nil, err
	}
	port, err := heldport.Hold()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "bench-redis-")
	if err != nil {
		return nil, errors.Join(err, port.Release())
	}
	number := strconv.Itoa(port.Number())
	s := &Server{address: net.JoinHostPort(heldport.Host, number), port: port, dir: dir}
	s.command = exec.Command(program, "--bind", heldport.Host, "--port", number,
		"--dir", dir, "--save", "", "--appendonly", "no", "--loglevel", "warning")
	s.command.SysProcAttr = endWithParent()
	if err := s.command.Start(); err != nil {
		return nil, errors.Join(err, port.Release(), os.RemoveAll(dir))
	}
	if err := await(s.address); err != nil {
		return nil, errors.Join(fmt.Errorf("%s does not answer: %w", program, err), s.Stop())
	}
	return s, nil
}

// Address is the server's host:port.
func (s *Server) Address() string { return s.address }

// URL is the server's address as a URL.
func (s *Server) URL() string { return "redis://" + s.address }

// Stop ends the server and removes what it left. It is to be called once.
func (s *Server) Stop() error {
	err := s.command.Process.Kill()
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	_ = s.command.Wait() // it was killed: that is its exit status
	return errors.Join(err, s.port.Release(), os.RemoveAll(s.dir))
}

// find returns the path of the first program that is on PATH.
func find(programs []string) (string, error) {
	for _, program := range programs {
		if path, err := exec.LookPath(program); err == nil {
			return path, nil
		}
	}
	return "", ErrNone
}

// await waits until the server answers PING.
func await(address string) (err error) {
	for end := time.Now().Add(startTimeout); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if err = ping(address); err == nil {
			return nil
		}
	}
	return err
}

func ping(address string) error {
	conn, err := redis.Dial("tcp", address,
		redis.DialConnectTimeout(time.Second), redis.DialReadTimeout(time.Second), redis.DialWriteTimeout(time.Second))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	_, err = conn.Do("PING")
	return err
}
