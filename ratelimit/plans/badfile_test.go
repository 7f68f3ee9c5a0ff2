package plans

// This file tests what is said of files that are wrong: one clear error, with the line and
// the field, and nothing changes.

import (
	"errors"
	"maps"
	"os"
	"strings"
	"testing"
)

// good is a text that rows change.
const good = `limits:
  l: {threshold: 3, window: 1m}
  m:
    threshold: 5
    calendar: month
    zone: Europe/Berlin
plans:
  pro: {l: 7}
default_plan: pro
keys:
  ann: pro
routes:
  - pattern: GET /v1/
    key: header:X-Key
    limits: [l]
  - pattern: POST /v1/{id}
    key: everybody
    cost: 3
    limits: [m]
allow:
  - {key: probe, by: ip}
block:
  - key: thief
    until: 2026-12-31T00:00:00Z
`

// bad are changes of good, and the error that each makes, after the file's name.
var bad = []struct{ name, from, to, want string }{
	{"empty", good, "", `: it is empty: want limits and routes`},
	{"a comment alone", good, "# nothing\n", `: it is empty: want limits and routes`},
	{"no mapping", good, "- a\n- b\n", `:1: it is a list: want a mapping`},
	{"a text alone", good, "plans", `:1: it is "plans": want a mapping`},
	{"no YAML", "{threshold: 3, window: 1m}", "{threshold: 3, window: 1m", `:2: it is no YAML: did not find expected ',' or '}'`},
	{"a tab", "    threshold: 5", "\tthreshold: 5", `:4: it is no YAML: found character that cannot start any token`},
	{"two documents", "block:", "---\nblock:", `:22: a second document begins here: want one`},
	{"not UTF-8", "ann", "an\xff", `:11: it is not UTF-8`},
	{"a name that is not known", "threshold: 5", "treshold: 5", `:4: limits.m.treshold: it is not known: want threshold, window,`},
	{"a name at the top that is not known", "keys:", "clients:", `:10: clients: it is not known: want limits, routes, plans,`},
	{"a name twice", "    zone: Europe/Berlin", "    threshold: 6", `:6: limits.m.threshold: it is given twice, in line 4 too`},
	{"a limit twice", "  m:\n", "  l: {threshold: 1}\n  m:\n", `:3: limits.l: it is given twice, in line 2 too`},
	{"a merge key", "  m:\n", "  m:\n    <<: {unit: x}\n", `:4: limits.m.<<: merge keys are not read`},
	{"a word for a number", "threshold: 5", "threshold: ten", `:4: limits.m.threshold: "ten": want a whole number, 0 … 18446744073709551615`},
	{"a negative number", "threshold: 5", "threshold: -5", `:4: limits.m.threshold: "-5": want a whole number`},
	{"a fraction", "threshold: 5", "threshold: 5.5", `:4: limits.m.threshold: "5.5": want a whole number`},
	{"a number beyond all", "threshold: 5", "threshold: 18446744073709551616", `:4: limits.m.threshold: "18446744073709551616": want a whole number`},
	{"no value", "threshold: 5", "threshold:", `:4: limits.m.threshold: it has no value: want a whole number`},
	{"no threshold", "    threshold: 5\n", "", `:4: limits.m.threshold: it is missing: units per window; 0 blocks`},
	{"a mapping for a number", "threshold: 5", "threshold: {a: 1}", `:4: limits.m.threshold: it is a mapping: want a whole number`},
	{"a number for a duration", "window: 1m", "window: 60", `:2: limits.l.window: "60": want a duration such as 500ms, 10s or 24h`},
	{"no time at all", "window: 1m", "window: 0s", `:2: limits.l.window: "0s": want a duration`},
	{"a window too short", "window: 1m", "window: 1ms", `:2: limits.l.window: 1ms: want 100ms`},
	{"a kind that there is not", "window: 1m", "kind: rolling", `:2: limits.l.kind: "rolling": want leaky, sliding, fixed`},
	{"a calendar that there is not", "calendar: month", "calendar: year", `:5: limits.m.calendar: "year": want hour, day, week, month`},
	{"a zone that there is not", "Europe/Berlin", "Europe/Nowhere", `:6: limits.m.zone: "Europe/Nowhere": want the IANA name of a time zone`},
	{"the machine's zone", "Europe/Berlin", "Local", `:6: limits.m.zone: "Local": want the IANA name`},
	{"a zone without a calendar", "window: 1m", "zone: UTC", `:2: limits.l.zone: there is no calendar that it could be of`},
	{"a calendar with a window", "calendar: month", "calendar: month\n    window: 1h", `:6: limits.m.window: a calendar has windows of its own`},
	{"a calendar that slides", "calendar: month", "calendar: month\n    kind: sliding", `:6: limits.m.kind: "sliding": want fixed, as there is a calendar`},
	{"strict where nothing slides", "window: 1m", "kind: leaky, strict: true", `:2: limits.l.strict: true: want a Window of sliding`},
	{"a burst longer than the window", "window: 1m", "window: 1m, burst: 2m", `:2: limits.l.burst: 2m: want`},
	{"neither true nor false", "window: 1m", "dry_run: maybe", `:2: limits.l.dry_run: "maybe": want true or false`},
	{"asking somebody else", "window: 1m", "ask: redis", `:2: limits.l.ask: "redis": want local, fleet`},
	{"a limit's name with a colon", "  m:\n", "  'x:y': {threshold: 1}\n  m:\n", `:3: limits.x:y: the name "x:y": want 1 to 64 letters, digits, _ or -`},
	{"a unit that cannot be shown", "window: 1m", "unit: Größe", `:2: limits.l.unit: "Größe": want printable ASCII`},
	{"no limits", "limits:\n  l: {threshold: 3, window: 1m}\n  m:\n    threshold: 5\n    calendar: month\n    zone: Europe/Berlin\nplans:\n  pro: {l: 7}", "limits: {}\nplans: {pro: {}}", `:1: limits: it is empty: want one limit at least`},
	{"a plan of a limit that there is not", "{l: 7}", "{x: 7}", `:8: plans.pro.x: there is no such limit: want l, m`},
	{"a default plan that there is not", "default_plan: pro", "default_plan: gold", `:9: default_plan: there is no plan "gold": want pro`},
	{"a key's plan that there is not", "ann: pro", "ann: gold", `:11: keys.ann: there is no plan "gold": want pro`},
	{"an empty key", "  ann: pro", "  '': pro", `:11: keys.: the key is empty`},
	{"a list for keys", "keys:\n  ann: pro", "keys: [ann]", `:10: keys: it is a list: want a mapping`},
	{"a mapping for routes", "routes:\n  - pattern: GET /v1/\n    key: header:X-Key\n    limits: [l]\n  - pattern: POST /v1/{id}\n    key: everybody\n    cost: 3\n    limits: [m]", "routes: {a: b}", `:12: routes: it is a mapping: want a list`},
	{"no routes", "routes:\n  - pattern: GET /v1/\n    key: header:X-Key\n    limits: [l]\n  - pattern: POST /v1/{id}\n    key: everybody\n    cost: 3\n    limits: [m]\n", "", `:1: routes: it is missing: which limits apply to which requests`},
	{"a pattern that is none", "GET /v1/", "GET v1", `:13: routes[0].pattern: parsing "GET v1"`},
	{"no pattern", "- pattern: GET /v1/\n    key", "- key", `:13: routes[0].pattern: it is missing`},
	{"a pattern twice", "POST /v1/{id}", "GET /v1/", `:16: routes[1].pattern: pattern "GET /v1/" conflicts with pattern "GET /v1/"`},
	{"patterns that overlap", "POST /v1/{id}", "/{x}/y", `:16: routes[1].pattern: pattern "/{x}/y" conflicts with pattern "GET /v1/"`},
	{"a key function that there is not", "key: header:X-Key", "key: api_key", `:14: routes[0].key: there is no key function "api_key": want header:NAME, ip, everybody`},
	{"no header", "key: header:X-Key", "key: 'header:'", `:14: routes[0].key: "header:": want the name of a header field`},
	{"no key", "    key: header:X-Key\n", "", `:13: routes[0].key: it is missing: the limit "l" has none of its own`},
	{"a limit that there is not", "limits: [l]", "limits: [l, x]", `:15: routes[0].limits[1]: there is no limit "x": want l, m`},
	{"a limit twice", "limits: [l]", "limits: [l, l]", `:15: routes[0].limits[1]: the limit "l" is named twice`},
	{"no limits of a route", "    limits: [l]\n", "", `:13: routes[0].limits: it is missing`},
	{"a text for limits", "limits: [l]", "limits: l", `:15: routes[0].limits: it is "l": want a list`},
	{"a limit by two keys", "limits: [m]", "limits: [m, l]", `:19: routes[1].limits[1]: the limit "l" is counted by "everybody" here and by "header:X-Key" in line 15`},
	{"a negative cost", "cost: 3", "cost: -3", `:18: routes[1].cost: "-3": want a whole number`},
	{"an entry without a key", "{key: probe, by: ip}", "{by: ip}", `:21: allow[0].key: it is missing: the key`},
	{"an entry by what there is not", "by: ip", "by: name", `:21: allow[0].by: there is no key function "name"`},
	{"no time", "2026-12-31T00:00:00Z", "tomorrow", `:24: block[0].until: "tomorrow": want a time such as 2026-12-31T00:00:00Z`},
	{"an anchor that there is not", "key: thief", "key: *who", `: it is no YAML: unknown anchor 'who' referenced`},
}

func TestFilesThatAreWrong(t *testing.T) {
	t.Parallel()
	f := open(t, good)
	if got := f.passes("GET /v1/x", "bob", 2, 0); got != 2 {
		t.Fatalf("%d pass, want 2", got)
	}
	before, limits, counted := f.current.Load(), maps.Clone(f.inForce()), f.Limiter("l").Stats().Counted
	for _, row := range bad {
		if !strings.Contains(good, row.from) {
			t.Fatalf("%s: there is no %q to change", row.name, row.from)
		}
		f.write(strings.Replace(good, row.from, row.to, 1))
		err := f.Refresh(t.Context())
		var ps Problems
		if !errors.As(err, &ps) || len(ps) != 1 {
			t.Errorf("%s: want one problem, got %v", row.name, err)
			continue
		}
		if got := strings.TrimPrefix(err.Error(), f.path); !strings.HasPrefix(got, row.want) || ps[0].File != f.path {
			t.Errorf("%s:\n got %s\nwant %s", row.name, got, row.want)
		}
		if strings.Contains(err.Error(), "GLOBAL_RATE_LIMIT") || strings.Contains(err.Error(), ".go:") {
			t.Errorf("%s: the error names what is not the file's: %v", row.name, err)
		}
	}
	if f.current.Load() != before || !maps.Equal(f.inForce(), limits) {
		t.Error("something changed")
	}
	if got := f.passes("GET /v1/x", "bob", 9, 429); got != 5 || f.Limiter("l").Stats().Counted != counted+5 {
		t.Errorf("%d pass, want 5: what is left of seven", got)
	}
	f.reload(good)
	if got := f.passes("GET /v1/x", "bob", 9, 429); got != 0 {
		t.Errorf("after a good file %d pass, want 0", got)
	}
}

// All that is wrong is said at once, by line.
func TestSeveralProblems(t *testing.T) {
	t.Parallel()
	_, err := Parse("p.yaml", []byte("limits:\n  l: {threshold: x, window: y}\nroutes: 7\n"))
	want := `p.yaml:2: limits.l.threshold: "x": want a whole number, 0 … 18446744073709551615
p.yaml:2: limits.l.window: "y": want a duration such as 500ms, 10s or 24h
p.yaml:3: routes: it is "7": want a list`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	if problem, ok := errors.AsType[Problem](err); !ok || problem.Line != 2 || problem.Field != "limits.l.threshold" {
		t.Errorf("the first problem is %+v", problem)
	}
}

func TestFilesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	f := open(t, good)
	if err := os.Remove(f.path); err != nil {
		t.Fatal(err)
	}
	if err := f.Refresh(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is gone: %v", err)
	}
	if err := os.Mkdir(f.path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := f.Refresh(t.Context()); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Errorf("a directory: %v", err)
	}
	if got := f.passes("GET /v1/x", "bob", 9, 429); got != 7 {
		t.Errorf("%d pass, want 7", got)
	}
}

// Aliases are followed, and do not multiply without a bound.
func TestAliases(t *testing.T) {
	t.Parallel()
	f, err := Parse("p", []byte("limits:\n  l: &l {threshold: 3}\n  m: *l\nroutes: []\n"))
	if err != nil || f.Limits["m"].Threshold != 3 {
		t.Errorf("%+v, %v", f, err)
	}
	bomb := "limits: {l: {threshold: 1}}\nroutes:\n"
	item := "  - &a0 {pattern: /, limits: []}\n"
	bomb += item
	for i := range 12 {
		name, before := string(rune('b'+i)), string(rune('a'+i))
		if i == 0 {
			before = "a0"
		}
		bomb += "  - &" + name + " {pattern: /, limits: [" + strings.Repeat("*"+before+",", 20) + "]}\n"
	}
	if _, err := Parse("p", []byte(bomb)); err == nil {
		t.Error("a bomb of aliases is no error")
	}
	if _, err := Parse("p", []byte(strings.Repeat(" ", maxBytes+1))); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("a large file: %v", err)
	}
}

// No text makes the reader panic, hang or pass what it does not understand.
func FuzzParse(f *testing.F) {
	f.Add(good)
	f.Add(file)
	for _, row := range bad {
		f.Add(strings.Replace(good, row.from, row.to, 1))
	}
	f.Fuzz(func(t *testing.T, text string) {
		read, err := Parse("p", []byte(text))
		if (read == nil) == (err == nil) {
			t.Errorf("file %v, error %v", read, err)
		}
		var ps Problems
		if err != nil && (!errors.As(err, &ps) || len(ps) == 0 || ps[0].Text == "") {
			t.Errorf("error %v", err)
		}
	})
}
