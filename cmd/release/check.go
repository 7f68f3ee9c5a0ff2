package main

// This file builds what users would build, against the modules as they would get them.

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// notImported are the directories of modules and packages that nobody imports.
var notImported = []string{"cmd", "gen", "docs", "testing/integration", "testing/repo", "ratelimit/envoylimit/beside"}

// notInstalled are the directories of programs that only the repository needs.
var notInstalled = []string{"cmd/release", "ratelimit/envoylimit/beside", "cmd/bench/peers", "gen", "docs", "testing"}

// consumer is a service of somebody else. The imports of all public packages stand
// beside it.
const consumer = `package main

import (
	"fmt"

	"github.com/hanzoai/limiters/ratelimit"
)

func main() {
	config := ratelimit.DefaultConfig()
	config.RedisURLs = []string{"memory://"}
	config.GlobalThreshold, config.Inclusive = 3, true
	limiter, err := ratelimit.New(config)
	if err != nil {
		panic(err)
	}
	passed := 0
	for range 5 {
		if limiter.Allow("key") {
			passed++
		}
	}
	fmt.Println("passed", passed)
}
`

// check publishes the tree's modules below a temporary directory, and builds there.
func check(ctx context.Context, root string, out io.Writer) (err error) {
	all, err := modules(root)
	if err != nil {
		return err
	}
	place, err := os.MkdirTemp("", "release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(place)
	if err := publish(root, filepath.Join(place, "proxy"), tried, all); err != nil {
		return err
	}
	goes, err := newToolchain(ctx, place)
	if err != nil {
		return err
	}
	packages, programs, err := goes.public(root, all)
	if err != nil {
		return err
	}
	for _, imported := range [][]string{{repository + "/ratelimit"}, packages} {
		others, err := goes.consume(imported)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "a module that imports %d of our packages builds and runs; it lists %d other modules\n", len(imported), others)
	}
	for _, program := range programs {
		if _, err := goes.run(place, "install", program+"@"+tried); err != nil {
			return err
		}
		fmt.Fprintf(out, "go install %s@%s works\n", program, tried)
	}
	return nil
}

// A toolchain runs the go command as on a user's machine.
type toolchain struct {
	ctx         context.Context
	work        string // where the consumer is
	environment []string
}

// newToolchain returns one that finds our modules in the proxy below place, and others
// where this machine has them or gets them.
func newToolchain(ctx context.Context, place string) (*toolchain, error) {
	known, err := exec.CommandContext(ctx, "go", "env", "GOPROXY", "GOMODCACHE").Output()
	if err != nil {
		return nil, err
	}
	lines := strings.Split(string(known), "\n")
	proxies := []string{"file://" + filepath.Join(place, "proxy"), "file://" + filepath.Join(lines[1], "cache", "download"), lines[0]}
	t := &toolchain{ctx: ctx, work: filepath.Join(place, "consumer")}
	t.environment = append(os.Environ(),
		"GOPROXY="+strings.Join(proxies, ","), "GONOSUMDB="+repository+","+repository+"/*", "GONOSUMCHECK=1",
		"GOMODCACHE="+filepath.Join(place, "cache"), "GOBIN="+filepath.Join(place, "bin"),
		"GOFLAGS=-modcacherw", "GOWORK=off")
	return t, os.MkdirAll(t.work, 0o755)
}

// run runs the go command in a directory and returns what it printed.
func (t *toolchain) run(directory string, args ...string) (string, error) {
	command := exec.CommandContext(t.ctx, "go", args...)
	command.Dir, command.Env = directory, t.environment
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("release: go %s: %w\n%s", strings.Join(args, " "), err, &stderr)
	}
	return stdout.String(), nil
}

// public returns the packages that users may import and the programs that they may
// install.
func (t *toolchain) public(root string, all []localModule) (packages, programs []string, err error) {
	for _, m := range all {
		command := exec.CommandContext(t.ctx, "go", "list", "-f", "{{.Name}} {{.ImportPath}}", "./...")
		command.Dir = filepath.Join(root, m.directory)
		listed, err := command.Output()
		if err != nil {
			return nil, nil, fmt.Errorf("release: listing %s: %w", m.path, err)
		}
		for line := range strings.Lines(string(listed)) {
			name, imported, _ := strings.Cut(strings.TrimSpace(line), " ")
			local := strings.TrimPrefix(imported, repository+"/")
			switch {
			case name == "main" && !below(local, notInstalled):
				programs = append(programs, imported)
			case name != "main" && !below(local, notImported) && !slices.Contains(strings.Split(local, "/"), "internal"):
				packages = append(packages, imported)
			}
		}
	}
	return packages, programs, nil
}

func below(local string, directories []string) bool {
	return slices.ContainsFunc(directories, func(d string) bool { return local == d || strings.HasPrefix(local, d+"/") })
}

// consume builds, vets and runs a module that imports the packages, and returns how many
// other modules it lists.
func (t *toolchain) consume(packages []string) (others int, err error) {
	var imports strings.Builder
	imports.WriteString("package main\n\nimport (\n")
	for _, imported := range packages {
		fmt.Fprintf(&imports, "\t_ %q\n", imported)
	}
	imports.WriteString(")\n")
	for name, text := range map[string]string{
		"go.mod": "module example.com/consumer\n\ngo 1.26.0\n", "main.go": consumer, "imports.go": imports.String(),
	} {
		if err := os.WriteFile(filepath.Join(t.work, name), []byte(text), 0o644); err != nil {
			return 0, err
		}
	}
	for _, args := range [][]string{{"mod", "tidy"}, {"vet", "./..."}, {"build", "./..."}} {
		if _, err := t.run(t.work, args...); err != nil {
			return 0, err
		}
	}
	printed, err := t.run(t.work, "run", ".")
	if err == nil && printed != "passed 3\n" {
		err = fmt.Errorf("release: the consumer printed %q, want that 3 pass", printed)
	}
	if err != nil {
		return 0, err
	}
	listed, err := t.run(t.work, "list", "-m", "all")
	return strings.Count(listed, "\n") - 1, err
}
