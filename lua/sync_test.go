// This file runs the script in a Lua interpreter against a keyspace of a few
// lines, where any command can be made to fail with any server's wording.

package lua

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

func TestOutcomes(t *testing.T) {
	t.Parallel()
	s := newServer()
	first := batch("seq win a r", 1, 5)
	s.expect(t, first.again(), 1, 1, 60000, 5, 0)
	s.expect(t, first, 1, 2, 60000, 5, 0)
	s.expect(t, call{keys: "seq win a", number: 2, window: 30000, deltas: []int64{3}}, 2, 1, 60000, 8)
	s.expect(t, first, 1, 3, 60000, 8, 0)
	s.expect(t, call{keys: "seq win a", number: 2, nonce: "6", deltas: []int64{3}}, 2, 3, 60000, 8)
	s.expect(t, batch("other win a a", 9, 5).again(), 9, 4, 60000, 8, 8)
	s.expect(t, batch("other win", 9), 9, 1, 60000)
	s.lists["bad"] = true
	s.expect(t, batch("bad none a", 1, 5), 1, 5, -1, 8)
	for _, text := range []string{
		"", "x", "-1", "1", "1 ", " 1", "1  5", "1.0 5", "1 5.0", "1 5 ", "1 5 3", "1 5 3:1", "1 5 3:8:0", "1 5 3:0:0", "1 5 3:11:0",
		"1 5 3:1:x", "1 5 3:1:-1", "1 5  3:1:0", "1 5 3:1:0:0", "1e3 5", "0x1 5",
	} {
		s.strings["bad"], s.lists["bad"] = text, false
		s.expect(t, batch("bad none", 2), 2, 5, -1)
	}
	s.strings["bad"] = "9007199254740990 5"
	s.expect(t, batch("bad win", 9007199254740991), 9007199254740991, 1, 60000)
	s.strings["bad"] = "9007199254740992 5"
	s.expect(t, batch("bad win", 9007199254740990), 9007199254740990, 3, 60000)
}

// Nonces that differ beyond what a float holds are different.
func TestNoncesAreText(t *testing.T) {
	t.Parallel()
	for _, nonces := range [][2]string{
		{"18446744073709551615", "18446744073709551614"}, {"9007199254740993", "9007199254740992"}, {"0", "00"}, {"5", "50"}, {"1", "+1"},
	} {
		s := newServer()
		c := call{keys: "seq win a", number: 3, nonce: nonces[0], deltas: []int64{5}}
		s.expect(t, c, 3, 1, 60000, 5)
		s.holds(t, "seq", "3 "+nonces[0])
		other := c
		other.nonce = nonces[1]
		s.expect(t, other, 3, 3, 60000, 5)
		s.expect(t, c, 3, 2, 60000, 5)
	}
}

func TestALookLeavesNoTrace(t *testing.T) {
	t.Parallel()
	s := newServer()
	s.strings["a"], s.strings["seq"] = "7", "3 5"
	s.expect(t, call{keys: "seq win a b", number: 0, acked: 9, retry: true}, 0, 6, -1, 7, 0)
	if diff := cmp.Diff([]string{"TIME", "GET win", "MGET a b", "EXISTS b"}, s.commands); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
	s.strings["win"] = "30000"
	s.expect(t, call{keys: "none win", number: 0}, 0, 6, 30000)
}

// What was acknowledged and is not there is told, and told again to a repetition.
func TestForgottenBatches(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		held          string
		number, acked int64
		retry         bool
		want          []int64 // outcome, total, notes
		kept          string
	}{
		{"", 3, 0, false, []int64{1, 5}, "3 5"},
		{"", 3, 2, false, []int64{1, 5, 0, 6, 0}, "3 5 0:6:0"},
		{"", 3, 2, true, []int64{4, 0, 0, 6, 0}, ""},
		{"", 3, 0, true, []int64{4, 0}, ""},
		{"1 9", 3, 2, false, []int64{1, 5, 0, 6, 0}, "3 5 0:6:0"},
		{"1 9 2:1:0", 3, 2, true, []int64{1, 5, 0, 6, 0}, "3 5 0:6:0"},
		{"2 9", 3, 2, false, []int64{1, 5}, "3 5"},
		{"2 9", 3, 1, true, []int64{1, 5}, "3 5"},
		{"3 9", 3, 2, false, []int64{3, 0}, "3 9"},
		{"4 9", 3, 2, true, []int64{3, 0}, "4 9"},
		{"x", 3, 2, false, []int64{5, 0}, "x"},
	} {
		s := newServer()
		if c.held != "" {
			s.strings["seq"] = c.held
		}
		s.strings["win"] = "60000"
		b := call{keys: "seq win a", number: c.number, acked: c.acked, retry: c.retry, deltas: []int64{5}}
		want := slices.Concat([]int64{c.number, c.want[0], 60000}, c.want[1:])
		s.expect(t, b, want...)
		s.holds(t, "seq", c.kept)
		if want[1] == 1 {
			want[1] = 2
			s.expect(t, b.again(), want...)
		}
	}
}

func TestCommandsOfABatch(t *testing.T) {
	t.Parallel()
	s := newServer()
	s.strings["old"], s.strings["back"] = "7", "2"
	s.expect(t, batch("seq win new old back none r", 1, 5, 1, -3, -3), 1, 1, 60000, 5, 8, 0, 0, 0, 3, 5, 2, 4, 5, 0)
	want := []string{
		"TIME", "GET seq", "SET seq 1 5 PX 9000", "GET win", "SET win 60000 PX 9000",
		"INCRBY new 5", "PEXPIRE new 2500", "INCRBY old 1", "GET back", "INCRBY back -2", "GET none",
		"SET seq 1 5 3:5:2 4:5:0 PX 9000", "MGET r", "EXISTS r",
	}
	if diff := cmp.Diff(want, s.commands); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
	if _, ok := s.strings["none"]; ok {
		t.Error("taking from a counter that does not exist creates it")
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
	for code, texts := range map[int64][]string{1: poison, 2: refusals} {
		for _, text := range texts {
			s := newServer()
			s.strings["a"] = "4"
			s.errors["INCRBY a"] = text
			total := int64(-1)
			if code == 2 {
				total = 4
			}
			b := batch("seq win a b", 1, 5, 6)
			s.expect(t, b, 1, 1, 60000, total, 6, 1, code, 0)
			s.holds(t, "seq", fmt.Sprintf("1 5 1:%d:0", code))
			s.expect(t, b.again(), 1, 2, 60000, 4, 6, 1, code, 0)
			// A taking and a condition come to the same.
			s.expect(t, batch("seq win a b", 2, -1, -1), 2, 1, 60000, total, 5, 1, code, 0)
			c := call{keys: "seq win a", number: 3, deltas: []int64{0}, conditions: []int64{1, 0, 9, 0, 1, 1}}
			s.expect(t, c, 3, 1, 60000, total, 1, code, 0)
			delete(s.errors, "INCRBY a")
			s.errors["GET a"] = text
			s.expect(t, batch("seq win a", 4, -1), 4, 1, 60000, -1, 1, code, 0)
			c.number = 5
			s.expect(t, c, 5, 1, 60000, -1, 1, code, 0)
			s.holds(t, "a", "4")
		}
	}
}

func TestUnexpiring(t *testing.T) {
	t.Parallel()
	s := newServer()
	s.errors["PEXPIRE a"] = refusals[0]
	s.expect(t, batch("seq win a b", 1, 5, 1), 1, 1, 60000, 5, 1, 1, 3, 0)
	s.expect(t, batch("seq win a b", 1, 5, 1).again(), 1, 2, 60000, 5, 1, 1, 3, 0)
	s.expect(t, batch("seq win a", 2, 1), 2, 1, 60000, 6)
	s.holds(t, "seq", "2 5")
	delete(s.strings, "a")
	c := call{keys: "seq win a", number: 3, deltas: []int64{0}, conditions: []int64{1, 0, 9, 0, 1, 4}}
	s.expect(t, c, 3, 1, 60000, 4, 1, 3, 0, 1, 7, 1)
}

func TestReadsOfPoisonedAndForbiddenKeys(t *testing.T) {
	t.Parallel()
	s := newServer()
	s.strings["n"], s.strings["text"], s.strings["neg"], s.strings["zeros"], s.strings["big"] = "5", "x", "-1", "007", "9007199254740992"
	s.lists["list"] = true
	keys := "seq win n text neg zeros big none list gone"
	s.expect(t, batch(keys, 1), 1, 1, 60000, 5, -1, -1, 7, 9007199254740991, 0, -1, 0)
	s.errors["MGET none"] = refusals[0]
	s.errors["EXISTS none"] = refusals[0]
	s.errors["GET none"] = refusals[0]
	s.expect(t, batch(keys, 2), 2, 1, 60000, 5, -1, -1, 7, 9007199254740991, -1, -1, 0)
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
	s.expect(t, batch(keys, 1), want...)
}

// TestNothingRaisesAfterTheNumberIsSet makes every command fail in turn: either
// the number is not set and nothing was written, or the script answers.
func TestNothingRaisesAfterTheNumberIsSet(t *testing.T) {
	t.Parallel()
	for _, command := range []string{
		"TIME", "GET", "SET", "INCRBY", "PEXPIRE", "MGET", "EXISTS",
		"GET seq", "GET win", "GET a", "GET c", "GET p", "SET seq", "SET win", "INCRBY a", "INCRBY c", "PEXPIRE win", "MGET r",
	} {
		for _, text := range refusals {
			for _, window := range []string{"", "60000", "x"} {
				s := newServer()
				s.errors[command] = text
				if window != "" {
					s.strings["win"] = window
				}
				reply, err := s.run(call{
					keys: "seq win a b c r p", number: 2, acked: 1, deltas: []int64{5, 6, -7}, previous: 1,
					conditions: []int64{2, 9, 99, 7, 2, 1, 1},
				})
				if _, applied := s.strings["seq"]; err != nil && (applied || s.strings["a"] != "") {
					t.Errorf("%s fails with %q: %v after a part was applied", command, text, err)
				} else if err == nil && (!applied || len(reply) < 9 || len(reply)%3 != 0) {
					t.Errorf("%s fails with %q: reply %v, applied %v", command, text, reply, applied)
				}
				if raises := command == "GET" || command == "SET" || strings.HasSuffix(command, " seq"); raises != (err != nil) {
					t.Errorf("%s fails with %q: %v", command, text, err)
				}
			}
		}
	}
}

// TestNotesThatCannotBeKept cost a repetition its statuses and nothing else.
func TestNotesThatCannotBeKept(t *testing.T) {
	t.Parallel()
	s := newServer()
	s.strings["a"] = "x"
	s.errors["SET 1 5 1:1:0"] = refusals[0]
	s.expect(t, batch("seq win a", 1, 5), 1, 1, 60000, -1, 1, 1, 0)
	s.expect(t, batch("seq win a", 1, 5).again(), 1, 2, 60000, -1)
}

// Notes of writes that the batch does not have are passed over.
func TestNotesOfOtherWrites(t *testing.T) {
	t.Parallel()
	s := newServer()
	s.strings["seq"] = "2 5 0:1:0 2:3:0 3:2:0 99999999999999999999:1:99999999999999999999 1:5:99999999999999999999"
	s.expect(t, batch("seq win a b", 2, 1, 1).again(), 2, 2, -1, 0, 0, 0, 1, 0, 2, 3, 0, 1, 5, 9007199254740991)
}

func TestSourceIsWhatItsNameSays(t *testing.T) {
	t.Parallel()
	if got := digest("return 1"); got != "e0e1f9fabfc9d4800c877a703b823ac0578ff8db" {
		t.Errorf("digest = %s", got)
	}
	if len(SHA1) != 40 || strings.ToLower(SHA1) != SHA1 {
		t.Errorf("SHA1 = %q", SHA1)
	}
	if n := strings.Count(Source, "\n"); n > 160 {
		t.Errorf("sync.lua has %d lines", n)
	}
}
