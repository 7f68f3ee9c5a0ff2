// This file lets a server hang, die and forget, and counts what arrived.

package integration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/hanzoai/limiters/internal/redisstore"
	"github.com/hanzoai/limiters/ratelimit/store"
	"github.com/hanzoai/limiters/testing/redistest"
)

// TestABatchSentThriceToAHungServerCountsOnce: every attempt timed out, and every
// one of them arrived.
func TestABatchSentThriceToAHungServerCountsOnce(t *testing.T) {
	t.Parallel()
	s := realServer(t)
	r := openStoreURL(t, s.URL(), redisstore.Timeouts{Connect: 10 * time.Second, Reply: 50 * time.Millisecond})
	spare := openStore(t, s)
	prefix := s.Prefix()
	var reply store.Reply
	if err := r.Apply(context.Background(), storeBatch(prefix, 1, nil), &reply); err != nil {
		t.Fatal(err)
	}
	b := storeBatch(prefix, 2, []store.Write{write(prefix+":a:1", 5)})
	s.Pause()
	expectError(t, "a hung server", r.Apply(context.Background(), b, &reply), store.Unknown, store.CauseTimeout)
	s.Resume()
	b.Retry = true
	if err := spare.Apply(context.Background(), b, &reply); err != nil || reply.Outcome != store.Duplicate && reply.Outcome != store.Applied {
		t.Fatalf("the retry: %+v, %v", reply, err)
	}
	for range 2 {
		if err := spare.Apply(context.Background(), b, &reply); err != nil {
			t.Fatal(err)
		}
	}
	if got := reply.Writes[0]; reply.Outcome != store.Duplicate || got.Status != store.Written || got.Total != 5 {
		t.Errorf("5 units sent four times: %+v", reply)
	}
}

func TestAHungServerBoundsAnAttempt(t *testing.T) {
	t.Parallel()
	s := realServer(t)
	if !s.CanPause() {
		skip(t, "the server cannot be paused")
	}
	timeouts := redisstore.Timeouts{Connect: 100 * time.Millisecond, Reply: 100 * time.Millisecond}
	r := openStoreURL(t, s.URL(), timeouts)
	s.Pause()
	defer s.Resume()
	began := time.Now()
	// The kernel accepts the connection; SCRIPT LOAD is what is not answered.
	expectError(t, "connecting", r.Apply(context.Background(), storeBatch("p", 1, nil), &store.Reply{}), store.NotSent, store.CauseTimeout)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("an attempt took %v", took)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	expectError(t, "a short deadline", r.Apply(ctx, storeBatch("p", 1, nil), &store.Reply{}), store.NotSent, store.CauseTimeout)
}

// TestAKilledServer: the attempt fails, the next one connects anew; what the
// server forgot is not counted again.
func TestAKilledServer(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{"forgets": nil, "remembers": {"--appendonly", "yes", "--appendfsync", "always"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := realServer(t, args...)
			r := openStore(t, s)
			var reply store.Reply
			b := storeBatch("p", 1, []store.Write{write("p:a:1", 5)})
			for b.Number = 1; b.Number < 3; b.Number++ {
				if err := r.Apply(context.Background(), b, &reply); err != nil {
					t.Fatal(err)
				}
			}
			b.Number = 2
			s.Kill()
			// The connection is found dead before the request is written, or after it if
			// its end takes its time to arrive.
			var failed *store.Error
			if err := r.Apply(context.Background(), b, &reply); !errors.As(err, &failed) ||
				failed.Fate != store.NotSent && (failed.Fate != store.Unknown || failed.Cause != store.CauseClosed) {
				t.Errorf("killed: %v, want it not sent, or closed", err)
			}
			expectError(t, "gone", r.Apply(context.Background(), b, &reply), store.NotSent, store.CauseUnreachable)
			s.Restart()
			b.Retry = true
			if err := r.Apply(context.Background(), b, &reply); err != nil {
				t.Fatalf("after the restart: %v", err)
			}
			want, total := store.Orphan, int64(0)
			if name == "remembers" {
				want, total = store.Duplicate, 10
			}
			if reply.Outcome != want || reply.Writes[0].Total != total {
				t.Errorf("after the restart: %+v, want outcome %d, total %d", reply, want, total)
			}
		})
	}
}

// TestAForgottenScript: NOSCRIPT costs a round trip within the attempt.
func TestAForgottenScript(t *testing.T) {
	t.Parallel()
	s := ownServer(t)
	r := openStore(t, s)
	prefix := s.Prefix()
	var reply store.Reply
	for number := uint64(1); number <= 3; number++ {
		if err := r.Apply(context.Background(), storeBatch(prefix, number, []store.Write{write(prefix+":a:1", 1)}), &reply); err != nil {
			t.Fatal(err)
		}
		if reply.Outcome != store.Applied || reply.Writes[0].Total != int64(number) {
			t.Errorf("batch %d: %+v", number, reply)
		}
		if _, err := s.Conn().Do("SCRIPT", "FLUSH"); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOneCommandPerBatch: connection set-up loads the script; from then on there
// is one EVALSHA for each batch and nothing else.
func TestOneCommandPerBatch(t *testing.T) {
	t.Parallel()
	s := realServer(t)
	watch := s.Conn()
	if _, err := watch.Do("MONITOR"); err != nil {
		t.Fatal(err)
	}
	r := openStoreURL(t, s.URL()+"/2", patient)
	for number := uint64(1); number <= 3; number++ {
		if err := r.Apply(context.Background(), storeBatch("p", number, []store.Write{write("p:a:1", 1)}, "p:a:0"), &store.Reply{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Conn().Do("ECHO", "the end"); err != nil {
		t.Fatal(err)
	}
	var commands []string
	for !slices.Contains(commands, "echo") {
		line, err := redis.String(watch.Receive())
		if err != nil {
			t.Fatal(err)
		}
		// 1339518083.107412 [0 127.0.0.1:60866] "keys" "*", or [0 lua] for a script's.
		_, rest, _ := strings.Cut(line, "] ")
		if !strings.Contains(line, " lua] ") {
			commands = append(commands, strings.ToLower(strings.Trim(strings.Fields(rest)[0], `"`)))
		}
	}
	if got := fmt.Sprint(commands); got != "[select script evalsha evalsha evalsha echo]" {
		t.Errorf("commands: %s", got)
	}
}

// TestNodesShareCounters: nothing is lost or doubled between nodes that each send
// everything twice.
func TestNodesShareCounters(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	prefix := s.Prefix()
	const nodes, batches = 6, 40
	var group sync.WaitGroup
	for node := range nodes {
		r := openStore(t, s)
		group.Go(func() {
			var reply store.Reply
			for number := uint64(1); number <= batches; number++ {
				b := storeBatch(prefix, number, []store.Write{write(prefix+":a:1", 1), write(fmt.Sprintf("%s:own%d:1", prefix, node), int64(number))})
				b.Sequence = fmt.Sprintf("%s:%d:seq", prefix, node)
				for _, want := range []store.Outcome{store.Applied, store.Duplicate} {
					if err := r.Apply(context.Background(), b, &reply); err != nil || reply.Outcome != want {
						t.Errorf("node %d, batch %d: %+v, %v", node, number, reply, err)
					}
					b.Retry = true
				}
			}
			if got := reply.Writes[1].Total; got != batches*(batches+1)/2 {
				t.Errorf("node %d's own counter is %d", node, got)
			}
		})
	}
	group.Wait()
	if got, err := redis.Int(s.Conn().Do("GET", prefix+":a:1")); err != nil || got != nodes*batches {
		t.Errorf("the shared counter is %d, %v, want %d", got, err, nodes*batches)
	}
}
