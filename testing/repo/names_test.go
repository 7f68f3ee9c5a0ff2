package repo

// This file checks that the files, flags, variables, metrics and methods which
// documents name are there.

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// notOurs are names in documents that belong to others, or to the reader.
var notOurs = []string{
	"GRPC_XDS_SOTW", "STRICT_DNS", "HTTP_FILTER", "INSERT_BEFORE", "VIRTUAL_HOST", // of Envoy, Istio and envoyproxy/ratelimit
}

// judged are the documents that speak of what is: the changelog speaks of what was, too.
func judged(t *testing.T) []document {
	t.Helper()
	return slices.DeleteFunc(documents(t), func(d document) bool { return d.path == "CHANGELOG.md" })
}

// ours returns the text of every file that can define a name: sources and what runs
// them, tests included.
func ours(t *testing.T, patterns ...string) (text string) {
	t.Helper()
	var b strings.Builder
	for _, pattern := range patterns {
		for _, file := range files(t, pattern) {
			if file != "testing/repo/names_test.go" {
				b.WriteString(contents(t, file))
			}
		}
	}
	return b.String()
}

// whole returns the document's text, code blocks included.
func (d document) whole() string {
	var b strings.Builder
	b.WriteString(d.prose)
	for _, code := range d.code {
		b.WriteString(code.text)
	}
	return b.String()
}

var aMetric = regexp.MustCompile(`\bglobal_rate_limiter_[a-z0-9_]+\b`)

// metricsOf returns the names of the metrics in a text, without what Prometheus adds to
// those of histograms.
func metricsOf(text string) (names []string) {
	for _, name := range aMetric.FindAllString(text, -1) {
		for _, added := range []string{"_bucket", "_sum", "_count"} {
			name = strings.TrimSuffix(name, added)
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func TestNamedMetricsExist(t *testing.T) {
	t.Parallel()
	exposed := metricsOf(ours(t, "*.go"))
	found := 0
	judge := func(file, text string) {
		for _, name := range metricsOf(text) {
			found++
			if _, ok := slices.BinarySearch(exposed, name); !ok {
				t.Errorf("%s names the metric %s, which no source has", file, name)
			}
		}
	}
	for _, d := range judged(t) {
		judge(d.path, d.whole())
	}
	for _, pattern := range []string{"*.yaml", "*.json"} {
		for _, file := range files(t, pattern) {
			judge(file, contents(t, file))
		}
	}
	if found < 50 {
		t.Errorf("%d metrics are named: nothing was checked", found)
	}
}

var aVariable = regexp.MustCompile(`\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b`)

func TestNamedVariablesExist(t *testing.T) {
	t.Parallel()
	const usual = "GLOBAL_RATE_LIMIT_"
	known := aVariable.FindAllString(ours(t, "*.go", "Makefile", "Dockerfile*")+contents(t, ".ci/run"), -1)
	for _, single := range regexp.MustCompile(`env(?:Name)?:"([A-Z0-9_]+)"`).FindAllStringSubmatch(ours(t, "*.go"), -1) {
		known = append(known, single[1])
	}
	slices.Sort(known)
	found := 0
	for _, d := range judged(t) {
		for _, name := range aVariable.FindAllString(d.whole(), -1) {
			found++
			if strings.HasPrefix(name, usual) && !strings.Contains(name[len(usual):], "_") {
				continue // one word after the prefix, as THRESHOLD: the configuration's own test
			}
			if slices.Contains(notOurs, name) {
				continue
			}
			if _, ok := slices.BinarySearch(known, strings.TrimPrefix(name, usual)); !ok {
				t.Errorf("%s names %s, which no source has", d.path, name)
			}
		}
	}
	if found < 20 {
		t.Errorf("%d variables are named: nothing was checked", found)
	}
}

var aFile = regexp.MustCompile("`([a-zA-Z0-9_./-]+\\.(?:go|lua|yaml|json|jsonl|svg|css|html|md|txt))`")

func TestNamedFilesExist(t *testing.T) {
	t.Parallel()
	all := files(t, "*")
	found := 0
	for _, d := range judged(t) {
		for _, match := range aFile.FindAllStringSubmatch(d.prose, -1) {
			name := match[1]
			found++
			if strings.HasPrefix(name, "/") || slices.Contains(notOurs, name) {
				continue // of the reader's machine
			}
			if !slices.ContainsFunc(all, func(file string) bool { return ("/" + file)[max(0, len(file)-len(name)):] == "/"+name }) &&
				!exists(path.Join(path.Dir(d.path), name)) {
				t.Errorf("%s names the file %s, which is not there", d.path, name)
			}
		}
	}
	if found < 20 {
		t.Errorf("%d files are named: nothing was checked", found)
	}
}

var (
	aRun     = regexp.MustCompile(`go run (?:-[a-z]+ )*\./([a-z0-9/_-]+)([^\n` + "`" + `;|&#]*)`)
	aFlag    = regexp.MustCompile(`(?:^|\s)--?([a-z][a-z0-9.-]*)`)
	flagMade = regexp.MustCompile(`\.(?:Bool|Int|Int64|Uint|Uint64|Float64|String|Duration|Func|Var|[A-Za-z0-9]+Var|BoolFunc)\((?:[^"()]*, )?"([a-z][a-z0-9.-]*)"|(?:ranged|flagOf)[A-Za-z]*\([^"]*"([a-z][a-z0-9.-]*)"`)
)

// flagsBelow returns the names that the sources in a directory and below give to flags.
func flagsBelow(t *testing.T, directory string) (names []string) {
	t.Helper()
	for _, file := range files(t, "*.go") {
		if strings.HasPrefix(file, directory+"/") {
			for _, match := range flagMade.FindAllStringSubmatch(contents(t, file), -1) {
				names = append(names, match[1]+match[2])
			}
		}
	}
	return names
}

func TestNamedFlagsExist(t *testing.T) {
	t.Parallel()
	found := 0
	for _, d := range judged(t) {
		text := strings.ReplaceAll(contents(t, d.path), "\\\n", " ")
		for _, run := range aRun.FindAllStringSubmatch(text, -1) {
			known := flagsBelow(t, strings.TrimSuffix(run[1], "/"))
			for _, match := range aFlag.FindAllStringSubmatch(run[2], -1) {
				found++
				if !slices.Contains(known, match[1]) {
					t.Errorf("%s: %q: no source below %s has a flag -%s", d.path, strings.TrimSpace(run[0]), run[1], match[1])
				}
			}
		}
	}
	if found < 5 {
		t.Errorf("%d flags are named: nothing was checked", found)
	}
}

var aMember = regexp.MustCompile("`(?:ratelimit\\.)?(Config|Limiter|Decision|Decisions|Item|Stats)\\.([A-Z][A-Za-z0-9]*)")

func TestNamedMembersExist(t *testing.T) {
	t.Parallel()
	sources := ours(t, "*.go")
	found := 0
	for _, d := range judged(t) {
		for _, match := range aMember.FindAllStringSubmatch(contents(t, d.path), -1) {
			found++
			method := regexp.MustCompile(`(?m)^func \(\w+ \*?` + match[1] + `\) ` + match[2] + `\(`)
			field := regexp.MustCompile(`(?m)^\t(?:\w+, )*` + match[2] + `(?:, \w+)* +[\w.\[\]*]+`)
			if !method.MatchString(sources) && !field.MatchString(sources) {
				t.Errorf("%s names %s.%s, which is not there", d.path, match[1], match[2])
			}
		}
	}
	if found < 10 {
		t.Errorf("%d fields and methods are named: nothing was checked", found)
	}
}
