// This file fails over to a replica at another address, which the nodes' own pools
// follow.

package integration

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/hanzoai/limiters/internal/redisstore"
	"github.com/hanzoai/limiters/testing/redistest"
)

var failoverScenarios = []scenario{
	{name: "failover", run: failOver(true), change: follow},
	{name: "failover-lossy", run: failOver(false), change: follow, unknown: true, destroys: true},
}

// follow gives every node pools of its own making, whose dial function asks where
// the primary is.
func follow(f *fleet) {
	where := make([]atomic.Pointer[string], len(f.servers))
	for i, b := range f.servers {
		b.moved = func(addr string) { where[i].Store(&addr) }
		b.moved(b.Addr())
	}
	f.open = func(partition int) *redisstore.Store {
		pool := &redis.Pool{MaxIdle: 1, DialContext: func(ctx context.Context) (redis.Conn, error) {
			dialer := net.Dialer{Timeout: f.timeouts().Connect}
			conn, err := dialer.DialContext(ctx, "tcp", *where[partition].Load())
			if err != nil {
				return nil, err
			}
			return redis.NewConn(conn, f.timeouts().Reply, f.timeouts().Reply), nil
		}}
		f.Cleanup(func() { _ = pool.Close() })
		return redisstore.New(pool, f.timeouts())
	}
}

// failOver promotes a replica of one server: with everything replicated, or at
// once.
func failOver(whole bool) func(*fleet) {
	return func(f *fleet) {
		b := f.any()
		host, port, err := net.SplitHostPort(b.Addr())
		if err != nil {
			f.Fatal(err)
		}
		old := b.Server
		replica := redistest.Start(f.T, redistest.Only(redistest.Process), redistest.WithArgs("--replicaof", host, port, "--repl-diskless-sync-delay", "0"))
		control := replica.Conn()
		f.until("the replica is up to date", func() bool { return has(info(f, control, "replication"), "master_link_status:up") })
		f.run(0.7)
		f.during(brief/2, func() {
			if whole {
				b.do(f, "CLIENT", "PAUSE", "60000", "WRITE")
				f.until("all is replicated", func() bool {
					return field(info(f, b.admin, "replication"), "master_repl_offset") == field(info(f, control, "replication"), "slave_repl_offset")
				})
			}
			old.Kill()
			if _, err := control.Do("REPLICAOF", "NO", "ONE"); err != nil {
				f.Fatal(err)
			}
			f.lost(b)
		}, func() {
			b.Server, b.admin = replica, control
			b.moved(replica.Addr())
		})
		f.run(2)
		f.struck()
	}
}

// info is what a server says of itself.
func info(f *fleet, conn redis.Conn, section string) string {
	text, err := redis.String(conn.Do("INFO", section))
	if err != nil {
		f.Fatal(err)
	}
	return text
}

// until waits for something that takes no longer than ten seconds.
func (f *fleet) until(what string, done func() bool) {
	f.Helper()
	for end := time.Now().Add(10 * time.Second); !done(); time.Sleep(beat) {
		if time.Now().After(end) {
			f.Fatalf("it does not come to pass that %s", what)
		}
	}
}
