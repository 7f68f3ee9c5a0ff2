// This file has a real server refuse a batch, or a part of one, in every way that
// it can be made to, and checks what the store tells of it.

package integration

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/google/go-cmp/cmp"

	"github.com/hanzoai/limiters/internal/redisstore"
	"github.com/hanzoai/limiters/ratelimit/store"
	"github.com/hanzoai/limiters/testing/redistest"
)

// patient are timeouts that only a server that hangs meets.
var patient = redisstore.Timeouts{Connect: 10 * time.Second, Reply: 10 * time.Second}

// urlAs is the server's URL for a user whose password is "pw".
func urlAs(s *redistest.Server, user string) string {
	return fmt.Sprintf("redis://%s:pw@%s", user, s.Addr())
}

// expectError checks what an attempt's error tells.
func expectError(t *testing.T, what string, err error, fate store.Fate, cause string) {
	t.Helper()
	var failed *store.Error
	if !errors.As(err, &failed) {
		t.Errorf("%s: %v, want a *store.Error", what, err)
		return
	}
	if failed.Fate != fate || failed.Cause != cause {
		t.Errorf("%s: fate %d, cause %s (%v), want fate %d, cause %s", what, failed.Fate, failed.Cause, err, fate, cause)
	}
}

// TestAServerRefusesABatchAsAWhole: the attempt is denied, and nothing of it is
// in the server.
func TestAServerRefusesABatchAsAWhole(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		args  string
		cause string
	}{
		"out of memory":      {"--maxmemory 1 --maxmemory-policy noeviction", store.CauseOutOfMemory},
		"read-only replica":  {"--replicaof 127.0.0.1 1", store.CauseReadOnly},
		"no replicas":        {"--min-replicas-to-write 1", store.CauseNoReplicas},
		"no SET":             {"--user default on nopass ~* +@all -set", store.CausePermission},
		"no GET":             {"--user default on nopass ~* +@all -get", store.CausePermission},
		"no EVALSHA or EVAL": {"--user default on nopass ~* +@all -evalsha -eval", store.CausePermission},
		"sequence forbidden": {"--user default on nopass ~p:team* ~p:window +@all", store.CausePermission},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := realServer(t, row.args)
			r := openStore(t, s)
			err := r.Apply(context.Background(), storeBatch("p", 1, []store.Write{write("p:team:1", 5)}, "p:team:0"), &store.Reply{})
			expectError(t, name, err, store.Denied, row.cause)
			if n, err := redis.Int(s.Conn().Do("DBSIZE")); err != nil || n != 0 {
				t.Errorf("%d keys, %v, after a denied batch", n, err)
			}
		})
	}
}

func TestMasterDownIsNotSent(t *testing.T) {
	t.Parallel()
	s := realServer(t, "--replicaof 127.0.0.1 1 --replica-serve-stale-data no")
	err := openStore(t, s).Apply(context.Background(), storeBatch("p", 1, nil), &store.Reply{})
	var failed *store.Error
	if !errors.As(err, &failed) || failed.Fate == store.Unknown || failed.Cause != store.CauseMasterDown {
		t.Errorf("%v, want a denial for a master that is down", err)
	}
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	s := realServer(t, "--user default off --user bob on >pw ~* +@all")
	timeouts := patient
	apply := func(url string) error {
		return openStoreURL(t, url, timeouts).Apply(context.Background(), storeBatch("p", 1, nil), &store.Reply{})
	}
	if err := apply(urlAs(s, "bob")); err != nil {
		t.Errorf("right credentials: %v", err)
	}
	expectError(t, "wrong user", apply(urlAs(s, "eve")), store.NotSent, store.CauseAuth)
	expectError(t, "no credentials", apply(s.URL()), store.NotSent, store.CauseAuth)
	expectError(t, "a password alone", apply("redis://x@"+s.Addr()), store.NotSent, store.CauseAuth)
	timeouts.Connect = 50 * time.Millisecond // Redis waits for the rest of what it takes for a command
	expectError(t, "TLS to a plain port", apply("rediss://"+s.Addr()), store.NotSent, store.CauseTimeout)
}

// TestAServerRefusesSomeCounters: each costs itself alone, and a duplicate is
// told the same.
func TestAServerRefusesSomeCounters(t *testing.T) {
	t.Parallel()
	s := realServer(t, "--user bob on >pw ~p:* +@all", "--user eve on >pw ~p:* +@all -pexpire -mget -exists")
	r := openStoreURL(t, urlAs(s, "bob"), patient)
	for _, key := range []string{"other:a", "other:b"} {
		if _, err := s.Conn().Do("SET", key, 7); err != nil {
			t.Fatal(err)
		}
	}
	var reply store.Reply
	b := storeBatch("p", 1, []store.Write{write("p:a", 5), write("other:a", 5), write("p:b", 6)}, "p:a0", "other:b")
	// Redis checks the keys of EVALSHA itself first: all of them are forbidden then.
	err := r.Apply(context.Background(), b, &reply)
	expectError(t, "a key outside of the pattern", err, store.Denied, store.CausePermission)

	r = openStoreURL(t, urlAs(s, "eve"), patient)
	b = storeBatch("p", 1, []store.Write{write("p:a", 5), write("p:b", 6)}, "p:a0", "p:a")
	want := store.Reply{
		Number: 1, Outcome: store.Applied, Window: 60_000, Reads: []int64{0, 5},
		Writes: []store.WriteResult{{Status: store.Unexpiring, Total: 5}, {Status: store.Unexpiring, Total: 6}},
	}
	for _, outcome := range []store.Outcome{store.Applied, store.Duplicate} {
		want.Outcome = outcome
		if err := r.Apply(context.Background(), b, &reply); err != nil {
			t.Fatal(err)
		}
		reply.Time = 0
		if diff := cmp.Diff(want, reply); diff != "" {
			t.Errorf("outcome %d (-want +got):\n%s", outcome, diff)
		}
	}
}

func TestABusyServer(t *testing.T) {
	t.Parallel()
	s := realServer(t, "--lua-time-limit 1")
	r := openStore(t, s)
	b := storeBatch("p", 1, []store.Write{write("p:a", 5)})
	if err := r.Apply(context.Background(), b, &store.Reply{}); err != nil {
		t.Fatal(err)
	}
	looping := s.Conn()
	done := make(chan struct{})
	go func() { // ends when the script is killed
		defer close(done)
		_, _ = looping.Do("EVAL", "while true do end", 0)
	}()
	control := s.Conn()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
		if _, err := control.Do("PING"); err != nil {
			break // busy at last
		}
	}
	b.Number = 2
	expectError(t, "while another script runs", r.Apply(context.Background(), b, &store.Reply{}), store.Denied, store.CauseBusy)
	if _, err := control.Do("SCRIPT", "KILL"); err != nil {
		t.Fatal(err)
	}
	<-done
	var reply store.Reply
	if err := r.Apply(context.Background(), b, &reply); err != nil || reply.Outcome != store.Applied || reply.Writes[0].Total != 10 {
		t.Errorf("afterwards: %+v, %v", reply, err)
	}
}

func TestTooManyClients(t *testing.T) {
	t.Parallel()
	s := realServer(t)
	control := s.Conn()
	if _, err := control.Do("CONFIG", "SET", "maxclients", 1); err != nil {
		t.Fatal(err)
	}
	r := openStore(t, s)
	err := r.Apply(context.Background(), storeBatch("p", 1, nil), &store.Reply{})
	var failed *store.Error
	// The server may close before its last word was read.
	if !errors.As(err, &failed) || failed.Fate != store.NotSent || failed.Cause != store.CauseMaxClients && failed.Cause != store.CauseClosed {
		t.Errorf("%v, want it not sent for too many clients", err)
	}
	if _, err := control.Do("CONFIG", "SET", "maxclients", 100); err != nil {
		t.Fatal(err)
	}
	// One that closed over SCRIPT LOAD is taken for a proxy once; then all is well.
	if err := r.Apply(context.Background(), storeBatch("p", 1, nil), &store.Reply{}); err != nil {
		t.Errorf("with room again: %v", err)
	}
}
