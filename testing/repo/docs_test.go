package repo

// This file checks that what the documents say is there.

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// readme returns README.md; not to have one is a failure.
func readme(t *testing.T) document {
	t.Helper()
	return readDocument("README.md", contents(t, "README.md"))
}

func TestReadmeIsShort(t *testing.T) {
	t.Parallel()
	if got := readme(t).lines; got >= 200 {
		t.Errorf("README.md has %d lines, want less than 200: move detail to docs/", got)
	}
}

func TestLinksResolve(t *testing.T) {
	t.Parallel()
	all := documents(t)
	byPath := map[string]document{}
	for _, d := range all {
		byPath[d.path] = d
	}
	for _, d := range all {
		for _, link := range d.links() {
			if strings.Contains(link, "://") || strings.HasPrefix(link, "mailto:") {
				continue
			}
			target, fragment, _ := strings.Cut(link, "#")
			file := d.path
			if target != "" {
				file = path.Join(path.Dir(d.path), target)
			}
			if strings.HasPrefix(file, "../") || strings.HasPrefix(target, "/") || !exists(file) {
				t.Errorf("%s: link to %s: there is no %s", d.path, link, file)
				continue
			}
			if other, ok := byPath[file]; ok && fragment != "" && !other.hasAnchor(fragment) {
				t.Errorf("%s: link to %s: no heading of %s has that anchor", d.path, link, file)
			}
		}
	}
}

// Go in these documents compiles and does what it says because it is part of an example.
func TestGoIsPartOfAnExample(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"README.md", "docs/costs.md"} {
		goIsPartOfAnExample(t, readDocument(path, contents(t, path)))
	}
}

func goIsPartOfAnExample(t *testing.T, d document) {
	t.Helper()
	var examples []string
	for _, file := range slices.Concat(files(t, "*example*_test.go"), files(t, "main.go")) {
		if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "docs/examples/") {
			examples = append(examples, unindented(contents(t, file)))
		}
	}
	found := 0
	for _, code := range d.code {
		if code.language != "go" {
			continue
		}
		found++
		inOne := false
		for _, example := range examples {
			inOne = inOne || strings.Contains(example, unindented(code.text))
		}
		if !inOne {
			t.Errorf("%s:%d: this Go is part of no *example*_test.go or program in docs/examples:\n%s", d.path, code.line, code.text)
		}
	}
	if found == 0 {
		t.Errorf("%s has no ```go block", d.path)
	}
}

// unindented returns the text without indentation and without empty lines, each
// line between newlines.
func unindented(text string) string {
	var b strings.Builder
	b.WriteByte('\n')
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

func TestReadmeCommandsExist(t *testing.T) {
	t.Parallel()
	targets := makeTargets(t)
	found := 0
	for _, code := range readme(t).code {
		if code.language != "sh" {
			continue
		}
		for line := range strings.Lines(strings.ReplaceAll(code.text, "\\\n", " ")) {
			line, _, _ = strings.Cut(line, "#")
			for command := range strings.SplitSeq(line, "&&") {
				words := strings.Fields(command)
				if len(words) == 0 {
					continue
				}
				found++
				if problem := judge(words, targets); problem != "" {
					t.Errorf("README.md:%d: %s: %s", code.line, strings.TrimSpace(line), problem)
				}
			}
		}
	}
	if found == 0 {
		t.Error("README.md has no commands in ```sh blocks")
	}
}

var targetLine = regexp.MustCompile(`(?m)^([a-z][a-z-]*):(?:[^=]|$)`)

// makeTargets returns the targets of the Makefile.
func makeTargets(t *testing.T) map[string]bool {
	t.Helper()
	targets := map[string]bool{}
	for _, match := range targetLine.FindAllStringSubmatch(contents(t, "Makefile"), -1) {
		targets[match[1]] = true
	}
	return targets
}

// judge says what is wrong with a command, "" if nothing is known to be.
func judge(words []string, targets map[string]bool) string {
	for len(words) > 0 && strings.Contains(words[0], "=") {
		words = words[1:] // a variable for the command
	}
	if len(words) < 2 {
		return "not a command that this test can judge; teach it"
	}
	switch program := words[0]; program {
	case "git":
		if words[1] != "clone" || len(words) != 3 || words[2] != "https://"+module {
			return "want git clone https://" + module
		}
		return ""
	case "cd":
		if !exists(words[1]) && words[1] != path.Base(module) { // a fresh clone's name
			return "there is no " + words[1]
		}
		return ""
	case "make":
		for _, word := range words[1:] {
			if !strings.Contains(word, "=") && !targets[word] {
				return "the Makefile has no target " + word
			}
		}
		return ""
	case "go":
		return judgeGo(words[1:])
	}
	return "not a command that this test can judge; teach it"
}

// judgeGo judges the arguments of the go command: every path that begins with
// ./ and every import path of this module must exist.
func judgeGo(arguments []string) string {
	switch arguments[0] {
	case "get", "doc", "run", "test", "install":
	default:
		return "not a go command that this test can judge; teach it"
	}
	checked := 0
	for _, word := range arguments[1:] {
		place, local := strings.CutPrefix(word, "./")
		if !local {
			if place, local = strings.CutPrefix(word+"/", module+"/"); !local {
				place, local = strings.CutPrefix(word+"/", module+"@latest/")
			}
		}
		if !local && strings.HasSuffix(word, ".go") {
			place, local = word, true
		}
		if !local {
			continue
		}
		checked++
		place, _, _ = strings.Cut(place, "@")
		if !exists(path.Clean("./" + strings.TrimSuffix(place, "..."))) {
			return "there is no " + word
		}
	}
	if checked == 0 && arguments[0] != "test" {
		return "names nothing of this module"
	}
	return ""
}

func TestJudge(t *testing.T) {
	t.Parallel()
	targets := map[string]bool{"test": true, "bench-peers": true}
	for _, row := range []struct {
		command string
		ok      bool
	}{
		{"make test", true},
		{"make test bench-peers FUZZTIME=1s", true},
		{"make toast", false},
		{"make", false},
		{"REDIS_ADDR=127.0.0.1:6379 make test", true},
		{"go get github.com/hanzoai/limiters", true},
		{"go get github.com/hanzoai/limiters@latest", true},
		{"go get github.com/hanzoai/limiters/ratelimit", true},
		{"go get github.com/hanzoai/limiters/nothing", false},
		{"go get github.com/hanzoai/other", false},
		{"go run ./gen -check", true},
		{"go run ./nothing", false},
		{"go run tools.go staticcheck ./...", true},
		{"go run gone.go", false},
		{"go test ./...", true},
		{"go test ./nothing/...", false},
		{"go test", true},
		{"go doc ./ratelimit", true},
		{"go frobnicate ./gen", false},
		{"cd gen", true},
		{"cd nothing", false},
		{"git clone https://github.com/hanzoai/limiters", true},
		{"git clone https://github.com/hanzoai/other", false},
		{"git push origin main", false},
		{"curl x", false},
	} {
		if problem := judge(strings.Fields(row.command), targets); (problem == "") != row.ok {
			t.Errorf("judge(%q) = %q, want it to pass: %t", row.command, problem, row.ok)
		}
	}
}

// The Makefile's targets are what its own help lists, and every one that CI runs
// exists.
func TestCIRunsTargetsThatExist(t *testing.T) {
	t.Parallel()
	targets := makeTargets(t)
	runs := regexp.MustCompile(`(?m)^\s*make ([a-z-]+)$`).FindAllStringSubmatch(contents(t, ".ci/run"), -1)
	if len(runs) == 0 {
		t.Error(".ci/run runs no target")
	}
	for _, run := range runs {
		if !targets[run[1]] {
			t.Errorf(".ci/run runs make %s, which the Makefile does not have", run[1])
		}
	}
	makefile := contents(t, "Makefile")
	for target := range targets {
		if !regexp.MustCompile(`(?m)^` + target + `:.*## .`).MatchString(makefile) {
			t.Errorf("make help does not list %s: its line needs a comment after ##", target)
		}
		if !strings.Contains(makefile, "\n.PHONY: "+target+"\n") {
			t.Errorf("%s is not declared .PHONY", target)
		}
	}
}
