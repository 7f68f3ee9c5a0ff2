package lua

// This file is a server of a few commands that runs the script, for its unit tests.

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	gopher "github.com/yuin/gopher-lua"
)

// A server is the redis table of a script: strings, lists by name, and errors to
// answer instead, by "COMMAND key" or "COMMAND".
type server struct {
	strings  map[string]string
	lists    map[string]bool
	errors   map[string]string
	commands []string
}

func newServer() *server {
	return &server{strings: map[string]string{}, lists: map[string]bool{}, errors: map[string]string{}}
}

// failed is a table with an err field, as pcall answers an error.
func failed(l *gopher.LState, text string) gopher.LValue {
	t := l.NewTable()
	t.RawSetString("err", gopher.LString(text))
	return t
}

const wrongType = "WRONGTYPE Operation against a key holding the wrong kind of value"

// do runs one command as redis.pcall does.
func (s *server) do(l *gopher.LState) gopher.LValue {
	var args []string
	for i := 1; i <= l.GetTop(); i++ {
		args = append(args, l.Get(i).String())
	}
	s.commands = append(s.commands, strings.Join(args, " "))
	for _, key := range append(slices.Clone(args[1:]), "") {
		if text, ok := s.errors[strings.TrimSpace(args[0]+" "+key)]; ok {
			return failed(l, text)
		}
	}
	switch args[0] {
	case "TIME":
		t := l.NewTable()
		t.Append(gopher.LString("1700000000"))
		t.Append(gopher.LString("000042"))
		return t
	case "GET":
		return s.get(l, args[1], failed(l, wrongType))
	case "MGET":
		t := l.NewTable()
		for i, key := range args[1:] {
			t.RawSetInt(i+1, s.get(l, key, gopher.LFalse))
		}
		return t
	case "EXISTS":
		n := 0
		for _, key := range args[1:] {
			if _, ok := s.strings[key]; ok || s.lists[key] {
				n++
			}
		}
		return gopher.LNumber(n)
	case "SET":
		s.strings[args[1]] = args[2]
		t := l.NewTable()
		t.RawSetString("ok", gopher.LString("OK"))
		return t
	case "INCRBY":
		old, ok := s.strings[args[1]]
		if !ok {
			old = "0"
		}
		n, err := strconv.ParseInt(old, 10, 64)
		if s.lists[args[1]] {
			return failed(l, wrongType)
		} else if err != nil {
			return failed(l, "ERR value is not an integer or out of range")
		}
		delta, _ := strconv.ParseInt(args[2], 10, 64)
		if delta > 0 && n > math.MaxInt64-delta {
			return failed(l, "ERR increment or decrement would overflow")
		}
		s.strings[args[1]] = strconv.FormatInt(n+delta, 10)
		return gopher.LNumber(n + delta)
	case "PEXPIRE":
		return gopher.LNumber(1)
	}
	return failed(l, "ERR unknown command "+args[0])
}

func (s *server) get(_ *gopher.LState, key string, otherType gopher.LValue) gopher.LValue {
	if s.lists[key] {
		return otherType
	}
	if text, ok := s.strings[key]; ok {
		return gopher.LString(text)
	}
	return gopher.LFalse
}

// run executes the script and returns its reply, flat, or its error.
func (s *server) run(c call) ([]int64, error) {
	l := gopher.NewState(gopher.Options{RegistrySize: 1 << 16})
	defer l.Close()
	redis := l.NewTable()
	redis.RawSetString("pcall", l.NewFunction(func(l *gopher.LState) int {
		l.Push(s.do(l))
		return 1
	}))
	redis.RawSetString("call", l.NewFunction(func(l *gopher.LState) int {
		answer := s.do(l)
		if t, ok := answer.(*gopher.LTable); ok && t.RawGetString("err") != gopher.LNil {
			l.Error(t.RawGetString("err"), 1)
		}
		l.Push(answer)
		return 1
	}))
	l.SetGlobal("redis", redis)
	l.SetGlobal("KEYS", list(l, strings.Fields(c.keys)))
	l.SetGlobal("ARGV", list(l, c.args()))
	if err := l.DoString("return (function() " + Source + " end)()"); err != nil {
		return nil, err
	}
	reply := l.Get(-1).(*gopher.LTable)
	if text := reply.RawGetString("err"); text != gopher.LNil {
		return nil, fmt.Errorf("returned: %s", text)
	}
	var flat []int64
	for i := 1; i <= reply.Len(); i++ {
		n, ok := reply.RawGetInt(i).(gopher.LNumber)
		if !ok || float64(int64(n)) != float64(n) {
			return nil, fmt.Errorf("element %d is %v, not an integer", i, reply.RawGetInt(i))
		}
		flat = append(flat, int64(n))
	}
	return flat, nil
}

func list(l *gopher.LState, texts []string) *gopher.LTable {
	t := l.NewTable()
	for _, text := range texts {
		t.Append(gopher.LString(text))
	}
	return t
}

// A call is one batch as the script is given it. Its keys are the sequence, the window,
// one for each delta, those to read, and previous ones of conditions.
type call struct {
	keys       string
	number     int64
	nonce      string // "" is "5"
	acked      int64
	retry      bool
	window     int64 // 0 is a minute
	deltas     []int64
	conditions []int64 // as the script's header lists them
	previous   int     // how many keys are of conditions
}

func (c call) args() (texts []string) {
	if c.nonce == "" {
		c.nonce = "5"
	}
	if c.window == 0 {
		c.window = 60_000
	}
	retry := 0
	if c.retry {
		retry = 1
	}
	reads := len(strings.Fields(c.keys)) - 2 - len(c.deltas) - c.previous
	for _, arg := range []any{c.number, c.nonce, c.acked, retry, 9000, c.window, 2000, 500, len(c.deltas), reads} {
		texts = append(texts, fmt.Sprint(arg))
	}
	specials := slices.Clone(c.conditions)
	for i, delta := range c.deltas {
		if delta < 0 && !c.conditional(int64(i)+1) {
			specials = append(specials, int64(i)+1, 0, 0, 0, 0)
		}
	}
	for _, n := range slices.Concat(c.deltas, specials) {
		texts = append(texts, fmt.Sprint(n))
	}
	return texts
}

// conditional reports whether a condition is of the write with this index.
func (c call) conditional(index int64) bool {
	for at := 0; at < len(c.conditions); at += 5 + int(c.conditions[at+4]) {
		if c.conditions[at] == index {
			return true
		}
	}
	return false
}

// batch is a first attempt that adds the deltas.
func batch(keys string, number int64, deltas ...int64) call {
	return call{keys: keys, number: number, deltas: deltas}
}

// again is the call as it is sent after an attempt of unknown fate.
func (c call) again() call {
	c.retry = true
	return c
}

// expect runs the script and compares the reply without its time.
func (s *server) expect(t *testing.T, c call, want ...int64) {
	t.Helper()
	got, err := s.run(c)
	if err != nil {
		t.Fatalf("%+v: %v", c, err)
	}
	if got[2] == 1_700_000_000 && got[3] != 42 {
		t.Errorf("microseconds %d, want 42", got[3])
	}
	got = slices.Delete(got, 2, 4)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%+v (-want +got):\n%s", c, diff)
	}
}

// holds checks what a key holds.
func (s *server) holds(t *testing.T, key, want string) {
	t.Helper()
	if got := s.strings[key]; got != want {
		t.Errorf("%s holds %q, want %q", key, got, want)
	}
}
