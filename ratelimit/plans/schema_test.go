package plans

// This file tests what the documents say of the file.

import (
	"flag"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write docs/plans.schema.json")

// The committed schema is that of the types.
func TestSchemaIsUpToDate(t *testing.T) {
	t.Parallel()
	const path = "../../docs/plans.schema.json"
	if *update {
		if err := os.WriteFile(path, Schema(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	committed, err := os.ReadFile(path)
	if err != nil || string(committed) != string(Schema()) {
		t.Errorf("%s is stale (%v); run: cd ratelimit/plans && go test -run Schema . -update", path, err)
	}
}

// Every field of the types is explained in docs/plans.md, and its YAML is a file of plans.
func TestTheDocumentKnowsEveryField(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/plans.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows strings.Builder
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "| `") {
			rows.WriteString(line)
		}
	}
	for _, of := range []reflect.Type{reflect.TypeFor[File](), reflect.TypeFor[Limit](), reflect.TypeFor[Route](), reflect.TypeFor[Entry]()} {
		for _, f := range fieldsOf(of) {
			if !regexp.MustCompile("[`.]" + f.name + "[`.\\[]").MatchString(rows.String()) {
				t.Errorf("no row of the tables in docs/plans.md names %s of %v", f.name, of)
			}
			for _, value := range f.values {
				if !strings.Contains(rows.String(), "`"+value+"`") {
					t.Errorf("no row of the tables in docs/plans.md names the value %s of %s", value, f.name)
				}
			}
			if f.doc == "" {
				t.Errorf("%s of %v has no doc", f.name, of)
			}
		}
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	for _, block := range blocks {
		f, err := Parse("docs/plans.md", []byte(block[1]))
		if err != nil {
			t.Error(err)
			continue
		}
		satisfies(t, block[1])
		e, err := f.Explain("GET", "/v1/x", "k-4711", time.Now())
		if err != nil || e.Plan != "pro" || len(e.Limits) != 2 || e.Limits[0].Threshold != 50 {
			t.Errorf("%+v, %v", e, err)
		}
	}
	if len(blocks) == 0 {
		t.Error("docs/plans.md has no ```yaml block")
	}
}
