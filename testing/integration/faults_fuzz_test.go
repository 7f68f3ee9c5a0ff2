// This file lets chance choose entity keys and timelines, on the embedded server.

package integration

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/gomodule/redigo/redis"
	"pgregory.net/rapid"

	"github.com/hanzoai/limiters/internal/redisstore"
	"github.com/hanzoai/limiters/internal/redisurl"
	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/testing/redistest"
)

// FuzzEntityKeys sends two entity keys, of any bytes and length, on a round trip:
// unless they are equal each has a counter of its own, and neither meets what
// limiters keep beside the counters.
func FuzzEntityKeys(f *testing.F) {
	long := strings.Repeat("x", 600)
	for _, pair := range [][2]string{
		{"", ":"},
		{"a", "a:1"},
		{"a:28401120", "a"},
		{"window", "id:seq"},
		{"{a}", "}{"},
		{"\x00\r\n", "\r\n$1\r\n"},
		{"\xff", "\xef\xbf\xbd"},
		{long, long + "x"},
		{long[:512], long[:513]},
		{"sha256#", "sha256#a"},
		{"sha256#" + strings.Repeat("0", 64), "a"},
		{"same", "same"},
	} {
		f.Add(pair[0], pair[1])
	}
	server := redistest.Start(f, redistest.Only(redistest.Embedded), redistest.Frozen())
	inspect := server.Conn()
	f.Fuzz(func(t *testing.T, a, b string) {
		if _, err := inspect.Do("FLUSHALL"); err != nil {
			t.Fatal(err)
		}
		cfg := ratelimit.DefaultConfig()
		cfg.RedisURLs, cfg.RedisKeyPrefix, cfg.LocalCacheMaxEntries = []string{server.URL()}, "p", 1
		cfg.GlobalReadTimeout = patient.Reply
		l, err := ratelimit.New(cfg, ratelimit.WithMetricsSet(metrics.NewSet()), ratelimit.WithLogger(slog.New(slog.DiscardHandler)))
		if err != nil {
			t.Fatal(err)
		}
		l.Check(a, 1)
		l.Check(b, 2)
		if err := l.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		if s := l.Stats(); s.Delivered != 3 {
			t.Fatalf("%q and %q: %d units were delivered, want 3", a, b, s.Delivered)
		}
		want := "1 2"
		if a == b {
			want = "3"
		}
		if got := counts(t, inspect); got != want {
			t.Errorf("%q and %q: the counters hold %s, want %s", a, b, got, want)
		}
	})
}

// counts is what all counters hold, sorted.
func counts(t *testing.T, conn redis.Conn) string {
	t.Helper()
	names, err := redis.Strings(conn.Do("KEYS", "*"))
	if err != nil {
		t.Fatal(err)
	}
	var held []string
	for _, name := range names {
		if name == "p:window" || strings.HasSuffix(name, ":seq") && len(name) == len("p:"+":seq")+32 {
			continue
		}
		text, err := redis.String(conn.Do("GET", name))
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, text)
	}
	slices.Sort(held)
	return strings.Join(held, " ")
}

// FuzzStoresAgree holds the memory store and the script to each other, on
// timelines that the fuzzer chooses. All are run on one server, one after the other
// in its time: a server for each would use up the machine's ports.
func FuzzStoresAgree(f *testing.F) {
	f.Add([]byte("a timeline"))
	s := redistest.Start(f, redistest.Only(redistest.Embedded), redistest.Frozen())
	target, err := redisurl.Parse(s.URL())
	if err != nil {
		f.Fatal(err)
	}
	r := redisstore.Open(target, redisstore.Options{Timeouts: patient})
	f.Cleanup(func() { _ = r.Close() })
	script := &lateServer{server: server{redis: s, store: r, conn: s.Conn()}, now: embeddedStart}
	f.Fuzz(func(t *testing.T, choices []byte) {
		rapid.MakeFuzz(func(rt *rapid.T) {
			script.do("FLUSHALL")
			d := &differential{
				twin: newMemory(script.now), script: script, prefix: "p", moves: true,
				texts: []string{"x", "", "-1", "0", "5", "9007199254740991", "9007199254740992", "1.5", foreign},
			}
			d.run(rt)
		})(t, choices)
	})
}

// A lateServer is a server that knows what time it is there.
type lateServer struct {
	server
	now time.Time
}

func (s *lateServer) advance(d time.Duration) {
	s.server.advance(d)
	s.now = s.now.Add(d)
}
