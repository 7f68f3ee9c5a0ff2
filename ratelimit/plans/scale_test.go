package plans

// This file measures many limits in one process.

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/gomodule/redigo/redis"

	"github.com/hanzoai/limiters/ratelimit"
)

var scaleLimits = flag.Int("scale.limits", 0, "limits of TestManyLimitsShareAPool, beside one; 50 is what docs/operations.md shows")

// One process with many limits: what they cost beside one. It needs a redis-server; without
// -scale.limits it is small, and checks that the limiters share connections.
func TestManyLimitsShareAPool(t *testing.T) {
	program, err := exec.LookPath("redis-server")
	if err != nil && os.Getenv("REQUIRE_REDIS") == "1" {
		t.Fatal(err)
	} else if err != nil {
		t.Skipf("SKIPPED, NOT TESTED: %v", err)
	}
	many, rest := 20, 2*time.Second
	if *scaleLimits > 0 {
		many, rest = *scaleLimits, 20*time.Second
	}
	address := startRedis(t, program)
	for _, limits := range []int{1, many} {
		text := "limits:\n"
		var names []string
		for i := range limits {
			names = append(names, fmt.Sprint("l", i))
			text += fmt.Sprintf("  l%d: {threshold: 1000000, window: 1m}\n", i)
		}
		text += "routes: [{pattern: /, key: 'header:X-Key', limits: [" + strings.Join(names, ", ") + "]}]\n"
		path := filepath.Join(t.TempDir(), "plans.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg := ratelimit.DefaultConfig()
		cfg.RedisURLs = []string{"redis://" + address}
		routines, heap := runtime.NumGoroutine(), heapInUse()
		p, err := Open(path, cfg, WithMetricsSet(metrics.NewSet()), WithLogger(nil))
		if err != nil {
			t.Fatal(err)
		}
		idle := heapInUse() - heap
		h := p.Middleware(http.NotFoundHandler())
		ask := func(n int) {
			for i := range n {
				r := httptest.NewRequest("GET", "/x", nil)
				r.Header.Set("X-Key", fmt.Sprint("key-", i%1000))
				h.ServeHTTP(httptest.NewRecorder(), r)
			}
		}
		ask(1000)
		time.Sleep(rest / 10)
		before, cpu := scriptsOf(t, address)
		began := time.Now()
		most := 0
		for time.Since(began) < rest {
			ask(100)
			most = max(most, p.pools.pools[0].ActiveCount())
			time.Sleep(50 * time.Millisecond)
		}
		after, cpuAfter := scriptsOf(t, address)
		took := time.Since(began).Seconds()
		t.Logf("%d limits: %d goroutines, %d connections at most, %.1f scripts a second, Redis CPU %.2f %%, heap %d KiB idle and %d KiB with 1000 keys in each",
			limits, runtime.NumGoroutine()-routines, most, float64(after-before)/took, 100*(cpuAfter-cpu)/took, idle>>10, (heapInUse()-heap)>>10)
		if most == 0 || most > min(limits, mostConnections) {
			t.Errorf("%d limits used %d connections at once", limits, most)
		}
		want := uint64(0)
		for _, name := range p.Limits() {
			want += p.Limiter(name).Stats().Counted
		}
		if err := p.Close(context.Background()); err != nil || want == 0 {
			t.Errorf("%d units were counted; Close: %v", want, err)
		}
	}
}

func heapInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// startRedis starts a server on a free port, and ends it with the test.
func startRedis(t *testing.T, program string) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address = listener.Addr().String()
	listener.Close()
	_, port, _ := net.SplitHostPort(address)
	command := exec.Command(program, "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", t.TempDir())
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		command.Process.Kill()
		command.Wait()
	})
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if conn, err := net.Dial("tcp", address); err == nil {
			conn.Close()
			return address
		}
		if time.Now().After(deadline) {
			t.Fatal("the server does not answer")
		}
	}
}

// scriptsOf returns how many scripts a server ran, and its CPU time in seconds.
func scriptsOf(t *testing.T, address string) (scripts int, cpu float64) {
	t.Helper()
	conn, err := redis.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	text, err := redis.String(conn.Do("INFO", "everything"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch name {
		case "cmdstat_evalsha":
			value, _, _ = strings.Cut(strings.TrimPrefix(value, "calls="), ",")
			scripts, _ = strconv.Atoi(value)
		case "used_cpu_user", "used_cpu_sys":
			seconds, _ := strconv.ParseFloat(value, 64)
			cpu += seconds
		}
	}
	return scripts, cpu
}
