// Package servers builds and runs rate limit services as processes: ours, and the original.
package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

// The commands, by their packages.
const (
	Ours   = "github.com/hanzoai/limiters/ratelimit/envoylimit/cmd/envoylimit"
	Theirs = "github.com/envoyproxy/ratelimit/src/service_cmd"
)

const (
	startTime = 20 * time.Second
	stopTime  = 20 * time.Second
)

// Build builds a command into a folder, statically, and returns its path.
func Build(folder, command string) (path string, err error) {
	path = filepath.Join(folder, filepath.Base(command))
	build := exec.Command("go", "build", "-o", path, command)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build %s: %w\n%s", command, err, out)
	}
	return path, nil
}

// WriteRules writes one configuration file into a folder that Start can be given, and returns that.
func WriteRules(root, text string) error {
	folder := filepath.Join(root, "config")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "rules.yaml"), []byte(text), 0o644)
}

// A Server is a running process. Its methods are for one goroutine at a time.
type Server struct {
	Address string // of gRPC
	Debug   string // of the debug port

	command *exec.Cmd
	ended   chan error
}

// Start runs a program on free ports, with rules below root and counts in a Redis at an address, and
// waits until it serves. more are further variables.
func Start(program, root, redis string, more ...string) (*Server, error) {
	ports, err := freePorts(3)
	if err != nil {
		return nil, err
	}
	s := &Server{Address: "127.0.0.1:" + ports[0], Debug: "127.0.0.1:" + ports[1], ended: make(chan error, 1)}
	s.command = exec.Command(program)
	s.command.Env = append([]string{
		"PATH=" + os.Getenv("PATH"),
		"GRPC_HOST=127.0.0.1", "HOST=127.0.0.1", "DEBUG_HOST=127.0.0.1",
		"GRPC_PORT=" + ports[0], "DEBUG_PORT=" + ports[1], "PORT=" + ports[2],
		"REDIS_SOCKET_TYPE=tcp", "REDIS_URL=" + redis, "RUNTIME_ROOT=" + root, "RUNTIME_WATCH_ROOT=false",
		// The original would send statistics, or write them to its log: it costs the least without.
		"USE_STATSD=false", "DISABLE_STATS=true", "LOG_LEVEL=error",
	}, more...)
	s.command.Stderr = os.Stderr
	if err := s.command.Start(); err != nil {
		return nil, err
	}
	go func() { s.ended <- s.command.Wait() }() // ends with the process
	if err := s.await(); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// freePorts returns ports that were free a moment ago.
func freePorts(n int) (ports []string, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer func() { _ = l.Close() }()
		ports = append(ports, strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
	}
	return ports, nil
}

// await waits until the process says that it is healthy.
func (s *Server) await() error {
	connection, err := s.Dial()
	if err != nil {
		return err
	}
	defer func() { _ = connection.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	client := healthpb.NewHealthClient(connection)
	for {
		answer, err := client.Check(ctx, &healthpb.HealthCheckRequest{Service: "ratelimit"})
		if err == nil && answer.Status == healthpb.HealthCheckResponse_SERVING {
			return nil
		}
		select {
		case ended := <-s.ended:
			s.ended <- ended
			return fmt.Errorf("%s ended: %v", s.command.Path, ended)
		case <-ctx.Done():
			return fmt.Errorf("%s does not serve: %w", s.command.Path, errors.Join(err, ctx.Err()))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Dial returns a new connection.
func (s *Server) Dial() (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+s.Address, grpc.WithTransportCredentials(insecure.NewCredentials()))
}

// Pid returns the process's id.
func (s *Server) Pid() int { return s.command.Process.Pid }

// Stop ends the process in order: SIGTERM, and SIGKILL if that does not help. The error is that of a process
// that did not end well.
func (s *Server) Stop() error {
	_ = s.command.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-s.ended:
		return err
	case <-time.After(stopTime):
		_ = s.command.Process.Kill()
		return fmt.Errorf("%s did not end within %v: %w", s.command.Path, stopTime, <-s.ended)
	}
}
