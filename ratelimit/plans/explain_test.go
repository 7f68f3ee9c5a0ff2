package plans

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

func TestExplain(t *testing.T) {
	t.Parallel()
	f, err := Parse("p", []byte(`
limits:
  a: {threshold: 5, window: 90m}
  b: {threshold: 6, calendar: month, zone: Europe/Berlin, ask: fleet, key: everybody, dry_run: true}
plans: {pro: {a: 50}, free: {a: 2, b: 7}}
default_plan: free
keys: {ann: pro}
routes:
  - {pattern: GET /v1/, key: ip, cost: 3, limits: [a, b]}
  - {pattern: host.example/, key: ip, limits: [a], dry_run: true}
  - {pattern: /free, key: ip, limits: []}
allow: [{key: probe, until: 2026-06-01T00:00:00Z}]
block: [{key: thief}]
`))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ method, path, key, want string }{
		{"GET", "/v1/x", "ann", `"GET /v1/" "pro" "" a by ip 50 per 1h30m sliding, cost 3; b by everybody 7 per month-Europe/Berlin fixed, cost 3, fleet, dry run;`},
		{"GET", "/v1/x", "bob", `"GET /v1/" "free" "" a by ip 2 per 1h30m sliding, cost 3; b by everybody 7 per month-Europe/Berlin fixed, cost 3, fleet, dry run;`},
		{"GET", "/v1", "thief", `"GET /v1/" "free" "block" a by ip 2 per 1h30m sliding, cost 3; b by everybody 7 per month-Europe/Berlin fixed, cost 3, fleet, dry run;`},
		{"POST", "http://host.example/x", "ann", `"host.example/" "pro" "" a by ip 50 per 1h30m sliding, cost 1, dry run;`},
		{"GET", "/free", "probe", `"/free" "free" "allow"`},
		{"GET", "/nowhere", "bob", `"" "free" ""`},
		{"GET", "v1", "bob", `plans: the path "v1": want one that begins with /, or http://host/path`},
		{"G T", "/", "bob", `plans: the method "G T": want one such as GET`},
	} {
		e, err := f.Explain(row.method, row.path, row.key, time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC))
		got := fmt.Sprintf("%q %q %q", e.Pattern, e.Plan, e.List)
		for _, l := range e.Limits {
			got += fmt.Sprintf(" %s by %s %d per %s %s, cost %d", l.Limit, l.By, l.Threshold, l.Window, l.Kind, l.Cost)
			if l.Fleet {
				got += ", fleet"
			}
			if l.DryRun {
				got += ", dry run"
			}
			got += ";"
		}
		if err != nil {
			got = err.Error()
		}
		if got != row.want {
			t.Errorf("%s %s of %s:\n got %s\nwant %s", row.method, row.path, row.key, got, row.want)
		}
	}
}

// satisfies checks a text against the committed schema, as an editor would.
func satisfies(t *testing.T, text string) {
	t.Helper()
	for _, problem := range schemaProblems(t, text) {
		t.Error(problem)
	}
}

func schemaProblems(t *testing.T, text string) []string {
	t.Helper()
	var s schemaRead
	if err := json.Unmarshal(Schema(), &s); err != nil {
		t.Fatal(err)
	}
	var n yaml.Node
	if err := yaml.Unmarshal([]byte(text), &n); err != nil {
		return []string{err.Error()}
	}
	return s.problems(n.Content[0], "")
}

// The schema accepts what the reader does, and refuses what a schema can.
func TestTheSchemaAgreesWithTheReader(t *testing.T) {
	t.Parallel()
	satisfies(t, good)
	satisfies(t, file)
	refused := 0
	for _, row := range bad {
		if row.to == "" && row.from == good || strings.Contains(row.want, "no YAML") || strings.Contains(row.want, "UTF-8") || row.name == "a comment alone" {
			continue
		}
		if len(schemaProblems(t, strings.Replace(good, row.from, row.to, 1))) > 0 {
			refused++
		}
	}
	if refused < 25 {
		t.Errorf("the schema refuses %d of the bad files, want 25 at least", refused)
	}
}

// A schemaRead is a schema as others read it.
type schemaRead struct {
	Type       string
	Properties map[string]*schemaRead
	Additional json.RawMessage `json:"additionalProperties"`
	Items      *schemaRead
	Required   []string
	Enum       []string
	Pattern    string
	Minimum    *int
}

func (s *schemaRead) problems(n *yaml.Node, at string) (found []string) {
	kinds := map[string]string{"!!map": "object", "!!seq": "array", "!!str": "string", "!!int": "integer", "!!bool": "boolean", "!!timestamp": "string"}
	if kind := kinds[n.Tag]; kind != s.Type || s.Minimum != nil && strings.HasPrefix(n.Value, "-") {
		return []string{fmt.Sprintf("%s: %s %q, want %s", at, kind, n.Value, s.Type)}
	}
	if s.Enum != nil && !slices.Contains(s.Enum, n.Value) || s.Pattern != "" && !regexp.MustCompile(s.Pattern).MatchString(n.Value) {
		found = append(found, fmt.Sprintf("%s: %q", at, n.Value))
	}
	names := map[string]bool{}
	for i := 0; s.Type == "object" && i < len(n.Content); i += 2 {
		name := n.Content[i].Value
		names[name] = true
		member := s.Properties[name]
		if member == nil && string(s.Additional) != "false" {
			member = &schemaRead{}
			if err := json.Unmarshal(s.Additional, member); err != nil {
				panic(err)
			}
		}
		if member == nil {
			found = append(found, at+"."+name+": not known")
			continue
		}
		found = append(found, member.problems(n.Content[i+1], at+"."+name)...)
	}
	for _, name := range s.Required {
		if !names[name] {
			found = append(found, at+"."+name+": missing")
		}
	}
	for i := 0; s.Type == "array" && i < len(n.Content); i++ {
		found = append(found, s.Items.problems(n.Content[i], fmt.Sprintf("%s[%d]", at, i))...)
	}
	return found
}
