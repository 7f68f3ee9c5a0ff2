// This file drives a store against a server that answers what a test says, over
// in-memory pipes, and against the embedded server.

package redisstore

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/gomodule/redigo/redis"
	"github.com/google/go-cmp/cmp"

	"github.com/hanzoai/limiters/internal/heldport"
	"github.com/hanzoai/limiters/internal/redisurl"
	"github.com/hanzoai/limiters/lua"
	"github.com/hanzoai/limiters/ratelimit/store"
)

// A script is a server: for every command it is sent it says the next answer. An
// answer of "close" closes the connection; "hang" says nothing.
type script struct {
	mu       sync.Mutex
	answers  []string
	commands []string // the first word of each
	dials    int
	quote    bool // immutable; instead of the answers it quotes what it is asked
}

// pool returns a pool of pipes to the script.
func (s *script) pool() *redis.Pool {
	return &redis.Pool{MaxIdle: 1, Dial: func() (redis.Conn, error) {
		s.mu.Lock()
		s.dials++
		s.mu.Unlock()
		client, server := net.Pipe()
		go s.serve(server) // ends when either side closes
		return redis.NewConn(client, time.Second, time.Second), nil
	}}
}

func (s *script) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	r := bufio.NewReader(c)
	for {
		command, err := readCommand(r)
		if err != nil {
			return
		}
		s.mu.Lock()
		s.commands = append(s.commands, command[0])
		answer := "close"
		if len(s.answers) > 0 {
			answer, s.answers = s.answers[0], s.answers[1:]
		}
		s.mu.Unlock()
		if s.quote {
			answer = fmt.Sprintf("-ERR unknown command '%s', with args beginning with: '%.100s'", command[0], strings.Join(command[1:], "' '"))
			answer = strings.NewReplacer("\r", " ", "\n", " ").Replace(answer)
		}
		switch answer {
		case "close":
			return
		case "hang":
			continue
		}
		if _, err := io.WriteString(c, answer+"\r\n"); err != nil {
			return
		}
	}
}

// readCommand reads one RESP array of bulk strings.
func readCommand(r *bufio.Reader) ([]string, error) {
	count, err := readLength(r)
	if err != nil {
		return nil, err
	}
	words := make([]string, count)
	for i := range words {
		length, err := readLength(r)
		if err != nil {
			return nil, err
		}
		word := make([]byte, length+2)
		if _, err := io.ReadFull(r, word); err != nil {
			return nil, err
		}
		words[i] = string(word[:length])
	}
	return words, nil
}

func readLength(r *bufio.Reader) (int, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(line[1:]))
}

// small is a batch with one write and one read; fine is its answer.
func small() *store.Batch {
	return &store.Batch{
		Sequence: "p:id:seq", Number: 7, SequenceTTL: time.Hour, WindowKey: "p:window", Window: time.Minute,
		Writes: []store.Write{{Key: "p:a:1", Delta: 3}}, TTL: 2 * time.Minute, Reads: []string{"p:a:0"},
	}
}

const fine = "*7\r\n:7\r\n:1\r\n:1700000000\r\n:5\r\n:60000\r\n:3\r\n:9"

func TestApplyDecodesTheReply(t *testing.T) {
	t.Parallel()
	s := &script{answers: []string{fine}}
	var got store.Reply
	if err := New(s.pool(), Timeouts{}).Apply(context.Background(), small(), &got); err != nil {
		t.Fatal(err)
	}
	want := store.Reply{
		Number: 7, Outcome: store.Applied, Time: 1_700_000_000_000_005, Window: 60_000,
		Writes: []store.WriteResult{{Status: store.Written, Total: 3}}, Reads: []int64{9},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reply (-want +got):\n%s", diff)
	}
}

func TestFateOfEveryAnswer(t *testing.T) {
	t.Parallel()
	prefix62 := "-ERR Error running script (call to f_" + lua.SHA1 + "): @user_script:48: @user_script: 48: "
	for _, row := range []struct {
		answer      string
		fate        store.Fate
		step, cause string
		kept        bool
	}{
		{"-OOM command not allowed when used memory > 'maxmemory'. script: x, on @user_script:48.", store.Denied, store.StepReply, store.CauseOutOfMemory, true},
		{prefix62 + "-OOM command not allowed when used memory > 'maxmemory'.", store.Denied, store.StepReply, store.CauseOutOfMemory, true},
		{prefix62 + "The user executing the script can't run this command or subcommand", store.Denied, store.StepReply, store.CausePermission, true},
		{"-@user_script: 40: The user executing the script can't run this command or subcommand", store.Denied, store.StepReply, store.CausePermission, true},
		{prefix62 + "attempt to index a nil value", store.Unknown, store.StepReply, store.CauseOther, false},
		{"-READONLY You can't write against a read only replica.", store.Denied, store.StepReply, store.CauseReadOnly, false},
		{"-ERR READONLY You can't write against a read only replica.", store.Denied, store.StepReply, store.CauseReadOnly, false},
		{"-LOADING Redis is loading the dataset in memory", store.Denied, store.StepReply, store.CauseLoading, false},
		{"-MASTERDOWN Link with MASTER is down", store.Denied, store.StepReply, store.CauseMasterDown, false},
		{"-MISCONF Errors writing to the AOF file: No space left on device", store.Denied, store.StepReply, store.CauseMisconf, true},
		{"-NOREPLICAS Not enough good replicas to write.", store.Denied, store.StepReply, store.CauseNoReplicas, true},
		{"-BUSY Redis is busy running a script.", store.Denied, store.StepReply, store.CauseBusy, true},
		{"-NOPERM this user has no permissions to run the 'evalsha' command", store.Denied, store.StepReply, store.CausePermission, true},
		{"-NOAUTH Authentication required.", store.Denied, store.StepReply, store.CauseAuth, false},
		{"-WRONGPASS invalid username-password pair", store.Denied, store.StepReply, store.CauseAuth, false},
		{"-ERR max number of clients reached", store.Denied, store.StepReply, store.CauseMaxClients, false},
		{"-ERR Protocol error: unauthenticated multibulk length", store.Denied, store.StepReply, store.CauseAuth, false},
		{"-ERR Protocol error: too big inline request", store.Unknown, store.StepReply, store.CauseOther, false},
		{"-CLUSTERDOWN Hash slot not served", store.Denied, store.StepReply, store.CauseCluster, false},
		{"-CROSSSLOT Keys in request don't hash to the same slot", store.Denied, store.StepReply, store.CauseCluster, true},
		{"-MOVED 3999 127.0.0.1:6381", store.Denied, store.StepReply, store.CauseCluster, false},
		{"-ERR unknown command `EVALSHA`, with args beginning with: ", store.Denied, store.StepReply, store.CauseOther, true},
		{"-ERR upstream timeout", store.Unknown, store.StepReply, store.CauseOther, false},
		{"-ERR value is not an integer or out of range", store.Unknown, store.StepReply, store.CauseOther, false},
		{"-OOMPH", store.Unknown, store.StepReply, store.CauseOther, false},
		{"-", store.Unknown, store.StepReply, store.CauseOther, false},
		{"close", store.Unknown, store.StepReply, store.CauseClosed, false},
		{"hang", store.Unknown, store.StepReply, store.CauseTimeout, false},
		{"?what", store.Unknown, store.StepReply, store.CauseProtocol, false},
		{"*9223372036854775807", store.Unknown, store.StepReply, store.CauseProtocol, false},
		{"+OK", store.Unknown, store.StepDecode, store.CauseMalformed, false},
		{"*0", store.Unknown, store.StepDecode, store.CauseMalformed, false},
		{strings.Replace(fine, ":7", ":6", 1), store.Unknown, store.StepDecode, store.CauseMalformed, false},
		{fine + "\r\n+stray", 0, "", "", true},
	} {
		s := &script{answers: []string{row.answer, fine}}
		r := New(s.pool(), Timeouts{Reply: 50 * time.Millisecond})
		var reply store.Reply
		err := r.Apply(context.Background(), small(), &reply)
		if row.step == "" {
			if err != nil {
				t.Errorf("%q: %v", row.answer, err)
			}
			continue
		}
		var failed *store.Error
		if !errors.As(err, &failed) {
			t.Errorf("%q: %v, want a *store.Error", row.answer, err)
			continue
		}
		if failed.Fate != row.fate || failed.Step != row.step || failed.Cause != row.cause {
			t.Errorf("%q: fate %d step %s cause %s (%v), want %d %s %s",
				row.answer, failed.Fate, failed.Step, failed.Cause, failed.Err, row.fate, row.step, row.cause)
		}
		if err := r.Apply(context.Background(), small(), &reply); err != nil {
			t.Errorf("%q: the next attempt: %v", row.answer, err)
		}
		if kept := s.dials == 1; kept != row.kept {
			t.Errorf("%q: connection kept: %v, want %v", row.answer, kept, row.kept)
		}
	}
}

func TestNoScriptFallsBackToEvalWithinTheAttempt(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{"-NOSCRIPT No matching script. Please use EVAL.", "-ERR NOSCRIPT No matching script."} {
		s := &script{answers: []string{answer, fine, fine}}
		r := New(s.pool(), Timeouts{})
		var reply store.Reply
		for range 2 {
			if err := r.Apply(context.Background(), small(), &reply); err != nil {
				t.Fatalf("%q: %v", answer, err)
			}
		}
		if diff := cmp.Diff([]string{"EVALSHA", "EVAL", "EVALSHA"}, s.commands); diff != "" {
			t.Errorf("%q: commands (-want +got):\n%s", answer, diff)
		}
	}
}

func TestWhatIsNotSent(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	refused := &redis.Pool{Dial: func() (redis.Conn, error) {
		return nil, &net.OpError{Op: "dial", Err: errors.New("x")}
	}}
	exhausted := (&script{answers: []string{fine}}).pool()
	exhausted.MaxActive = 1
	held := exhausted.Get()
	defer func() { _ = held.Close() }()
	closed := (&script{}).pool()
	_ = closed.Close()
	panics := (&script{}).pool()
	panics.Dial = func() (redis.Conn, error) { panic("send on closed channel") }
	shut := New((&script{}).pool(), Timeouts{})
	_ = shut.Close()
	_ = shut.Close()
	auth := &redis.Pool{Dial: func() (redis.Conn, error) {
		return nil, fmt.Errorf("AUTH: %w", redis.Error("WRONGPASS invalid"))
	}}
	for name, row := range map[string]struct {
		ctx   context.Context
		store *Store
		cause string
	}{
		"ended context":  {ended, New((&script{}).pool(), Timeouts{}), store.CauseCanceled},
		"refused dial":   {nil, New(refused, Timeouts{}), store.CauseOther},
		"exhausted pool": {nil, New(exhausted, Timeouts{}), store.CausePoolExhausted},
		"closed pool":    {nil, New(closed, Timeouts{}), store.CauseOther},
		"panicking pool": {nil, New(panics, Timeouts{}), store.CauseOther},
		"closed store":   {nil, shut, store.CauseClosed},
		"wrong password": {nil, New(auth, Timeouts{}), store.CauseAuth},
	} {
		if row.ctx == nil {
			row.ctx = context.Background()
		}
		err := row.store.Apply(row.ctx, small(), &store.Reply{})
		var failed *store.Error
		if !errors.As(err, &failed) || failed.Fate != store.NotSent || failed.Step != store.StepConnect || failed.Cause != row.cause {
			t.Errorf("%s: %v, want not sent, %s", name, err, row.cause)
		}
	}
}

// embedded returns a store on an embedded server, and the server.
func embedded(tb testing.TB, url string) (*Store, *miniredis.Miniredis) {
	m := miniredis.RunT(tb)
	target, err := redisurl.Parse(fmt.Sprintf(url, m.Addr()))
	if err != nil {
		tb.Fatal(err)
	}
	r := Open(target, Options{Timeouts: Timeouts{Connect: 5 * time.Second, Reply: 5 * time.Second}})
	tb.Cleanup(func() { _ = r.Close() })
	return r, m
}

func TestConnectionIsPrepared(t *testing.T) {
	t.Parallel()
	r, m := embedded(t, "redis://bob:se%%2Cret@%s/3")
	m.RequireUserAuth("bob", "se,ret")
	var reply store.Reply
	if err := r.Apply(context.Background(), small(), &reply); err != nil {
		t.Fatal(err)
	}
	if got, err := m.DB(3).Get("p:a:1"); err != nil || got != "3" {
		t.Errorf("database 3 holds %q, %v", got, err)
	}
	for range 3 {
		if err := r.Apply(context.Background(), small(), &reply); err != nil {
			t.Fatal(err)
		}
	}
	if got := m.TotalConnectionCount(); got != 1 {
		t.Errorf("%d connections for 4 batches", got)
	}
}

func TestConnectFailuresAreBoundedAndNotSent(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	gone, err := heldport.Hold()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = gone.Release() }()
	for url, cause := range map[string]string{
		"redis://" + silent.Addr().String():                        store.CauseTimeout,
		"redis://u:p@" + silent.Addr().String():                    store.CauseTimeout,
		"rediss://u:p@" + silent.Addr().String():                   store.CauseTimeout,
		fmt.Sprintf("redis://%s:%d", heldport.Host, gone.Number()): store.CauseUnreachable,
		"unix://" + t.TempDir() + "/none.sock":                     store.CauseUnreachable,
	} {
		target, err := redisurl.Parse(url)
		if err != nil {
			t.Fatal(err)
		}
		r := Open(target, Options{Timeouts: Timeouts{Connect: 60 * time.Millisecond, Reply: 10 * time.Second}})
		began := time.Now()
		err = r.Apply(context.Background(), small(), &store.Reply{})
		var failed *store.Error
		if !errors.As(err, &failed) || failed.Fate != store.NotSent || failed.Cause != cause {
			t.Errorf("%s: %v, want not sent, %s", url, err, cause)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%s: took %v with a connect timeout of 60 ms", url, took)
		}
		_ = r.Close()
	}
}

// canned is a connection that answers every flush with the same bytes, so that
// what is measured is this process alone.
type canned struct {
	net.Conn
	reply  []byte
	unread bytes.Reader
}

func (c *canned) Write(p []byte) (int, error)      { return len(p), nil }
func (c *canned) Close() error                     { return nil }
func (c *canned) SetReadDeadline(time.Time) error  { return nil }
func (c *canned) SetWriteDeadline(time.Time) error { return nil }
func (c *canned) Read(p []byte) (int, error) {
	if c.unread.Len() == 0 {
		c.unread.Reset(c.reply)
	}
	return c.unread.Read(p)
}

// BenchmarkApply is what a batch costs the node, per entity that is written
// (and read): a canned reply, no network.
func BenchmarkApply(b *testing.B) {
	const entities = 500
	for _, reads := range []bool{false, true} {
		b.Run(fmt.Sprintf("reads=%v", reads), func(b *testing.B) {
			batch := &store.Batch{
				Sequence: "prefix:0123456789abcdef0123456789abcdef:seq", Number: 7, SequenceTTL: time.Hour,
				WindowKey: "prefix:window", Window: time.Minute, TTL: 2 * time.Minute, Spread: 12 * time.Second,
			}
			counters := 0
			var body strings.Builder
			for i := range entities {
				batch.Writes = append(batch.Writes, store.Write{
					Key: fmt.Sprintf("@hanzo/global_rate_limiter:team_%d:29000000", i), Delta: int64(i%300 + 1),
				})
				fmt.Fprintf(&body, ":%d\r\n", 1000+i)
				counters++
			}
			for i := range entities {
				if reads {
					batch.Reads = append(batch.Reads, fmt.Sprintf("@hanzo/global_rate_limiter:team_%d:28999999", i))
					fmt.Fprintf(&body, ":%d\r\n", 2000+i)
					counters++
				}
			}
			answer := fmt.Sprintf("*%d\r\n:7\r\n:1\r\n:1700000000\r\n:5\r\n:60000\r\n%s", 5+counters, body.String())
			pool := &redis.Pool{MaxIdle: 1, Dial: func() (redis.Conn, error) {
				return redis.NewConn(&canned{reply: []byte(answer)}, time.Second, time.Second), nil
			}}
			r := New(pool, Timeouts{})
			var reply store.Reply
			b.ReportAllocs()
			for b.Loop() {
				if err := r.Apply(context.Background(), batch, &reply); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/entities, "ns/entity")
		})
	}
}
