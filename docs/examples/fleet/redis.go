package main

// This file finds a Redis on this machine.

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// startRedis starts a Redis and returns its URL, what it is, and what ends it.
func startRedis() (url, what string, stop func(), err error) {
	for _, program := range []string{"redis-server", "valkey-server"} {
		if path, err := exec.LookPath(program); err == nil {
			url, stop, err := startServer(path)
			return url, path, stop, err
		}
	}
	s, err := miniredis.Run()
	if err != nil {
		return "", "", nil, err
	}
	return "redis://" + s.Addr(), "embedded (there is no redis-server on the PATH)", s.Close, nil
}

// startServer starts a server on a unix socket, which no other process can hold.
func startServer(path string) (url string, stop func(), err error) {
	directory, err := os.MkdirTemp("", "fleet")
	if err != nil {
		return "", nil, err
	}
	socket := filepath.Join(directory, "redis.sock")
	command := exec.Command(path, "--port", "0", "--unixsocket", socket, "--save", "", "--dir", directory)
	if err := command.Start(); err != nil {
		os.RemoveAll(directory)
		return "", nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }() // ends with the server
	stop = func() {
		command.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(5 * time.Second):
			command.Process.Kill()
			<-ended
		}
		os.RemoveAll(directory)
	}
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if conn, err := net.Dial("unix", socket); err == nil {
			conn.Close()
			return "unix://" + socket, stop, nil
		}
		select {
		case err := <-ended:
			ended <- err
			stop()
			return "", nil, fmt.Errorf("%s ended: %w", path, err)
		default:
		}
		if time.Now().After(deadline) {
			stop()
			return "", nil, fmt.Errorf("%s does not answer", path)
		}
	}
}
