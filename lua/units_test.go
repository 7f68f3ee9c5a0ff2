// This file tests what the script does with units: takings, grants, and sums out of
// range.

package lua

import "testing"

func TestTakings(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		reply []int64 // total, notes
		left  string
	}{
		"10": {[]int64{7}, "7"}, "3": {[]int64{0}, "0"}, "2": {[]int64{0, 1, 5, 2}, "0"}, "0": {[]int64{0, 1, 5, 0}, "0"},
		"x": {[]int64{-1, 1, 1, 0}, "x"}, "-5": {[]int64{-1, 1, 1, 0}, "-5"}, "": {[]int64{-1, 1, 1, 0}, ""},
		"9007199254740991": {[]int64{9007199254740988}, "9007199254740988"},
		"9007199254741000": {[]int64{9007199254740991}, "9007199254740997"},
	} {
		s := newServer()
		s.strings["a"] = text
		b := batch("seq win a", 1, -3)
		s.expect(t, b, append([]int64{1, 1, 60000}, want.reply...)...)
		s.holds(t, "a", want.left)
		s.expect(t, b.again(), append([]int64{1, 2, 60000}, want.reply...)...)
		s.holds(t, "a", want.left)
	}
	s := newServer()
	s.strings["a"] = "9007199254740990"
	s.expect(t, batch("seq win a", 1, -9007199254740991), 1, 1, 60000, 0, 1, 5, 9007199254740990)
	s.holds(t, "seq", "1 5 1:5:9007199254740990")
}

// A condition's words are 32 amounts; only those with one that is not granted are told.
func TestGrants(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		held, previous string
		delta          int64
		condition      []int64 // weight, limit, place, count, amounts
		want           []int64 // total, notes
	}{
		"as many as fit":           {"", "", 0, []int64{0, 10, 0, 4, 6, 5, 4, 1}, []int64{10, 1, 7, 10}},
		"the delta counts first":   {"2", "", 3, []int64{0, 10, 0, 2, 5, 1}, []int64{10, 1, 7, 2}},
		"none":                     {"10", "", 0, []int64{0, 10, 0, 1, 1}, []int64{10, 1, 7, 1}},
		"room is made":             {"10", "", -4, []int64{0, 10, 0, 2, 4, 1}, []int64{10, 1, 7, 2}},
		"more room than there was": {"3", "", -4, []int64{0, 1, 0, 2, 1, 1}, []int64{1, 1, 5, 3, 1, 7, 2}},
		"what is taken is granted": {"4", "", -4, []int64{0, 4, 0, 1, 4}, []int64{4}},
		"half of the previous":     {"", "3", 0, []int64{1 << 19, 3, 4, 2, 2, 1}, []int64{1, 1, 7, 1}},
		"no previous":              {"", "", 0, []int64{1 << 20, 1, 4, 1, 1}, []int64{1}},
		"a poisoned previous":      {"1", "x", 1, []int64{1, 100, 4, 1, 1}, []int64{2, 1, 7, 1}},
		"a full previous":          {"", "9007199254740991", 0, []int64{1 << 20, 9007199254740991, 4, 1, 1}, []int64{0, 1, 7, 1}},
		"a full one, nearly":       {"", "9007199254740991", 0, []int64{1<<20 - 1, 9007190664806401, 4, 2, 2, 1}, []int64{1, 1, 7, 1}},
		"a poisoned counter":       {"x", "", 1, []int64{0, 100, 0, 1, 1}, []int64{-1, 1, 1, 0}},
		"a full counter":           {"9007199254740991", "", 1, []int64{0, 9007199254740991, 0, 1, 1}, []int64{9007199254740991, 1, 7, 1}},
		"an overflowing counter":   {"9223372036854775807", "", 1, []int64{0, 9007199254740991, 0, 1, 1}, []int64{9007199254740991, 1, 4, 0}},
	} {
		s := newServer()
		for key, text := range map[string]string{"a": c.held, "p": c.previous} {
			if text != "" {
				s.strings[key] = text
			}
		}
		b := call{keys: "seq win a p", number: 1, deltas: []int64{c.delta}, conditions: append([]int64{1}, c.condition...), previous: 1}
		s.expect(t, b, append([]int64{1, 1, 60000}, c.want...)...)
		s.expect(t, b.again(), append([]int64{1, 2, 60000}, c.want...)...)
		if t.Failed() {
			t.Fatal(name)
		}
	}
	s := newServer()
	amounts := make([]int64, 100)
	for i := range amounts {
		if amounts[i] = 1000; i == 31 || i == 64 || i == 99 {
			amounts[i] = 1
		}
	}
	c := call{keys: "seq win a b", number: 1, deltas: []int64{0, 2}, conditions: append([]int64{1, 0, 3, 0, 100}, amounts...)}
	c.conditions = append(c.conditions, 2, 0, 4, 0, 1, 2)
	want := []int64{1, 1, 60000, 3, 4, 1, 7, 1<<31 - 1, 1, 7, 2<<32 - 1, 1, 7, 3<<32 - 2, 1, 7, 3<<32 + 7}
	s.expect(t, c, want...)
	s.holds(t, "seq", "1 5 1:7:2147483647 1:7:8589934591 1:7:12884901886 1:7:12884901895")
	want[1] = 2
	s.expect(t, c, want...)
}

// A sum above the largest total is that total; only what is no count is poisoned.
func TestSumsOutOfRangeSaturate(t *testing.T) {
	t.Parallel()
	const most = 9007199254740991
	for text, want := range map[string][]int64{
		"9007199254740990": {most}, "9007199254740991": {most}, "9007199254740992": {most}, "4611686018427387904": {most}, "-1": {0}, "0": {1},
		"-9": {-1, 1, 1, 0}, "x": {-1, 1, 1, 0}, "1.5": {-1, 1, 1, 0},
		"9223372036854775807": {most, 1, 4, 0}, "9223372036854775808": {most, 1, 4, 0}, "99999999999999999999999999": {most, 1, 4, 0},
	} {
		s := newServer()
		s.strings["a"] = text
		b := batch("seq win a", 1, 1)
		s.expect(t, b, append([]int64{1, 1, 60000}, want...)...)
		if want[0] == most {
			s.expect(t, b.again(), append([]int64{1, 2, 60000}, want...)...)
			s.expect(t, batch("seq win a", 2, most), append([]int64{2, 1, 60000}, want...)...)
			s.expect(t, batch("seq win a a", 3), 3, 1, 60000, most, most)
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
	s.expect(t, c, 3, 1, 60000, 4, 1, 3, 0)
}
