// This file runs the script in a Lua interpreter against a keyspace of a few
// lines, where any command can be made to fail with any server's wording.

package lua

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

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
			s.errors["INCRBY a"] = text
			c.number = 5
			s.expect(t, c, 5, 1, 60000, -1, 1, code, 0)
			s.holds(t, "a", "4")
		}
	}
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
