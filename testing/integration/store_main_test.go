// Package integration holds the suites that need a Redis. They run on the best
// one at hand. The last lines of their output say which that was, and what could
// not be run on it, and why.
package integration

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hanzoai/limiters/internal/redisstore"
	"github.com/hanzoai/limiters/internal/redisurl"
	"github.com/hanzoai/limiters/ratelimit/store"
	"github.com/hanzoai/limiters/testing/redistest"
)

func TestMain(m *testing.M) {
	if nodeOfBurst() {
		return
	}
	// A failure prints its seed; a file in the tree besides would only be in the way.
	_ = flag.Set("rapid.nofailfile", "true")
	flag.Parse()
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(lasting...); err != nil {
			fmt.Println("goroutines are left:", err)
			code = 1
		}
	}
	fmt.Println(redistest.Report())
	left, allowed := notRun()
	if fmt.Println(left); code == 0 && !allowed {
		code = 1
	}
	os.Exit(code)
}

// lasting are the goroutines that outlive the tests: the one that stops servers on
// a signal, and those of idle connections to the Docker daemon.
var lasting = []goleak.Option{
	goleak.IgnoreAnyFunction("github.com/hanzoai/limiters/testing/redistest.stopOnSignal"),
	goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
	goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
}

// openStore returns a store on the server, with timeouts that only a server that
// hangs meets.
func openStore(t *testing.T, s *redistest.Server) *redisstore.Store {
	t.Helper()
	return openStoreURL(t, s.URL(), redisstore.Timeouts{Connect: 10 * time.Second, Reply: 10 * time.Second})
}

func openStoreURL(t *testing.T, url string, timeouts redisstore.Timeouts) *redisstore.Store {
	t.Helper()
	target, err := redisurl.Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	r := redisstore.Open(target, redisstore.Options{Timeouts: timeouts})
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// realServer starts a Redis or Valkey of the test's own with these arguments, to
// be split at spaces. With none at hand it skips the test, unless the environment
// requires one; with one that does not start it fails.
func realServer(t *testing.T, args ...string) *redistest.Server {
	t.Helper()
	return ownServer(t, redistest.Real(), redistest.WithArgs(strings.Fields(strings.Join(args, " "))...))
}

// storeBatch is a batch of the usual TTLs under prefix.
func storeBatch(prefix string, number uint64, writes []store.Write, reads ...string) *store.Batch {
	return &store.Batch{
		Sequence: prefix + ":id:seq", Number: number, Nonce: number, SequenceTTL: time.Hour,
		WindowKey: prefix + ":window", Window: time.Minute, TTL: 2 * time.Minute,
		Writes: writes, Reads: reads,
	}
}

// write is one write.
func write(key string, delta int64) store.Write {
	return store.Write{Key: key, Delta: delta}
}
