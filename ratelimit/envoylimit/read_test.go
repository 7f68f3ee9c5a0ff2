package envoylimit_test

import (
	"strings"
	"testing"

	"github.com/hanzoai/limiters/ratelimit/envoylimit"
)

// What is wrong with a file is said with its name, line and field, all of it at once.
func TestReadRulesNamesFileLineAndField(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		content string
		want    []string // in the error
	}{
		"no YAML":       {"domain: [", []string{"f.yaml: yaml: line 1"}},
		"empty":         {"", []string{"f.yaml:1: domain: must not be empty"}},
		"no domain":     {"descriptors: []", []string{"f.yaml:1: domain: must not be empty"}},
		"a list":        {"- a", []string{"f.yaml:1: want a mapping of fields, found a list"}},
		"text":          {"a", []string{`f.yaml:1: want a mapping of fields, found "a"`}},
		"unknown":       {"domain: d\nlimits: []", []string{`f.yaml:2: unknown field "limits": want domain, descriptors`}},
		"name no text":  {"1: d", []string{`f.yaml:1: the name of a field must be text, found "1"`}},
		"name a yes":    {"domain: d\nyes: d", []string{`f.yaml:2: the name of a field must be text, found "yes"`}},
		"twice":         {"domain: d\ndomain: e", []string{"f.yaml:2: domain: stands twice"}},
		"domain a list": {"domain: [d]", []string{"f.yaml:1: domain: want text, found a list"}},
		"no list":       {"domain: d\ndescriptors: {}", []string{"f.yaml:2: descriptors: want a list, found a mapping"}},
		"no mapping":    {"domain: d\ndescriptors: [a]", []string{`f.yaml:2: descriptors[0]: want a mapping of fields, found "a"`}},
		"null": {
			"domain: d\ndescriptors:\n  -\n  - key: a",
			[]string{"descriptors[0]: want a mapping of fields, found null"},
		},
		"empty key": {"domain: d\ndescriptors:\n  - value: v", []string{"f.yaml:3: descriptors[0].key: must not be empty"}},
		"a fraction": {
			"domain: d\ndescriptors:\n  - key: k\n    value: 1.50",
			[]string{"f.yaml:4: descriptors[0].value: want text, found the number 1.50: put it in quotes"},
		},
		"duplicate": {
			"domain: d\ndescriptors:\n  - {key: a, value: b_c}\n  - {key: a_b, value: c}",
			[]string{`f.yaml:4: descriptors[1]: there is a descriptor "d.a_b_c" already`},
		},
		"all at once, nested": {
			`domain: d
descriptors:
  - key: a
    descriptors:
      - key: b
        shadow_mode: maybe
        rate_limit:
          unit: fortnight
          requests_per_unit: -1
          window: hopping
          replaces:
            - name:
      - key: c
        share_threshold: true
        rate_limit: {unlimited: true, unit: day, window: sliding, fleet: true}
  - key: e
    rate_limit: {unit: day, name: me, replaces: [{name: me}], requests_per_unit: "5"}
  - key: f
    rate_limit: {requests_per_unit: 4294967296}
  - key: g
    rate_limit: 5
`,
			[]string{
				`f.yaml:6: descriptors[0].descriptors[0].shadow_mode: "maybe": want true or false`,
				`f.yaml:8: descriptors[0].descriptors[0].rate_limit.unit: "fortnight": want second, minute, hour, day, week, month or year`,
				`f.yaml:9: descriptors[0].descriptors[0].rate_limit.requests_per_unit: "-1": want a whole number, 0 … 4294967295`,
				`f.yaml:10: descriptors[0].descriptors[0].rate_limit.window: "hopping": want fixed or sliding`,
				`descriptors[0].descriptors[0].rate_limit.replaces[0].name: must not be empty`,
				`descriptors[0].descriptors[1].share_threshold: "c": want a value that ends with *`,
				`f.yaml:15: descriptors[0].descriptors[1].rate_limit.unit: "day": an unlimited descriptor has no unit`,
				`f.yaml:15: descriptors[0].descriptors[1].rate_limit.window: an unlimited descriptor has no window`,
				`f.yaml:15: descriptors[0].descriptors[1].rate_limit.fleet: an unlimited descriptor asks nobody`,
				`f.yaml:17: descriptors[1].rate_limit.replaces[0].name: "me" is this descriptor's own`,
				`f.yaml:17: descriptors[1].rate_limit.requests_per_unit: "5": want a whole number`,
				`f.yaml:19: descriptors[2].rate_limit.requests_per_unit: "4294967296": want a whole number`,
				`descriptors[2].rate_limit.unit: "": want second`,
				`f.yaml:21: descriptors[3].rate_limit: want a mapping of fields, found "5"`,
			},
		},
		"contains itself": {
			"domain: d\ndescriptors: &all\n  - key: a\n    descriptors: *all",
			[]string{"f.yaml:"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := envoylimit.ReadRules([]envoylimit.File{{Name: "f.yaml", Content: []byte(test.content)}}, false)
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %v\nwant in it: %s", err, want)
				}
			}
		})
	}
}

// A small file whose aliases stand for a great deal ends, with an error.
func TestReadRulesBoundsAliases(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	text.WriteString("domain: d\ndescriptors:\n  - key: k0\n    descriptors: &a0 [{key: x}]\n")
	for i := range 12 {
		text.WriteString("  - key: k" + string(rune('b'+i)) + "\n    descriptors: &a" + string(rune('b'+i)) + "\n")
		above := "0"
		if i > 0 {
			above = string(rune('b' + i - 1))
		}
		for j := range 10 {
			text.WriteString("      - {key: y" + string(rune('0'+j)) + ", descriptors: *a" + above + "}\n")
		}
	}
	_, _, err := envoylimit.ReadRules([]envoylimit.File{{Name: "f.yaml", Content: []byte(text.String())}}, false)
	if err == nil || !strings.Contains(err.Error(), "too deep or too large") || len(err.Error()) > 10_000 {
		t.Fatalf("got %.300v", err)
	}
}

// Fields that are known but mean nothing where they stand are passed over, as in the original,
// and told of.
func TestReadRulesWarns(t *testing.T) {
	t.Parallel()
	_, warnings, err := envoylimit.ReadRules([]envoylimit.File{{
		Name:    "f.yaml",
		Content: []byte("domain: d\nunit: day\ndescriptors:\n  - key: k\n    requests_per_unit: 4"),
	}}, false)
	want := []string{
		"f.yaml:2: unit: has no meaning here and is passed over",
		"f.yaml:5: descriptors[0].requests_per_unit: has no meaning here and is passed over",
	}
	if err != nil || strings.Join(warnings, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q, error %v; want %q", warnings, err, want)
	}
}

func FuzzReadRules(f *testing.F) {
	f.Add("domain: d\ndescriptors:\n  - key: a\n    value: b*\n    rate_limit: {unit: day, requests_per_unit: 4}")
	f.Add("domain: d\ndescriptors: &a [{key: x, descriptors: *a}]")
	f.Add("<<: {domain: d}\ndescriptors: [{<<: [{key: a}, {key: b}], rate_limit: {unlimited: y}}]")
	f.Fuzz(func(t *testing.T, text string) {
		rules, _, err := envoylimit.ReadRules([]envoylimit.File{{Name: "f.yaml", Content: []byte(text)}}, false)
		if (err == nil) != (rules != nil) {
			t.Fatalf("rules %v, error %v", rules, err)
		}
		if rules != nil {
			_ = rules.String()
		}
	})
}
