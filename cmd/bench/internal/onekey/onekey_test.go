package onekey

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hanzoai/limiters/cmd/bench/internal/command"
	"github.com/hanzoai/limiters/ratelimit"
)

// The page is what the program writes: so it says what the library does.
func TestThePageIsWhatTheProgramWrites(t *testing.T) {
	t.Parallel()
	var lives []life
	for _, kind := range kinds {
		l, err := live(kind)
		if err != nil {
			t.Fatal(err)
		}
		lives = append(lives, l)
	}
	for name, write := range map[string]func(io.Writer, []life) error{"one-key.md": writePage, "one-key.svg": writePicture} {
		var want bytes.Buffer
		if err := write(&want, lives); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile("../../../../docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want.Bytes()) {
			t.Errorf("docs/%s is not what the program writes; run: make one-key", name)
		}
	}
}

// What the page tells its readers to look at is there, under each kind.
func TestTheStoryHasWhatThePagePointsAt(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		l, err := live(kind)
		if err != nil {
			t.Fatal(err)
		}
		if len(l.seconds) != seconds || l.passed >= l.asked || l.passed < threshold {
			t.Errorf("%s: %d seconds, %d of %d units passed", kind, len(l.seconds), l.passed, l.asked)
		}
		first, boundaries, refused, scripts := 0, 0, [nodes]int{}, uint64(0)
		for _, s := range l.seconds {
			for i, n := range s.nodes {
				refused[i] += n.asked - n.passed
				scripts += n.scripts
			}
			if s.nodes[1].first {
				first = s.at
			}
			if s.boundary {
				boundaries++
				if s.at != 29 {
					t.Errorf("%s: an epoch begins in second %d, want 29", kind, s.at)
				}
			}
		}
		if first != 5 || boundaries != 1 || refused[0] == 0 || refused[1] == 0 || scripts < seconds/2 {
			t.Errorf("%s: B's first contact in second %d, %d boundaries, %v refused, %d scripts", kind, first, boundaries, refused, scripts)
		}
	}
}

// The reasons follow from what was observed.
func TestReasons(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		s    second
		want string
	}{
		{second{}, "Nothing is asked."},
		{second{nodes: [nodes]nodeSecond{{asked: 1, passed: 1}}}, "Allowed in memory"},
		{second{nodes: [nodes]nodeSecond{{}, {asked: 1, passed: 1, first: true}}}, "B sees the key for the first time"},
		{second{nodes: [nodes]nodeSecond{{asked: 3, passed: 1, reached: 60.25, retry: 1500e6}}}, "A refuses 2: one more would make its level 60.2; come back in 1.5 s."},
		{second{nodes: [nodes]nodeSecond{{sent: 1, scripts: 1}}}, "A sends 1 unit."},
		{second{nodes: [nodes]nodeSecond{{}, {sent: 7, scripts: 3}}}, "B sends 7 units in 3 scripts"},
		{second{nodes: [nodes]nodeSecond{{}, {scripts: 1}}}, "B asks Redis"},
		{second{boundary: true}, "An epoch begins"},
	} {
		if got := row.s.why(); !strings.Contains(got, row.want) {
			t.Errorf("%+v: %q, want %q", row.s, got, row.want)
		}
	}
}

func TestArguments(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "missing", "file")
	for _, row := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"-h"}, command.OK, "-page file"},
		{[]string{"-x"}, command.Usage, "-x"},
		{[]string{"now"}, command.Usage, `unexpected argument "now"`},
		{[]string{"-page", missing}, command.Failed, "missing"},
		{[]string{"-svg", missing}, command.Failed, "missing"},
		{nil, command.OK, "# One key's life"},
	} {
		var out bytes.Buffer
		if status := Run(t.Context(), row.args, &out, &out); status != row.status || !strings.Contains(out.String(), row.says) {
			t.Errorf("Run(%q) = %d and says %.200q; want %d, %q", row.args, status, out.String(), row.status, row.says)
		}
	}
}

func TestALifeThatThereIsNot(t *testing.T) {
	t.Parallel()
	if _, err := of([]life{{kind: ratelimit.WindowLeaky}}, "fixed"); err == nil {
		t.Error("no error")
	}
}
