package page

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hanzoai/limiters/cmd/bench/internal/command"
)

// writeFiles makes a directory of files by name.
func writeFiles(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestFillPageReplacesEachPlace(t *testing.T) {
	t.Parallel()
	dir := writeFiles(t, map[string]string{"a.txt": "\none\ntwo $1\n\n", "b.svg": "<svg/>"})
	const before = "# Page\n<!-- results: a.txt -->\nold\n\nolder\n<!-- end -->\ntext\n" +
		"<!-- results: b.svg -->\n<!-- end -->\n<!-- results: c.txt -->\n<!-- end -->\n"
	const want = "# Page\n<!-- results: a.txt -->\n```text\none\ntwo $1\n```\n<!-- end -->\ntext\n" +
		"<!-- results: b.svg -->\n![b](b.svg)\n<!-- end -->\n<!-- results: c.txt -->\n" + notMeasured + "<!-- end -->\n"
	got, err := fillPage(before, dir)
	if err != nil || got != want {
		t.Errorf("fillPage = %q, %v; want %q", got, err, want)
	}
	if again, err := fillPage(got, dir); err != nil || again != got {
		t.Errorf("filled again it is %q, %v; want no change", again, err)
	}
}

func TestFillPageRefusesWhatItCannotShow(t *testing.T) {
	t.Parallel()
	dir := writeFiles(t, map[string]string{"a.txt": "```\n"})
	for _, text := range []string{"", "<!-- results: a.txt -->\n", "<!-- results: a.txt -->\n<!-- end -->\n"} {
		if got, err := fillPage(text, dir); err == nil {
			t.Errorf("of %q it makes %q and no error", text, got)
		}
	}
}

func TestThePageShowsTheCommittedResults(t *testing.T) {
	t.Parallel()
	const dir = "../../../../docs"
	text, err := os.ReadFile(filepath.Join(dir, "performance.md"))
	if err != nil {
		t.Fatal(err)
	}
	if filled, err := fillPage(string(text), dir); err != nil || filled != string(text) {
		t.Errorf("docs/performance.md is stale (error %v): run go run ./cmd/bench page", err)
	}
}

func TestPageCommand(t *testing.T) {
	t.Parallel()
	dir := writeFiles(t, map[string]string{"p.md": "<!-- results: a.txt -->\n<!-- end -->\n", "a.txt": "figures"})
	file := filepath.Join(dir, "p.md")
	if status, _, stderr := call(t, "-page "+file); status != command.OK {
		t.Errorf("status %d, stderr %q", status, stderr)
	}
	if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), "\nfigures\n") {
		t.Errorf("the page holds %q, %v", text, err)
	}
	for args, want := range map[string]int{
		"-page " + filepath.Join(dir, "absent"): command.Failed,
		"more":                                  command.Usage,
		"-nonsense":                             command.Usage,
		"-h":                                    command.OK,
	} {
		if status, _, stderr := call(t, args); status != want || stderr == "" {
			t.Errorf("%s: status %d, stderr %q; want %d", args, status, stderr, want)
		}
	}
	status, stdout, _ := call(t, "-about")
	for _, part := range []string{"date", "commit", "processor", "Go", "Redis"} {
		if status != command.OK || !strings.Contains(stdout, "\n"+part) && !strings.HasPrefix(stdout, part) {
			t.Errorf("status %d, %q does not tell the %s", status, stdout, part)
		}
	}
}

// call makes the run as main does.
func call(t *testing.T, args string) (status int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	status = Run(t.Context(), strings.Fields(args), &out, &err)
	return status, out.String(), err.String()
}
