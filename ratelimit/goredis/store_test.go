package goredis

// This file drives a store against a server that answers what a test says.

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hanzoai/limiters/ratelimit/store"
)

// A script is a server that answers each EVALSHA and EVAL with the next of its
// answers: a line of RESP, "close" or "hang". It refuses what prepares a
// connection, and takes every other command with OK.
type script struct {
	addr       string
	refuseAuth bool // set before it is used; quotes what it refuses

	mu       sync.Mutex
	answers  []string // guarded by mu
	commands []string // guarded by mu; those that were answered from answers
}

func serveScript(t *testing.T, answers ...string) *script {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &script{addr: l.Addr().String(), answers: answers}
	var serving sync.WaitGroup
	serving.Go(func() { // ends with the listener
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { s.serve(c) }) // ends with the client
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		serving.Wait()
	})
	return s
}

func (s *script) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	r := bufio.NewReader(c)
	for {
		words, err := readCommand(r)
		if err != nil {
			return
		}
		answer := "+OK"
		switch name := strings.ToLower(words[0]); name {
		case "hello":
			answer = "-ERR unknown command 'HELLO'"
		case "auth":
			if s.refuseAuth {
				answer = "-ERR unknown command 'auth', with args beginning with: '" + words[len(words)-1] + "' "
			}
		case "evalsha", "eval":
			s.mu.Lock()
			s.commands = append(s.commands, name)
			answer = "close"
			if len(s.answers) > 0 {
				answer, s.answers = s.answers[0], s.answers[1:]
			}
			s.mu.Unlock()
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

// seen returns the commands that were answered from answers.
func (s *script) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.commands)
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

// open returns a store on a client that would retry thrice if it were let.
func open(t *testing.T, o *redis.Options) *Store {
	t.Helper()
	o.MaxRetries, o.MinRetryBackoff, o.MaxRetryBackoff = 3, time.Millisecond, time.Millisecond
	o.DialerRetries = 1
	c := redis.NewClient(o)
	t.Cleanup(func() { _ = c.Close() })
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// small is a batch with one write and one read; fine is its answer.
func small() *store.Batch {
	return &store.Batch{
		Sequence: "p:id:seq", Number: 7, SequenceTTL: time.Hour, WindowKey: "p:window", Window: time.Minute,
		Writes: []store.Write{{Key: "p:a:1", Delta: 3}}, TTL: 2 * time.Minute, Reads: []string{"p:a:0"},
	}
}

const fine = "*7\r\n:7\r\n:1\r\n:1700000000\r\n:5\r\n:60000\r\n:3\r\n:9"

func TestFateOfEveryAnswer(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		answer      string
		fate        store.Fate
		step, cause string
	}{
		{"-OOM command not allowed when used memory > 'maxmemory'. script: x, on @user_script:48.", store.Denied, store.StepReply, store.CauseOutOfMemory},
		{"-@user_script: 40: The user executing the script can't run this command or subcommand", store.Denied, store.StepReply, store.CausePermission},
		{"-READONLY You can't write against a read only replica.", store.Denied, store.StepReply, store.CauseReadOnly},
		{"-ERR READONLY You can't write against a read only replica.", store.Denied, store.StepReply, store.CauseReadOnly},
		{"-LOADING Redis is loading the dataset in memory", store.Denied, store.StepReply, store.CauseLoading},
		{"-MASTERDOWN Link with MASTER is down", store.Denied, store.StepReply, store.CauseMasterDown},
		{"-MISCONF Errors writing to the AOF file: No space left on device", store.Denied, store.StepReply, store.CauseMisconf},
		{"-NOREPLICAS Not enough good replicas to write.", store.Denied, store.StepReply, store.CauseNoReplicas},
		{"-BUSY Redis is busy running a script.", store.Denied, store.StepReply, store.CauseBusy},
		{"-NOPERM this user has no permissions to run the 'evalsha' command", store.Denied, store.StepReply, store.CausePermission},
		{"-NOAUTH Authentication required.", store.Denied, store.StepReply, store.CauseAuth},
		{"-ERR max number of clients reached", store.Denied, store.StepReply, store.CauseMaxClients},
		{"-CLUSTERDOWN Hash slot not served", store.Denied, store.StepReply, store.CauseCluster},
		{"-TRYAGAIN Multiple keys request during rehashing of slot", store.Denied, store.StepReply, store.CauseCluster},
		{"-CROSSSLOT Keys in request don't hash to the same slot", store.Denied, store.StepReply, store.CauseCluster},
		{"-MOVED 3999 127.0.0.1:6381", store.Denied, store.StepReply, store.CauseCluster},
		{"-ERR upstream timeout", store.Unknown, store.StepReply, store.CauseOther},
		{"-OOMPH", store.Unknown, store.StepReply, store.CauseOther},
		{"close", store.Unknown, store.StepReply, store.CauseClosed},
		{"hang", store.Unknown, store.StepReply, store.CauseTimeout},
		{"?what", store.Unknown, store.StepReply, store.CauseProtocol},
		{"*9223372036854775807", store.Unknown, store.StepReply, store.CauseProtocol},
		{"*-1", store.Unknown, store.StepReply, store.CauseMalformed},
		{"$-1", store.Unknown, store.StepReply, store.CauseMalformed},
		{"+OK", store.Unknown, store.StepDecode, store.CauseMalformed},
		{"*0", store.Unknown, store.StepDecode, store.CauseMalformed},
		{strings.Replace(fine, ":7", ":6", 1), store.Unknown, store.StepDecode, store.CauseMalformed},
	} {
		s := serveScript(t, row.answer, fine, fine, fine)
		r := open(t, &redis.Options{Addr: s.addr, ReadTimeout: 100 * time.Millisecond, PoolSize: 1})
		var reply store.Reply
		err := r.Apply(context.Background(), small(), &reply)
		var failed *store.Error
		if !errors.As(err, &failed) {
			t.Errorf("%q: %v, want a *store.Error", row.answer, err)
			continue
		}
		if failed.Fate != row.fate || failed.Step != row.step || failed.Cause != row.cause {
			t.Errorf("%q: fate %d step %s cause %s (%v), want %d %s %s",
				row.answer, failed.Fate, failed.Step, failed.Cause, failed.Err, row.fate, row.step, row.cause)
		}
		if got := s.seen(); len(got) != 1 {
			t.Errorf("%q: sent %d times: the client retries unseen", row.answer, len(got))
		}
		if err := r.Apply(context.Background(), small(), &reply); err != nil {
			t.Errorf("%q: the next attempt: %v", row.answer, err)
		}
	}
}

func TestNoScriptFallsBackToEvalWithinTheAttempt(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{"-NOSCRIPT No matching script. Please use EVAL.", "-ERR NOSCRIPT No matching script."} {
		s := serveScript(t, answer, fine, fine)
		r := open(t, &redis.Options{Addr: s.addr})
		var reply store.Reply
		for range 2 {
			if err := r.Apply(context.Background(), small(), &reply); err != nil {
				t.Fatalf("%q: %v", answer, err)
			}
		}
		if got, want := s.seen(), []string{"evalsha", "eval", "evalsha"}; !slices.Equal(got, want) {
			t.Errorf("%q: commands %q, want %q", answer, got, want)
		}
		if reply.Number != 7 || reply.Outcome != store.Applied || reply.Writes[0].Total != 3 || reply.Reads[0] != 9 {
			t.Errorf("%q: reply %+v", answer, reply)
		}
	}
}

func TestWhatIsNotSent(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := listener.Addr().String()
	_ = listener.Close()
	plain := serveScript(t)
	closed := redis.NewClient(&redis.Options{Addr: plain.addr})
	_ = closed.Close()
	onClosed, err := New(closed)
	if err != nil {
		t.Fatal(err)
	}
	cluster := redis.NewClusterClient(&redis.ClusterOptions{
		ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
			return []redis.ClusterSlot{{Start: 0, End: slots - 1, Nodes: []redis.ClusterNode{{Addr: gone}}}}, nil
		},
		DialerRetries: 1,
	})
	t.Cleanup(func() { _ = cluster.Close() })
	onCluster, err := New(cluster)
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		ctx   context.Context
		store *Store
		cause string
	}{
		"ended context":             {ended, open(t, &redis.Options{Addr: plain.addr}), store.CauseCanceled},
		"nothing listens":           {nil, open(t, &redis.Options{Addr: gone}), store.CauseUnreachable},
		"nothing listens (cluster)": {nil, onCluster, store.CauseUnreachable},
		"no such socket":            {nil, open(t, &redis.Options{Network: "unix", Addr: t.TempDir() + "/none"}), store.CauseUnreachable},
		"closed client":             {nil, onClosed, store.CauseClosed},
		"plain server, TLS client": {
			nil, open(t, &redis.Options{Addr: serveText(t, "-ERR plain\r\n"), TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, ServerName: "x"}}),
			store.CauseTLS,
		},
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

// A client that heeds contexts ends an attempt with its context.
func TestAContextEndsAnAttempt(t *testing.T) {
	t.Parallel()
	r := open(t, &redis.Options{Addr: serveScript(t, "hang", fine).addr, ReadTimeout: time.Hour, ContextTimeoutEnabled: true})
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	err := r.Apply(ctx, small(), &store.Reply{})
	var failed *store.Error
	if !errors.As(err, &failed) || failed.Fate != store.Unknown || failed.Cause != store.CauseTimeout {
		t.Errorf("%v, want unknown, timeout", err)
	}
	if err := r.Apply(context.Background(), small(), &store.Reply{}); err != nil {
		t.Errorf("the next attempt: %v", err)
	}
}

// serveText sends every client the text at once.
func serveText(t *testing.T, text string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() { // ends with the listener
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { // ends with the client
				defer func() { _ = c.Close() }()
				_, _ = io.WriteString(c, text)
				_, _ = io.Copy(io.Discard, c)
			}()
		}
	}()
	return l.Addr().String()
}

func TestNothingOfABatchIsKept(t *testing.T) {
	t.Parallel()
	r := open(t, &redis.Options{Addr: serveScript(t, fine).addr})
	if err := r.Apply(context.Background(), small(), &store.Reply{}); err != nil {
		t.Fatal(err)
	}
	for i, arg := range r.args {
		if arg != nil {
			t.Errorf("argument %d is kept: %v", i, arg)
		}
	}
}
