// This file holds the addresses that are accepted, those that are not, and that
// no error or printed form shows a secret.

package redisurl

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	t.Parallel()
	tcp := func(name, address string, db int) Target {
		return Target{Name: name, Network: "tcp", Address: address, DB: db}
	}
	secured := func(t Target, user, password string) Target {
		t.User, t.Password = user, password
		return t
	}
	encrypted := func(t Target) Target {
		t.TLS = true
		return t
	}
	unix := func(name, path string, db int) Target {
		return Target{Name: name, Network: "unix", Address: path, DB: db}
	}
	for _, row := range []struct {
		element string
		want    Target
		shown   string
	}{
		{"redis://h", tcp("h:6379/0", "h:6379", 0), "redis://h:6379/0"},
		{" redis://H:7000/ ", tcp("h:7000/0", "h:7000", 0), "redis://h:7000/0"},
		{"redis://h:7/15", tcp("h:7/15", "h:7", 15), "redis://h:7/15"},
		{"rediss://h/3", encrypted(tcp("h:6379/3", "h:6379", 3)), "rediss://h:6379/3"},
		{"redis://u:p@h", secured(tcp("h:6379/0", "h:6379", 0), "u", "p"), "redis://***@h:6379/0"},
		{"redis://:p@h", secured(tcp("h:6379/0", "h:6379", 0), "", "p"), "redis://***@h:6379/0"},
		{"redis://p@h", secured(tcp("h:6379/0", "h:6379", 0), "", "p"), "redis://***@h:6379/0"},
		{"redis://u:@h", secured(tcp("h:6379/0", "h:6379", 0), "u", ""), "redis://***@h:6379/0"},
		{"redis://@h", tcp("h:6379/0", "h:6379", 0), "redis://h:6379/0"},
		{"redis://u%40x:a%2Cb%2F%3A%25@h", secured(tcp("h:6379/0", "h:6379", 0), "u@x", "a,b/:%"), "redis://***@h:6379/0"},
		{"redis://[::1]", tcp("[::1]:6379/0", "[::1]:6379", 0), "redis://[::1]:6379/0"},
		{"redis://[fe80::1%25eth0]:7/1", tcp("[fe80::1%eth0]:7/1", "[fe80::1%eth0]:7", 1), "redis://[fe80::1%eth0]:7/1"},
		{"a.B_1-c=redis://h", tcp("a.B_1-c", "h:6379", 0), "redis://h:6379/0"},
		{"redis=redis://u:x=y@h", secured(tcp("redis", "h:6379", 0), "u", "x=y"), "redis://***@h:6379/0"},
		{"redis://u:x=y@h", secured(tcp("h:6379/0", "h:6379", 0), "u", "x=y"), "redis://***@h:6379/0"},
		{"unix:///run/r.sock", unix("/run/r.sock/0", "/run/r.sock", 0), "unix:///run/r.sock?db=0"},
		{"unix://u:p@/run/r.sock?db=2", secured(unix("/run/r.sock/2", "/run/r.sock", 2), "u", "p"), "unix://***@/run/r.sock?db=2"},
		{"memory://", Target{Name: "memory", Memory: true}, "memory://"},
		{"m=memory://", Target{Name: "m", Memory: true}, "memory://"},
	} {
		got, err := Parse(row.element)
		if err != nil {
			t.Errorf("Parse(%q): %v", row.element, err)
			continue
		}
		if diff := cmp.Diff(fields(row.want), fields(got)); diff != "" {
			t.Errorf("Parse(%q) (-want +got):\n%s", row.element, diff)
		}
		if got.String() != row.shown {
			t.Errorf("Parse(%q).String() = %q, want %q", row.element, got, row.shown)
		}
	}
}

// fields is a target without its methods, which mask what a diff must show.
func fields(t Target) any {
	type plain Target
	return plain(t)
}

func TestParseRejects(t *testing.T) {
	t.Parallel()
	for element, reason := range map[string]string{
		"":                          "no scheme",
		"h:6379":                    "no \"//\"",
		"//h":                       "no scheme",
		"localhost":                 "no scheme",
		"http://h":                  "unknown scheme",
		"redis:h":                   "no \"//\"",
		"redis://":                  "no host",
		"redis://:6379":             "no host",
		"redis:///0":                "no host",
		"redis://u:p@":              "no host",
		"redis://h:0":               "port",
		"redis://h:65536":           "port",
		"redis://h:x":               "malformed",
		"redis://::1":               "brackets",
		"redis://h/x":               "database",
		"redis://h/-1":              "database",
		"redis://h/+1":              "database",
		"redis://h/1/":              "database",
		"redis://h/a/1":             "database",
		"redis://h/99999999999":     "database",
		"redis://h?db=1":            "parameters",
		"redis://h?":                "parameters",
		"redis://h#x":               "'#'",
		"redis://h#":                "'#'",
		"redis://h%20x":             "malformed",
		"redis://u:%zz@h":           "malformed",
		"redis://h\n":               "", // trimmed: a line of a file
		"redis://h\nx":              "malformed",
		"unix://":                   "no path",
		"unix:///":                  "no path",
		"unix://h/run/r.sock":       "host",
		"unix:///run/r.sock?db=x":   "database",
		"unix:///run/r.sock?a=1":    "parameters",
		"unix:///r?db=1&db=2":       "parameters",
		"unix:///r?db=1&a=2":        "parameters",
		"unix:///r%0A":              "control",
		"memory://x":                "nothing more",
		"memory:///":                "nothing more",
		"memory://?a":               "nothing more",
		"memory:":                   "nothing more",
		"=redis://h":                "malformed",
		"a b=redis://h":             "malformed",
		"a=":                        "no scheme",
		"a=b=redis://h":             "malformed",
		"rediss://u:p/q@h:6379":     "malformed",
		"redis://u:12/34@h:6379/0":  "database",
		"redis://u:12?34@h:6379/0":  "parameters",
		"redis://u:12#34@h:6379/0":  "'#'",
		"redis://h:6379,redis://h2": "brackets",
	} {
		_, err := Parse(element)
		if reason == "" {
			if err != nil {
				t.Errorf("Parse(%q): %v", element, err)
			}
			continue
		}
		if err == nil {
			t.Errorf("Parse(%q) is accepted", element)
			continue
		}
		if !strings.Contains(err.Error(), reason) || !strings.Contains(err.Error(), "accepted: ") {
			t.Errorf("Parse(%q): %v; want %q and what is accepted", element, err, reason)
		}
	}
}

func TestNothingShowsASecret(t *testing.T) {
	t.Parallel()
	for _, element := range []string{
		"redis://user:hunter2@h:6379/0", "redis://:hunter2@h", "redis://hunter2@h", "redis://user:hunter2@h/x",
		"redis://user:hunter2", "redis://:hunter2", "n=redis://user:hunter2", "user:hunter2@h:6379", "user:hunter2",
		"redis://user:a/hunter2@h", "redis://user:1/hunter2@h", "redis://user:1#hunter2@h", "redis://user:1?hunter2@h",
		"redis://user:hunter2@x@h", "redis://h#hunter2", "redis://h?password=hunter2", "redis://h?db=hunter2", "redis://user:1#hunter2",
		"redis://user:1?hunter2", "redis://user:1/hunter2", "unix:///r.sock?password=hunter2", "unix://user:hunter2@/r.sock",
		"unix:///r.sock#hunter2", "redis://u:%zzhunter2@h", "http://user:hunter2@h", "hunter2@h", "redis://user:1\nhunter2@h",
		"rediss://user:hunter2@[::1", "redis:user:hunter2@h", "redis:user:hunter2", "redis://[hunter2",
	} {
		shown := []string{Mask(element)}
		target, err := Parse(element)
		if err != nil {
			shown = append(shown, err.Error())
		} else {
			text, _ := json.Marshal(target)
			shown = append(shown, fmt.Sprintf("%v %+v %#v %s", target, target, target, target), string(text), target.Name)
		}
		if _, err := ParseList([]string{element, element, "redis://x"}); err == nil {
			t.Errorf("%q twice is accepted", element)
		} else {
			shown = append(shown, err.Error())
		}
		if all := strings.Join(shown, "\n"); strings.Contains(all, "hunter2") {
			t.Errorf("the password of %q shows:\n%s", element, all)
		}
	}
}

func TestParseList(t *testing.T) {
	t.Parallel()
	got, err := ParseList([]string{" redis://a ", "", "b=redis://a", " "})
	if err != nil || len(got) != 2 || got[0].Name != "a:6379/0" || got[1].Name != "b" {
		t.Errorf("ParseList = %v, %v", got, err)
	}
	if got, err := ParseList(nil); got != nil || err != nil {
		t.Errorf("ParseList(nil) = %v, %v", got, err)
	}
	_, err = ParseList([]string{"redis://a", "http://x", "redis://A:6379/0", "redis://b/y"})
	if err == nil {
		t.Fatal("a list with three faults is accepted")
	}
	for _, want := range []string{"element 2: ", "element 3: ", "name \"a:6379/0\" of element 1", "element 4: "} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error does not say %q:\n%v", want, err)
		}
	}
}

func TestHost(t *testing.T) {
	t.Parallel()
	for element, want := range map[string]string{"redis://h:1": "h", "redis://[::1]": "::1", "unix:///r": "/r"} {
		target, err := Parse(element)
		if err != nil || target.Host() != want {
			t.Errorf("Parse(%q).Host() = %q, %v, want %q", element, target.Host(), err, want)
		}
	}
}

// FuzzParse looks for an element that panics, or that parses into something whose
// printed form parses differently.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"redis://u:p@h:1/2", "n=rediss://[::1]", "unix://u:p@/r?db=1", "memory://", "redis://u:1/x@h", "=://@", "redis://%41:%2c@h",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, element string) {
		Mask(element)
		target, err := Parse(element)
		if err != nil {
			return
		}
		if target.Name == "" || target.DB < 0 || !target.Memory && target.Address == "" {
			t.Fatalf("Parse(%q) = %+v", element, fields(target))
		}
		if target.Network != "tcp" || strings.ContainsAny(target.Address, "%") {
			return
		}
		again, err := Parse(target.String())
		if err != nil || again.Address != target.Address || again.DB != target.DB || again.TLS != target.TLS {
			t.Fatalf("Parse(%q) prints as %q, which is %+v, %v", element, target, fields(again), err)
		}
	})
}

func TestMemoryStandsAlone(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		elements []string
		want     string
	}{
		{[]string{"memory://", "b=memory://"}, ""},
		{[]string{"redis://a", "memory://"}, `element 2: "memory://": memory:// is for one process and no server can stand beside it`},
		{[]string{"memory://", "redis://u:secret@a"}, `element 2: "redis://***@a": memory:// is for one process and no server can stand beside it`},
	} {
		_, err := ParseList(row.elements)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != row.want {
			t.Errorf("ParseList(%q): %q, want %q", row.elements, got, row.want)
		}
	}
}
