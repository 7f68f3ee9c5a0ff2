// This file tries the backends in their order and keeps what it learned, so that
// one that cannot be had is not tried again by the next test.

package redistest

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// order is the order in which backends are tried.
var order = []struct {
	backend Backend
	start   func(testing.TB, *settings) (instance, string, error)
}{
	{Address, startAddress},
	{Container, startContainer},
	{Process, startProcess},
	{Embedded, startEmbedded},
}

// errArgs is why a server that runs otherwise did not run with a test's arguments.
var errArgs = fmt.Errorf("%w: no server with these arguments", errPassed)

// errPassed is why a backend is passed over for one test only.
var errPassed = errors.New("passed over")

// learned is what this process knows of the backends.
var learned struct {
	sync.Mutex
	failed  map[Backend]error // why a backend cannot be had
	details map[Backend]string
	live    map[*instance]struct{} // to be stopped on a signal
	caught  bool                   // the signal handler is there
}

// choose starts the first backend that can be had.
func choose(tb testing.TB, s *settings) (*Server, error) {
	var last error
	for _, candidate := range order {
		if s.only != "" && candidate.backend != s.only || passedOver(candidate.backend, s) {
			continue
		}
		started, url, err := try(tb, candidate.backend, s, candidate.start)
		if err == nil {
			return &Server{tb: tb, backend: candidate.backend, url: url, instance: started}, nil
		}
		last = err
		if errors.Is(err, errArgs) {
			return nil, err
		}
		if candidate.backend == Address && !errors.Is(err, errPassed) && os.Getenv("REDIS_ADDR") != "" {
			// What was asked for by name is not replaced by something else.
			return nil, fmt.Errorf("REDIS_ADDR: %w", err)
		}
		if candidate.backend == Process && os.Getenv("REDIS_SERVER") != "" {
			return nil, err // the same
		}
	}
	return nil, fmt.Errorf("%w (%w): %s", ErrNone, last, Report())
}

// passedOver reports that REDIS_SERVER names a program, and this is another kind of
// server that would be taken before it.
func passedOver(b Backend, s *settings) bool {
	return b == Container && s.only != Container && os.Getenv("REDIS_SERVER") != ""
}

// try starts one backend, unless it is known that it cannot be had.
func try(tb testing.TB, b Backend, s *settings, start func(testing.TB, *settings) (instance, string, error)) (instance, string, error) {
	learned.Lock()
	known := learned.failed[b]
	learned.Unlock()
	if known != nil {
		return nil, "", known
	}
	started, url, err := start(tb, s)
	if err == nil {
		if err = await(url); err != nil {
			started.stop()
			if len(s.args) > 0 {
				err = fmt.Errorf("%w %q: %w", errArgs, s.args, err)
			}
		}
	}
	if err != nil && !errors.Is(err, errPassed) {
		learned.Lock()
		if learned.failed == nil {
			learned.failed = map[Backend]error{}
		}
		learned.failed[b] = err
		learned.Unlock()
	}
	return started, url, err
}

// describe keeps what a backend is, for Report.
func describe(b Backend, detail string) {
	learned.Lock()
	defer learned.Unlock()
	if learned.details == nil {
		learned.details = map[Backend]string{}
	}
	learned.details[b] = detail
}

// Report says in one line what the tests of this process ran on so far, and why
// not on something else. A suite should print it when it ends.
func Report() string {
	learned.Lock()
	defer learned.Unlock()
	var used, failed []string
	for _, candidate := range order {
		if detail, ok := learned.details[candidate.backend]; ok {
			used = append(used, fmt.Sprintf("%s (%s)", candidate.backend, detail))
		}
		if err, ok := learned.failed[candidate.backend]; ok {
			failed = append(failed, fmt.Sprintf("%s (%s)", candidate.backend, firstLine(err.Error())))
		}
	}
	line := "redis for tests: none yet"
	if len(used) > 0 {
		line = "redis for tests: " + strings.Join(used, ", ")
	}
	if len(failed) > 0 {
		line += "; not " + strings.Join(failed, ", ")
	}
	return line
}

// remember has an instance stopped if the process is interrupted, until forget.
func remember(i instance) (forget func()) {
	learned.Lock()
	defer learned.Unlock()
	if learned.live == nil {
		learned.live = map[*instance]struct{}{}
	}
	learned.live[&i] = struct{}{}
	if !learned.caught {
		learned.caught = true
		caught := make(chan os.Signal, 1)
		signal.Notify(caught, os.Interrupt, syscall.SIGTERM)
		go stopOnSignal(caught) // lives as long as the process
	}
	return func() {
		learned.Lock()
		defer learned.Unlock()
		delete(learned.live, &i)
	}
}

// stopOnSignal stops everything that runs, and then lets the signal have its way.
func stopOnSignal(caught <-chan os.Signal) {
	s := <-caught
	learned.Lock()
	for i := range learned.live {
		(*i).stop()
	}
	signal.Reset(os.Interrupt, syscall.SIGTERM)
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Signal(s)
	}
}

// firstLine keeps a report on one line.
func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}
