// This file runs the script in a Lua interpreter against a keyspace of a few
// lines, where any command can be made to fail with any server's wording.

package lua

import (
	"fmt"
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
		old := s.strings[args[1]]
		if old == "" {
			old = "0"
		}
		n, err := strconv.ParseInt(old, 10, 64)
		if s.lists[args[1]] {
			return failed(l, wrongType)
		} else if err != nil {
			return failed(l, "ERR value is not an integer or out of range")
		}
		delta, _ := strconv.ParseInt(args[2], 10, 64)
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
func (s *server) run(keys []string, args ...any) ([]int64, error) {
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
	l.SetGlobal("KEYS", list(l, keys))
	var texts []string
	for _, arg := range args {
		texts = append(texts, fmt.Sprint(arg))
	}
	l.SetGlobal("ARGV", list(l, texts))
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

// expect runs the script and compares the reply without its time.
func (s *server) expect(t *testing.T, want []int64, keys string, args ...any) {
	t.Helper()
	got, err := s.run(strings.Fields(keys), args...)
	if err != nil {
		t.Fatalf("%s %v: %v", keys, args, err)
	}
	if got[2] == 1_700_000_000 && got[3] != 42 {
		t.Errorf("microseconds %d, want 42", got[3])
	}
	got = slices.Delete(got, 2, 4)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s %v (-want +got):\n%s", keys, args, diff)
	}
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	s := newServer()
	s.expect(t, []int64{1, 1, 60000, 0, 5, 0}, "seq win a r", 1, 1, 9000, 60000, 2000, 500, 1, 5)
	s.expect(t, []int64{1, 2, 60000, 0, 5, 0}, "seq win a r", 1, 1, 9000, 60000, 2000, 500, 1, 5)
	s.expect(t, []int64{2, 1, 60000, 0, 8}, "seq win a", 2, 0, 9000, 30000, 2000, 500, 1, 3)
	s.expect(t, []int64{1, 2, 60000, 0, 8}, "seq win a", 1, 0, 9000, 60000, 2000, 500, 1, 5)
	s.expect(t, []int64{9, 3, 60000, 4, 8, 8}, "other win a a", 9, 1, 9000, 60000, 2000, 500, 1, 5)
	s.expect(t, []int64{9, 1, 60000}, "other win", 9, 0, 9000, 60000, 2000, 500, 0)
	s.lists["bad"] = true
	s.expect(t, []int64{1, 4, -1, 4, 8}, "bad none a", 1, 0, 9000, 60000, 2000, 500, 1, 5)
	for _, text := range []string{"", "x", "-1", "1.0", "1 ", "1 2", "1 2:4", "1 2:1x", "9007199254740992", "1e3", "0x1"} {
		s.strings["bad"], s.lists["bad"] = text, false
		s.expect(t, []int64{2, 4, -1}, "bad none", 2, 0, 9000, 60000, 2000, 500, 0)
	}
	s.strings["bad"] = "9007199254740990"
	s.expect(t, []int64{9007199254740991, 1, 60000}, "bad win", 9007199254740991, 0, 9000, 60000, 2000, 500, 0)
}

func TestCommandsOfABatch(t *testing.T) {
	t.Parallel()
	s := newServer()
	s.strings["old"] = "7"
	s.expect(t, []int64{1, 1, 60000, 0, 5, 0, 8, 0}, "seq win new old r", 1, 0, 9000, 60000, 2000, 500, 2, 5, 1)
	want := []string{
		"TIME", "GET seq", "SET seq 1 PX 9000", "GET win", "SET win 60000 PX 9000",
		"INCRBY new 5", "PEXPIRE new 2500", "INCRBY old 1", "MGET r", "EXISTS r",
	}
	if diff := cmp.Diff(want, s.commands); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
}

// The wordings of one refusal: Redis 7, 6.2, and one that names a key such that
// it looks like poison.
var refusals = []string{
	"NOPERM ACL failure in script: No permissions to access a key",
	"@user_script: 48: The user executing the script can't access at least one of the keys mentioned in the command arguments",
	"ERR No permissions to access the 'overflow WRONGTYPE value is not an integer' key",
	"",
}

func TestRefusedAndPoisoned(t *testing.T) {
	t.Parallel()
	poison := []string{
		wrongType, "-" + wrongType, "ERR value is not an integer or out of range", "value is not an integer or out of range",
		"-ERR increment or decrement would overflow", "ERR increment or decrement would overflow", "increment or decrement would overflow",
	}
	for status, texts := range map[int64][]string{1: poison, 2: refusals} {
		for _, text := range texts {
			s := newServer()
			s.strings["a"] = "4"
			s.errors["INCRBY a"] = text
			total := int64(-1)
			if status == 2 {
				total = 4
			}
			s.expect(t, []int64{1, 1, 60000, status, total, 0, 6}, "seq win a b", 1, 0, 9000, 60000, 2000, 500, 2, 5, 6)
			if want := fmt.Sprintf("1 1:%d", status); s.strings["seq"] != want {
				t.Errorf("%q: the sequence key holds %q, want %q", text, s.strings["seq"], want)
			}
			s.expect(t, []int64{1, 2, 60000, status, 4, 0, 6}, "seq win a b", 1, 1, 9000, 60000, 2000, 500, 2, 5, 6)
		}
	}
}

func TestSumsOutOfRangeArePoisoned(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]int64{
		"9007199254740990": {0, 9007199254740991}, "9007199254740991": {1, -1}, "-9": {1, -1}, "-1": {0, 0}, "0": {0, 1}, "x": {1, -1},
		"9223372036854775806": {1, -1},
	} {
		s := newServer()
		s.strings["a"] = text
		s.expect(t, append([]int64{1, 1, 60000}, want...), "seq win a", 1, 0, 9000, 60000, 2000, 500, 1, 1)
	}
}

func TestUnexpiring(t *testing.T) {
	t.Parallel()
	s := newServer()
	s.errors["PEXPIRE a"] = refusals[0]
	s.expect(t, []int64{1, 1, 60000, 3, 5, 0, 1}, "seq win a b", 1, 0, 9000, 60000, 2000, 500, 2, 5, 1)
	s.expect(t, []int64{1, 2, 60000, 3, 5, 0, 1}, "seq win a b", 1, 1, 9000, 60000, 2000, 500, 2, 5, 1)
	s.expect(t, []int64{2, 1, 60000, 0, 6}, "seq win a", 2, 0, 9000, 60000, 2000, 500, 1, 1)
	if s.strings["seq"] != "2" {
		t.Errorf("the sequence key holds %q, want the number alone", s.strings["seq"])
	}
}

func TestReadsOfPoisonedAndForbiddenKeys(t *testing.T) {
	t.Parallel()
	s := newServer()
	s.strings["n"], s.strings["text"], s.strings["neg"], s.strings["zeros"], s.strings["big"] = "5", "x", "-1", "007", "9007199254740992"
	s.lists["list"] = true
	s.expect(t, []int64{1, 1, 60000, 5, -1, -1, 7, -1, 0, -1, 0}, "seq win n text neg zeros big none list gone", 1, 0, 9000, 60000, 2000, 500, 0)
	s.errors["MGET none"] = refusals[0]
	s.errors["EXISTS none"] = refusals[0]
	s.errors["GET none"] = refusals[0]
	s.expect(t, []int64{2, 1, 60000, 5, -1, -1, 7, -1, -1, -1, 0}, "seq win n text neg zeros big none list gone", 2, 0, 9000, 60000, 2000, 500, 0)
}

func TestReadsBeyondOneSlice(t *testing.T) {
	t.Parallel()
	s := newServer()
	keys := "seq win"
	want := []int64{1, 1, 60000}
	for i := range 2345 {
		keys += fmt.Sprintf(" k%d", i)
		if i%3 != 0 {
			s.strings[fmt.Sprintf("k%d", i)] = fmt.Sprint(i)
			want = append(want, int64(i))
		} else {
			want = append(want, 0)
		}
	}
	s.expect(t, want, keys, 1, 0, 9000, 60000, 2000, 500, 0)
}

// TestNothingRaisesAfterTheNumberIsSet makes every command fail in turn: either
// the number is not set and nothing was written, or the script answers.
func TestNothingRaisesAfterTheNumberIsSet(t *testing.T) {
	t.Parallel()
	for _, command := range []string{
		"TIME", "GET", "SET", "INCRBY", "PEXPIRE", "MGET", "EXISTS",
		"GET seq", "GET win", "SET seq", "SET win", "INCRBY a", "PEXPIRE win", "MGET r",
	} {
		for _, text := range refusals {
			for _, window := range []string{"", "60000", "x"} {
				s := newServer()
				s.errors[command] = text
				if window != "" {
					s.strings["win"] = window
				}
				reply, err := s.run([]string{"seq", "win", "a", "b", "r"}, 1, 0, 9000, 60000, 2000, 500, 2, 5, 6)
				if _, applied := s.strings["seq"]; err != nil && (applied || s.strings["a"] != "") {
					t.Errorf("%s fails with %q: %v after a part was applied", command, text, err)
				} else if err == nil && (!applied || len(reply) != 10) {
					t.Errorf("%s fails with %q: reply %v, applied %v", command, text, reply, applied)
				}
				if raises := command == "GET" || command == "SET" || strings.HasSuffix(command, " seq"); raises != (err != nil) {
					t.Errorf("%s fails with %q: %v", command, text, err)
				}
			}
		}
	}
}

// TestAFailureListThatCannotBeKept costs a duplicate its statuses and nothing else.
func TestAFailureListThatCannotBeKept(t *testing.T) {
	t.Parallel()
	s := newServer()
	s.strings["a"] = "x"
	s.errors["SET 1 1:1"] = refusals[0]
	s.expect(t, []int64{1, 1, 60000, 1, -1}, "seq win a", 1, 0, 9000, 60000, 2000, 500, 1, 5)
	s.expect(t, []int64{1, 2, 60000, 0, -1}, "seq win a", 1, 1, 9000, 60000, 2000, 500, 1, 5)
}

func TestSourceIsWhatItsNameSays(t *testing.T) {
	t.Parallel()
	if got := digest("return 1"); got != "e0e1f9fabfc9d4800c877a703b823ac0578ff8db" {
		t.Errorf("digest = %s", got)
	}
	if len(SHA1) != 40 || strings.ToLower(SHA1) != SHA1 {
		t.Errorf("SHA1 = %q", SHA1)
	}
	if n := strings.Count(Source, "\n"); n > 80 {
		t.Errorf("sync.lua has %d lines", n)
	}
}
