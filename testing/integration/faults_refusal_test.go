// This file has servers refuse what a fleet sends, in every way that they can.

package integration

import (
	"os"
	"path/filepath"

	"github.com/gomodule/redigo/redis"

	"github.com/hanzoai/limiters/internal/redisstore"
	"github.com/hanzoai/limiters/ratelimit/store"
)

var refusalScenarios = []scenario{
	{name: "out-of-memory", run: refuses(store.CauseOutOfMemory,
		func(f *fleet, b *backend) { b.do(f, "CONFIG", "SET", "maxmemory", "1") },
		func(f *fleet, b *backend) { b.do(f, "CONFIG", "SET", "maxmemory", "0") })},
	{name: "read-only", run: refuses(store.CauseReadOnly,
		func(f *fleet, b *backend) { b.do(f, "REPLICAOF", "127.0.0.1", "1") },
		func(f *fleet, b *backend) { b.do(f, "REPLICAOF", "NO", "ONE") })},
	{name: "no-replicas", run: refuses(store.CauseNoReplicas,
		func(f *fleet, b *backend) { b.do(f, "CONFIG", "SET", "min-replicas-to-write", "1") },
		func(f *fleet, b *backend) { b.do(f, "CONFIG", "SET", "min-replicas-to-write", "0") })},
	{name: "persistence-fails", args: []string{"--dbfilename", "taken"}, run: refuses(store.CauseMisconf, failPersistence, mendPersistence)},
	{name: "busy", args: []string{"--busy-reply-threshold", "1"}, run: refuses(store.CauseBusy, occupy, killScript)},
	{name: "max-clients", run: refuses("", fill, func(f *fleet, b *backend) { b.do(f, "CONFIG", "SET", "maxclients", "1000") })},
	{
		name: "wrong-password", args: []string{"--user", "svc", "on", ">pw", "~*", "+@all"}, change: logIn,
		run: refuses(store.CauseAuth,
			func(f *fleet, b *backend) {
				b.do(f, "ACL", "SETUSER", "svc", "resetpass", ">other")
				b.killClients(f)
			},
			func(f *fleet, b *backend) { b.do(f, "ACL", "SETUSER", "svc", "resetpass", ">pw") }),
	},
	{
		name: "no-permission", args: []string{"--user", "svc", "on", ">pw", "~*", "+@all"}, change: logIn,
		run: refuses(store.CausePermission,
			func(f *fleet, b *backend) { b.do(f, "ACL", "SETUSER", "svc", "-set") },
			func(f *fleet, b *backend) { b.do(f, "ACL", "SETUSER", "svc", "+set") }),
	},
	{
		name: "no-expire", args: []string{"--user", "svc", "on", ">pw", "~*", "+@all", "-pexpire", "-expire"}, change: logIn,
		run: func(f *fleet) {
			f.run(2)
			f.during(brief, func() {}, func() {})
			f.run(0.7)
		},
	},
	{
		name: "no-increment", args: []string{"--user", "svc", "on", ">pw", "~*", "+@all"}, change: logIn,
		run: refuses("",
			func(f *fleet, b *backend) { b.do(f, "ACL", "SETUSER", "svc", "-incrby") },
			func(f *fleet, b *backend) { b.do(f, "ACL", "SETUSER", "svc", "+incrby") }),
	},
}

// logIn has the nodes connect as a user whose rights the scenario changes.
func logIn(f *fleet) {
	f.open = func(partition int) *redisstore.Store {
		return openStoreURL(f.T, "redis://svc:pw@"+f.servers[partition].proxy.Addr(), f.timeouts())
	}
}

// refuses has a server refuse everything for a while, thrice. The nodes must have
// met the cause, if it is not empty.
func refuses(cause string, inject, heal func(f *fleet, b *backend)) func(*fleet) {
	return func(f *fleet) {
		f.run(0.7)
		for range 3 {
			b := f.any()
			f.during(brief, func() { inject(f, b) }, func() { heal(f, b) })
			f.run(0.7)
		}
		if cause != "" {
			f.felt(cause)
		}
	}
}

// failPersistence lets a snapshot fail: a directory is where its file shall be.
func failPersistence(f *fleet, b *backend) {
	if err := os.MkdirAll(filepath.Join(b.directory(f), "taken", "in"), 0o755); err != nil {
		f.Fatal(err)
	}
	b.do(f, "CONFIG", "SET", "save", "3600 1000000")
	b.do(f, "BGSAVE")
	f.until("the snapshot fails", func() bool {
		return has(info(f, b.admin, "persistence"), "rdb_last_bgsave_status:err")
	})
}

func mendPersistence(f *fleet, b *backend) { b.do(f, "CONFIG", "SET", "save", "") }

// directory is where the server keeps its files.
func (b *backend) directory(f *fleet) string {
	pair, err := redis.Strings(b.do(f, "CONFIG", "GET", "dir"), nil)
	if err != nil || len(pair) != 2 {
		f.Fatal(pair, err)
	}
	return pair[1]
}

// occupy has a script hold the server until it is killed.
func occupy(f *fleet, b *backend) {
	conn := b.Conn()
	f.Cleanup(func() { _ = conn.Close() })
	go func() { _, _ = conn.Do("EVAL", "while true do end", 0) }() // ends when the script is killed
}

// killScript ends the script of occupy, which may not have begun yet.
func killScript(f *fleet, b *backend) {
	f.until("the script is killed", func() bool {
		_, err := b.admin.Do("SCRIPT", "KILL")
		return err == nil
	})
}

// fill leaves no room for the nodes' connections.
func fill(f *fleet, b *backend) {
	b.do(f, "CONFIG", "SET", "maxclients", "1")
	b.killClients(f)
}
