// This file puts nutcracker, a proxy that spreads keys over servers and closes over
// commands it does not know, between limiters and two servers.

package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/hanzoai/limiters/internal/redisstore"
	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/ratelimit/store"
	"github.com/hanzoai/limiters/testing/redistest"
)

// A sharding proxy is a nutcracker over two servers.
type sharding struct {
	t       *testing.T
	addr    string
	file    string // of its configuration
	servers [2]*redistest.Server
	running *exec.Cmd
}

// newSharding starts one with a line of configuration for each setting.
func newSharding(t *testing.T, settings ...string) *sharding {
	t.Helper()
	if _, err := exec.LookPath("nutcracker"); err != nil {
		skip(t, "needs nutcracker on PATH")
	}
	p := &sharding{t: t, file: filepath.Join(t.TempDir(), "nutcracker.yml")}
	lines := append([]string{"hash: fnv1a_64", "distribution: ketama", "redis: true"}, settings...)
	lines = append(lines, "servers:")
	for i := range p.servers {
		p.servers[i] = processServer(t)
		lines = append(lines, fmt.Sprintf(" - %s:1", p.servers[i].Addr()))
	}
	ports := []string{freeAddress(t), freeAddress(t)}
	p.addr = ports[0]
	text := "proxied:\n  listen: " + p.addr + "\n  " + strings.Join(lines, "\n  ") + "\n"
	if err := os.WriteFile(p.file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p.start(ports[1])
	t.Cleanup(p.stop)
	return p
}

// freeAddress is one that nothing listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// start starts the proxy, with an address for its statistics, and waits until it answers.
func (p *sharding) start(statistics string) {
	p.t.Helper()
	host, port, _ := net.SplitHostPort(statistics)
	p.running = exec.Command("nutcracker", "-c", p.file, "-a", host, "-s", port)
	var said bytes.Buffer
	p.running.Stdout, p.running.Stderr = &said, &said
	if err := p.running.Start(); err != nil {
		p.t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		conn, err := redis.Dial("tcp", p.addr)
		if err == nil {
			_, err = conn.Do("PING")
			_ = conn.Close()
		}
		if err == nil {
			return
		}
		if time.Now().After(end) {
			p.stop()
			p.t.Fatalf("nutcracker: %v: %s", err, said.Bytes())
		}
	}
}

func (p *sharding) stop() {
	_ = p.running.Process.Kill()
	_ = p.running.Wait()
}

// pool returns one of the caller's, on the proxy.
func (p *sharding) pool() *redis.Pool {
	pool := &redis.Pool{MaxIdle: 1, Dial: func() (redis.Conn, error) {
		return redis.Dial("tcp", p.addr, redis.DialReadTimeout(10*time.Second), redis.DialWriteTimeout(10*time.Second))
	}}
	p.t.Cleanup(func() { _ = pool.Close() })
	return pool
}

// held is what each server holds of team.
func (p *sharding) held() (sums [2]uint64) {
	p.t.Helper()
	for i, s := range p.servers {
		conn := s.Conn()
		keys, err := redis.Strings(conn.Do("KEYS", "*:team:*"))
		if err != nil {
			p.t.Fatal(err)
		}
		for _, key := range keys {
			n, err := redis.Uint64(conn.Do("GET", key))
			if err != nil {
				p.t.Fatal(err)
			}
			sums[i] += n
		}
	}
	return sums
}

// A proxy that spreads keys splits the budget by node: it is said once, and with a hash
// tag that the proxy heeds there is one count.
func TestAShardingProxySplitsTheBudgetAndIsToldOf(t *testing.T) {
	t.Parallel()
	const nodes, split = 12, "spreads this partition's keys over several servers"
	for _, row := range []struct {
		name     string
		settings []string
		tag      string
		byURL    bool
		told     bool
	}{
		{name: "a pool", told: true},
		{name: "an address", byURL: true, told: true},
		{name: "a tag that the proxy does not heed", tag: "b", told: true},
		{name: "a tag", settings: []string{`hash_tag: "{}"`}, tag: "b"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			p := newSharding(t, row.settings...)
			told := 0
			for range nodes {
				var log bytes.Buffer
				options := []ratelimit.Option{ratelimit.WithLogger(slog.New(slog.NewTextHandler(&log, nil)))}
				url := "redis://" + p.addr
				if !row.byURL {
					url = ""
					options = append(options, ratelimit.WithPools(ratelimit.Pool{Name: "main", Pool: p.pool(), HashTag: row.tag}))
				}
				lim := limiterAt(t, url, "p", options...)
				for range 3 {
					if err := countFive(lim); err != nil {
						t.Fatal(err)
					}
				}
				if n := strings.Count(log.String(), split); n > 1 {
					t.Errorf("told %d times", n)
				} else {
					told += n
				}
			}
			sums := p.held()
			if sums[0]+sums[1] != nodes*15 {
				t.Errorf("the servers hold %v, counted %d", sums, nodes*15)
			}
			if row.told && (told != nodes || sums[0] == 0 || sums[1] == 0) {
				t.Errorf("the servers hold %v, and %d of %d nodes were told", sums, told, nodes)
			}
			if !row.told && (told != 0 || sums[0]*sums[1] != 0) {
				t.Errorf("the servers hold %v, and %d nodes were told", sums, told)
			}
		})
	}
}

// No connection but the first costs anything for what the proxy does not know, and one
// that the proxy closed while it was idle is no failure.
func TestAProxyThatClosesConnectionsIsNoNews(t *testing.T) {
	t.Parallel()
	p := newSharding(t)
	r := openStoreURL(t, "redis://"+p.addr, redisstore.Timeouts{Connect: 10 * time.Second, Reply: 10 * time.Second})
	for number := uint64(1); number <= 5; number++ {
		var reply store.Reply
		if err := r.Apply(context.Background(), storeBatch("p", number, []store.Write{write("p:team:1", 5)}), &reply); err != nil {
			t.Fatalf("connection %d: %v", number, err)
		}
		if reply.Outcome != store.Applied || reply.Writes[0].Total != int64(5*number) {
			t.Errorf("connection %d: %+v", number, reply)
		}
		p.stop() // and with it all connections
		time.Sleep(20 * time.Millisecond)
		p.start(freeAddress(t))
	}
}

// What the proxy says of a server that is away is named, and denies nothing.
func TestAProxyWhoseServersAreAway(t *testing.T) {
	t.Parallel()
	p := newSharding(t)
	r := openStoreURL(t, "redis://"+p.addr, redisstore.Timeouts{Connect: 10 * time.Second, Reply: 10 * time.Second})
	for _, s := range p.servers {
		s.Kill()
	}
	var failed *store.Error
	err := r.Apply(context.Background(), storeBatch("p", 1, []store.Write{write("p:team:1", 5)}), &store.Reply{})
	if !errors.As(err, &failed) || failed.Fate != store.Unknown || failed.Cause != store.CauseUnreachable && failed.Cause != store.CauseClosed {
		t.Errorf("%v, want unknown, unreachable or closed", err)
	}
}
