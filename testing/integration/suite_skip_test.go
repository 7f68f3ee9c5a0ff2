// This file keeps count of what a run could not test: nothing is left out silently.

package integration

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hanzoai/limiters/testing/redistest"
)

// skipped are the tests that did not run, by the reason.
var skipped = struct {
	sync.Mutex
	tests map[string][]string
}{tests: map[string][]string{}}

// skip ends a test that cannot run here, and has the run's last line say so. The
// reason is one line.
func skip(t *testing.T, format string, args ...any) {
	t.Helper()
	reason := fmt.Sprintf(format, args...)
	skipped.Lock()
	skipped.tests[reason] = append(skipped.tests[reason], t.Name())
	skipped.Unlock()
	t.Skip(reason)
}

// notRun is one line about all that was skipped, and whether that is allowed: with
// REQUIRE_ALL=1 nothing may be.
func notRun() (line string, allowed bool) {
	skipped.Lock()
	defer skipped.Unlock()
	if len(skipped.tests) == 0 {
		return "not run: nothing", true
	}
	var parts []string
	for _, reason := range slices.Sorted(maps.Keys(skipped.tests)) {
		tests := slices.Sorted(slices.Values(skipped.tests[reason]))
		parts = append(parts, fmt.Sprintf("%s (%s)", strings.Join(slices.Compact(tests), ", "), reason))
	}
	line = "not run: " + strings.Join(parts, "; ")
	if os.Getenv("REQUIRE_ALL") == "1" {
		return "REQUIRE_ALL=1, but " + line, false
	}
	return line, true
}

// ownServer starts a server of the test's own. With none at hand it skips the test,
// unless the environment requires one; with one that does not start it fails.
func ownServer(t *testing.T, options ...redistest.Option) *redistest.Server {
	t.Helper()
	s, err := tryOwnServer(t, options)
	switch {
	case errors.Is(err, redistest.ErrNone):
		skip(t, "needs a real Redis of its own, in Docker or on PATH")
	case err != nil:
		t.Fatal(err)
	}
	return s
}

// tryOwnServer starts a server of the test's own. Where REDIS_ADDR gives one that is
// not, that is the Redis which REQUIRE_REDIS requires; another beside it is welcome.
func tryOwnServer(t *testing.T, options []redistest.Option) (s *redistest.Server, err error) {
	if os.Getenv("REDIS_ADDR") == "" || os.Getenv("REQUIRE_DOCKER") == "1" {
		return redistest.TryStart(t, append(options, redistest.Own())...)
	}
	for _, backend := range []redistest.Backend{redistest.Container, redistest.Process, redistest.Embedded} {
		if backend == redistest.Embedded && os.Getenv("REQUIRE_REDIS") == "1" {
			break
		}
		s, err = redistest.TryStart(t, append(options, redistest.Only(backend))...)
		if !errors.Is(err, redistest.ErrNone) {
			break
		}
	}
	return s, err
}
